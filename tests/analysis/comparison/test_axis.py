"""One run along an axis: which cells are pairs, how they are compared, and what is no axis."""

import math
from dataclasses import replace

import pytest

from harness.analysis.comparison import compare_along
from harness.analysis.estimates.verdict import Margins
from harness.errors import UsageError
from harness.record.manifest import PlanRecord
from harness.run.request import names_for
from harness.spec.catalogue import Catalogue
from harness.spec.sweep import OWN_OF_WORK, Sweep
from harness.spec.work import Cell
from tests.comparisons import sweep_run
from tests.networks import as_the_ring_costs, on
from tests.synthetic import make_cell, true_step_time

MARGINS = Margins()
OPS = [make_cell(), *(make_cell("mirrored", 2, op=op) for op in ("hierarchical_copy", "auto", "nccl"))]


def test_along_an_axis_what_the_machine_did_to_sides_that_took_turns_cancels() -> None:
    run = sweep_run("run-a", OPS, drift=0.3, noise=0.002)
    comparison = compare_along(run, "cross_device_op", MARGINS)
    assert comparison.title_a == "cross_device_op=auto"
    assert [row.name for row in comparison.rows] == [
        "mirrored ×2 b32: cross_device_op auto → hierarchical_copy",
        "mirrored ×2 b32: cross_device_op auto → nccl",
    ]
    for row in comparison.rows:
        estimate = row.verdicts.wall.estimate
        assert estimate is not None
        assert estimate.method == "moderated t"
        assert (estimate.deviation or 1.0) < 0.01


def test_the_base_of_an_axis_can_be_chosen_and_an_unknown_one_is_answered_with_those_there_are() -> None:
    run = sweep_run("run-a", OPS)
    comparison = compare_along(run, "cross-device-op", MARGINS, base="nccl")
    assert comparison.title_a == "cross_device_op=nccl"
    assert [row.a.cell.cross_device_op for row in comparison.rows] == ["nccl", "nccl"]
    with pytest.raises(UsageError, match=r"--base: 'ncll' is not one of .*did you mean 'nccl'"):
        compare_along(run, "cross_device_op", MARGINS, base="ncll")


def test_between_engines_cells_without_a_strategy_are_partners_whatever_the_loop_where_each_engine_has_one() -> None:
    of_jax = {"engine": "jax", "loop": "jit"}
    both = [make_cell(), make_cell("mirrored", 2), make_cell(**of_jax), make_cell("data_parallel", 2, **of_jax)]
    [row] = compare_along(sweep_run("run-a", both), "engine", MARGINS).rows
    assert (row.a.cell, row.b.cell) == (both[0], both[2])
    ranked = "the ranking compares them, and `ab --a engine=… --b engine=…` decides between two"
    for unclear in ([*both, make_cell(engine="jax", loop="other")], [both[1], both[3]]):
        with pytest.raises(UsageError, match=ranked):
            compare_along(sweep_run("run-a", unclear), "engine", MARGINS)


def test_an_axis_that_is_unknown_or_has_one_value_is_bad_usage() -> None:
    run = sweep_run("run-a", OPS)
    with pytest.raises(UsageError, match=r"--along: 'replica' is not one of .*did you mean 'replicas'"):
        compare_along(run, "replica", MARGINS)
    with pytest.raises(UsageError, match="--along: model has only one value in this run: mnist_cnn"):
        compare_along(run, "model", MARGINS)
    with pytest.raises(UsageError, match="no cell at another strategy equals one at strategy none"):
        compare_along(run, "strategy", MARGINS)


@pytest.mark.parametrize("key", OWN_OF_WORK)
def test_a_key_that_says_which_work_is_done_is_answered_with_what_the_cells_can_be_compared_along(key: str) -> None:
    for cells, said in (
        (OPS, "expected an axis along which its cells differ: strategy, replicas, cross_device_op"),
        (OPS[:1], "this run's cells differ in no axis"),
    ):
        with pytest.raises(UsageError) as caught:
            compare_along(sweep_run("run-a", cells), key, MARGINS)
        assert str(caught.value) == f"--along: another {key} is other work, and not the same in another way; {said}"


def test_along_replicas_and_batch_size_the_global_batch_follows() -> None:
    cells = [make_cell("mirrored", n, batch) for n in (1, 2) for batch in (32, 64)]
    run = sweep_run("run-a", cells, manifest={"sweep": Sweep(batch_size=[32, 64])})
    assert len(compare_along(run, "replicas", MARGINS).rows) == 2
    rows = compare_along(run, "batch_size", MARGINS).rows
    assert [(row.a.cell.batch_size, row.b.cell.batch_size) for row in rows] == [(32, 64), (32, 64)]
    assert rows[1].b.cell.global_batch_size == 128


def test_along_models_their_tokens_follow_and_units_that_differ_are_refused() -> None:
    of_text = [make_cell(model=f"gpt(tokens={tokens})", data="text", tokens=tokens) for tokens in (64, 128)]
    [row] = compare_along(sweep_run("run-a", of_text), "model", MARGINS).rows
    assert row.name == "none ×1 b32: model gpt(tokens=64) → gpt(tokens=128)"
    unlike = [of_text[0], make_cell(data="text")]
    with pytest.raises(UsageError, match="one is counted in examples/s and another in tokens/s, which do not compare"):
        compare_along(sweep_run("run-a", unlike), "model", MARGINS)


