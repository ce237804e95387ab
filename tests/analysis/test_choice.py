"""Which cells of a sweep are taken apart: those that one asks about, and no others."""

from collections.abc import Callable, Collection

import pytest

from harness.analysis.choice import BASE, DEFAULT_OP, DISTRIBUTED, FASTEST, OF_ENGINE, Choice, choice_of
from harness.analysis.summary import summarise
from harness.errors import UsageError
from harness.record.trial import TrialRecord
from harness.run.kinds.explain import no_instruments
from harness.spec.work import Cell
from tests.comparisons import scaled, sweep_run
from tests.synthetic import make_cell, unproved

NONE = make_cell()
AUTO, TO_ONE = (make_cell("mirrored", 2, op=op) for op in ("auto", "reduction_to_one_device"))
TPU, FIT = make_cell("tpu", 2), make_cell("mirrored", 2, loop="fit")
SERVED, SERVED_BY_TWO = (make_cell("parameter_server", workers=2, ps=count, global_batch_size=32) for count in (1, 2))


def choice(
    *fastest_first: Cell, without_proof: Collection[Cell] = (), fits: Callable[[Cell], bool] = lambda _: True
) -> Choice:
    """Of a sweep of these cells, each a tenth slower than the one before it."""
    slower = {cell.cell_id: 1.1**place for place, cell in enumerate(fastest_first)}

    def changed(record: TrialRecord) -> TrialRecord:
        step_s = record.step_time_s or 1.0
        paced = scaled(record, 0.01 * record.cell.work.amount * slower[record.cell_id] / step_s)
        return unproved(paced) if record.cell in without_proof else paced

    run = sweep_run("swept", fastest_first, change=changed)
    return choice_of(summarise(run.manifest, run.trials), fits, no_instruments)


def test_the_fastest_the_default_op_of_its_strategy_and_the_base_case_are_chosen() -> None:
    found = choice(TO_ONE, AUTO, NONE)
    assert dict(found.cells) == {TO_ONE: (FASTEST,), AUTO: (DEFAULT_OP,), NONE: (BASE,)}
    assert not found.passed_over


def test_a_cell_that_is_several_of_these_is_chosen_once() -> None:
    assert dict(choice(AUTO, TO_ONE, NONE).cells) == {AUTO: (FASTEST, DEFAULT_OP), NONE: (BASE,)}


def test_where_one_replica_is_fastest_the_fastest_on_several_is_chosen_beside_it() -> None:
    assert dict(choice(NONE, TO_ONE, AUTO).cells) == {
        NONE: (FASTEST, BASE),
        TO_ONE: (DISTRIBUTED,),
        AUTO: (DEFAULT_OP,),
    }


def test_what_cannot_be_taken_apart_is_passed_over_with_its_reason() -> None:
    found = choice(TPU, FIT, AUTO, NONE)
    assert list(found.cells) == [AUTO, NONE]
    assert "'tpu' has no instruments" in found.passed_over[TPU]
    assert "loop: 'fit'" in found.passed_over[FIT]


def test_a_sweep_of_which_nothing_can_be_taken_apart_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"no cell of 'swept' can be taken apart; .*'tpu' has no"):
        choice(TPU)


def test_of_several_rankings_the_first_is_taken_and_the_others_are_counted() -> None:
    found = choice(AUTO, NONE, make_cell(model="mlp"))
    assert list(found.cells) == [AUTO, NONE]
    assert found.other_rankings == 1


def test_unproved_cells_are_passed_over_with_their_reason_beside_ranked_ones() -> None:
    found = choice(SERVED, AUTO, NONE, without_proof=[SERVED])
    assert list(found.cells) == [AUTO, NONE]
    assert found.passed_over[SERVED].startswith("unproved: ")


def test_where_no_ranked_cell_is_asked_for_the_fastest_unproved_one_is_taken_apart() -> None:
    swept = (NONE, SERVED, SERVED_BY_TWO)
    found = choice(*swept, without_proof=swept[1:], fits=lambda cell: cell.get("ps") > 0)
    assert list(found.cells) == [SERVED, NONE]
    assert FASTEST in found.cells[SERVED]
    assert not found.passed_over


def test_an_unproved_base_case_is_taken_and_not_told_as_passed_over() -> None:
    found = choice(AUTO, NONE, without_proof=[NONE])
    assert (list(found.cells), found.passed_over) == ([AUTO, NONE], {})


def test_the_base_case_of_a_loop_may_be_measured_under_another() -> None:
    ddp, reduced = (make_cell("data_parallel", engine="torch", loop=loop, workers=2) for loop in ("ddp", "all_reduce"))
    found = choice(reduced, ddp, ddp.base)
    assert dict(found.cells) == {reduced: (FASTEST, OF_ENGINE), ddp.base: (BASE,)}
