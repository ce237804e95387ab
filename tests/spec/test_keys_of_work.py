"""Every key of a collective and of a pipeline: cells that differ in it alone are told and grouped as its entry says.

`test_axes.py` holds of trainings what is here held of those.
"""

from collections.abc import Callable
from functools import partial

import pytest

from harness.plan.blocks import make_plan
from harness.report.page.trials.columns import labels_of
from harness.report.words.names import names_of
from harness.spec.axes import TABLE
from harness.spec.cell import cell_names
from harness.spec.collective import CollectiveCell
from harness.spec.entry import unlabelled
from harness.spec.grouping import COMPETING, experiment
from harness.spec.pipeline import PipelineCell
from harness.spec.work import Cell
from tests.axes import KEYS_OF_COLLECTIVES, KEYS_OF_PIPELINES, collectives_of, pipelines_of

Pair = Callable[[], tuple[Cell, Cell]]
PAIRS: dict[str, tuple[str, Pair]] = {
    **{f"collective {key}": (key, partial(collectives_of, key)) for key in KEYS_OF_COLLECTIVES},
    **{f"pipeline {key}": (key, partial(pipelines_of, key)) for key in KEYS_OF_PIPELINES},
}
every_key = pytest.mark.parametrize(("key", "pair"), PAIRS.values(), ids=PAIRS)
every_pair = pytest.mark.parametrize("pair", [pair for _, pair in PAIRS.values()], ids=PAIRS)


@every_key
def test_each_key_that_makes_a_cell_makes_another_cell_and_another_name(key: str, pair: Pair) -> None:
    cell, other = pair()
    assert other.cell_id != cell.cell_id
    assert other.full_name != cell.full_name
    assert (other.label == cell.label) == (key in TABLE and TABLE[key].label is unlabelled)


@every_pair
def test_names_for_tables_and_other_tools_tell_two_values_of_a_key_apart(pair: Pair) -> None:
    cells = pair()
    for names in (cell_names(cells).values(), labels_of(cells), names_of(cells)):
        assert len(set(names)) == 2


@every_key
def test_only_values_that_would_be_compared_and_what_is_set_side_by_side_take_turns(key: str, pair: Pair) -> None:
    cells = pair()
    [block] = make_plan(cells, 1, seed=1, live={}).blocks
    together = key in COMPETING or key in type(cells[0]).TAKING_TURNS
    assert any({cell.cell_id for cell in cells} <= set(group) for group in block) == together


@every_key
def test_one_program_is_the_same_experiment_only_where_the_program_shows_the_key(key: str, pair: Pair) -> None:
    a, b = pair()
    assert (experiment(a) == experiment(b)) == (key in TABLE and TABLE[key].in_program)


@every_key
def test_each_key_has_rankings_of_its_own_but_those_whose_values_compete(key: str, pair: Pair) -> None:
    cell, other = pair()
    competes = key in COMPETING and not (isinstance(cell, CollectiveCell) and key in CollectiveCell.APART)
    if isinstance(other, PipelineCell) and other.cut:
        competes = True  # one that is cut off is in no ranking: it is beside that of the whole
        assert not other.competes
    assert (other.scope == cell.scope) == competes
    assert (other.scope_label([other]) == cell.scope_label([cell])) == competes