@pytest.mark.parametrize(
    ("axis", "asked", "cells_have"),
    [
        ("optimizer", "adamw(clipnorm=1)", "adamw(clipnorm=1.0)"),
        ("model", "transformer(width=32, layers=3)", "transformer(layers=3,width=32)"),
        ("data", "my:rows(rate=2, least=1)", "my:rows(least=1,rate=2)"),
    ],
)
def test_the_first_value_that_was_asked_for_is_the_base_and_it_is_found_by_the_users_own_spelling(
    axis: str, asked: str, cells_have: str
) -> None:
    cells = [make_cell(**{axis: value}) for value in ("adam", cells_have)]
    run = sweep_run("run-a", cells, manifest={"sweep": Sweep(**{axis: [asked, "adam"]})})
    for base in (None, asked):
        comparison = compare_along(run, axis, MARGINS, base=base, names_for=names_for)
        assert (comparison.title_a, comparison.title_b) == (f"{axis}={cells_have}", f"{axis}=adam")
    with pytest.raises(UsageError, match=r"--base: .* is not one of"):
        compare_along(run, axis, MARGINS, base=f"{asked[:-1]},seed=3)", names_for=names_for)


def test_a_spelling_of_an_engine_that_is_not_here_is_that_of_its_cells() -> None:
    def nowhere(_cell: Cell, _sweep: Sweep) -> Catalogue:
        raise UsageError("engine: 'my:engine': cannot import 'my'")

    cells = [make_cell(optimizer=value) for value in ("adam", "adamw(clipnorm=1.0)")]
    run = sweep_run("run-a", cells, manifest={"sweep": Sweep(optimizer=["adamw(clipnorm=1)", "adam"])})
    assert compare_along(run, "optimizer", MARGINS, names_for=nowhere).title_a == "optimizer=adam"


def test_packs_and_switches_are_axes_too_and_cells_without_a_partner_are_listed() -> None:
    packed = [make_cell("mirrored", 2, op="nccl", packing=f"num_packs={count}") for count in (1, 4)]
    run = sweep_run("run-a", [make_cell(), *packed])
    [row] = compare_along(run, "num_packs", MARGINS).rows
    assert row.name.endswith("num_packs 1 → 4")
    compiled = [make_cell(xla=xla) for xla in (False, True)] + [make_cell("mirrored", 2, xla=True)]
    comparison = compare_along(sweep_run("run-b", compiled), "xla", MARGINS, base="FALSE")
    assert [row.name for row in comparison.rows] == ["none ×1 b32: xla false → true"]
    assert comparison.only_b == ("mirrored ×2 b32 XLA",)


def test_cells_that_never_met_are_compared_through_their_base() -> None:
    cells = [make_cell(), *(make_cell("mirrored", 2, op=op) for op in ("auto", "nccl", "hierarchical_copy"))]
    run = sweep_run("run-a", cells, groups=3, drift=0.3, noise=0.001)
    for row in compare_along(run, "cross_device_op", MARGINS).rows:
        estimate = row.verdicts.wall.estimate
        assert estimate is not None
        truth = math.log(true_step_time(row.a.cell) / true_step_time(row.b.cell))
        assert estimate.mean == pytest.approx(truth, abs=0.003)
        assert (estimate.deviation or 1.0) < 0.01


@pytest.mark.parametrize("groups", [1, 3])
def test_after_a_second_stage_differences_keep_the_pilots_deviation(groups: int) -> None:
    cells = [make_cell(), *(make_cell("mirrored", 2, op=op) for op in ("auto", "nccl", "hierarchical_copy"))]
    run = sweep_run("run-a", cells, groups=groups, blocks=9)
    [plan] = run.manifest.plans
    first = PlanRecord.sealed(plan.seed, 1, plan.blocks[:5])
    second = PlanRecord.sealed(plan.seed, 2, plan.blocks[5:], 5)
    two = replace(run, manifest=run.manifest.model_copy(update={"plans": [first, second]}))
    pilot = replace(run, trials=[trial for trial in run.trials if trial.block < 5])
    for whole, part in zip(
        compare_along(two, "cross_device_op", MARGINS).rows,
        compare_along(pilot, "cross_device_op", MARGINS).rows,
        strict=True,
    ):
        estimate, early = whole.verdicts.wall.estimate, part.verdicts.wall.estimate
        assert estimate is not None
        assert early is not None
        assert (estimate.count, early.count) == (9, 5)
        assert estimate.degrees_of_freedom == early.degrees_of_freedom
        assert estimate.deviation == pytest.approx(early.deviation)
        assert estimate.mean != pytest.approx(early.mean)


def test_networks_are_an_axis_and_the_same_program_on_two_of_them_is_no_experiment_done_twice() -> None:
    cells = [on(text) for text in ("rate=100mbit", "rate=1gbit", "")]
    run = sweep_run("run-a", cells, change=as_the_ring_costs)
    comparison = compare_along(run, "network", MARGINS, base="none")
    assert [(row.a.cell.network, row.b.cell.network) for row in comparison.rows] == [
        ("", "rate=100mbit"),
        ("", "rate=1gbit"),
    ]
    assert not any("the same experiment twice" in note for note in comparison.remarks)
