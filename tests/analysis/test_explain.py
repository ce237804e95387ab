"""Where a step's time goes: parts that add up, what binds the step, and what cannot be told."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from harness.analysis.estimates.intervals import t_quantile
from harness.analysis.explain import MOST_TRIALS, Explanation, explanations_of
from harness.analysis.parts import COUNTS
from harness.errors import UsageError
from harness.record import Run
from harness.record.explain import ExplainPlan
from harness.record.trial import TrialRecord
from tests.comparisons import scaled, sweep_run
from tests.explained import RATIOS, STEADY, explain_run, with_parts

PLAIN = dict.fromkeys(["whole", "no_input", "no_reduction", "no_update"], 1.0)
COMPUTES = PLAIN | {"forward_backward": 1.0, "forward": 0.3, "empty": 0.02, "alone": 0.98}


def test_parts_are_differences_from_the_whole_step_and_add_up_to_it() -> None:
    [found] = explanations_of(explain_run())
    expected = {"input": 10, "communication": 30, "update": 5, "dispatch": 5, "contention": 10, "compute": 40}
    assert {part.name: round(100 * part.value) for part in found.parts} == {**expected, "unexplained": 0}
    assert sum(part.value for part in found.parts) == pytest.approx(1)
    assert {part.name: round(100 * part.value) for part in found.within} == {"forward": 15, "backward": 35, "hidden": 7}


def test_the_stages_of_the_input_are_those_that_a_whole_step_had() -> None:
    def built(trial: TrialRecord) -> TrialRecord:
        stages = ["TFRecord", "Batch(64)"] if trial.side == "whole" else ["Batch(64)"]
        return trial.model_copy(update={"executed": trial.executed.model_copy(update={"input": stages})})

    assert explanations_of(changed(explain_run(), built))[0].input == ("TFRecord", "Batch(64)")
    assert explanations_of(explain_run())[0].input == ()


SERVED = {"whole": 1.0, "no_input": 0.95, "no_pull": 0.8, "no_push": 0.6, "forward_backward": 0.35, "forward": 0.1}


def test_an_update_to_servers_has_a_pull_and_a_push_and_one_worker_by_itself_is_shared_by_those_there_are() -> None:
    [found] = explanations_of(explain_run({**SERVED, "empty": 0.1, "alone": 0.5}, at_once=2))
    expected = {"input": 5, "pull": 20, "push": 40, "dispatch": 10, "contention": 10, "compute": 15}
    assert {part.name: round(100 * part.value) for part in found.parts} == {**expected, "unexplained": 0}
    assert found.bound_by == "push"
    assert {part.name for part in found.within} == {"forward", "backward"}


def test_how_many_updates_of_others_come_between_is_a_mean_over_trials() -> None:
    run = explain_run({**SERVED, "empty": 0.1, "alone": 0.5}, at_once=2, passed={0: 30, 1: 50, 2: 10})
    staleness = explanations_of(run)[0].staleness
    assert staleness is not None
    assert staleness.value == pytest.approx(70 / 90)
    assert explanations_of(explain_run())[0].staleness is None
    nothing_counted = explain_run({**SERVED, "empty": 0.1, "alone": 0.5}, at_once=2, passed={0: 0})
    assert explanations_of(nothing_counted)[0].staleness is None


def test_a_worker_that_is_always_slow_is_known_by_what_it_computes_alone() -> None:
    [slow] = explanations_of(explain_run(computes=[0.001, 0.002]))
    assert [worker.worker for worker in slow.slow_workers] == [1]
    assert not explanations_of(explain_run(computes=[0.001, 0.001]))[0].slow_workers
    served = explain_run({**SERVED, "empty": 0.1, "alone": 0.5}, at_once=2, computes=[0.001, 0.002])
    assert not explanations_of(served)[0].slow_workers, "workers of parameter servers wait for nobody"


def test_the_wait_for_the_slowest_is_within_communication_and_the_hosts_share_is_what_one_call_saves() -> None:
    [found] = explanations_of(explain_run({**RATIOS, "barrier": 0.82, "in_one_call": 0.86}))
    assert (found.part("wait").value, found.part("host").value) == (
        pytest.approx(0.12, abs=0.005),
        pytest.approx(0.04, abs=0.005),
    )
    assert sum(part.value for part in found.parts) == pytest.approx(1)


TRACED = {"compute": 0.5, "update": 0.05, "communication": 0.2, "input": 0.1, "rest": 0.15}


def test_a_trace_stands_beside_what_the_arms_tell_of_the_same_part_and_differs_outside_of_the_interval() -> None:
    [found] = explanations_of(explain_run(traced=TRACED))
    by_arms = {part.by_arms.name: round(100 * part.by_arms.value) for part in found.traced}
    assert by_arms == {"compute": 50, "update": 5, "communication": 30, "input": 10, "rest": 5}
    assert {part.by_arms.name for part in found.traced if part.differs} == {"communication", "rest"}


def test_where_a_trace_cannot_tell_what_adds_up_from_what_computes_it_tells_the_input_alone() -> None:
    plain = {name: share for name, share in TRACED.items() if name != "communication"}
    [found] = explanations_of(explain_run(traced=plain))
    assert [part.by_arms.name for part in found.traced] == ["input"]


def test_a_machine_that_drifts_by_half_from_block_to_block_changes_no_share() -> None:
    [found] = explanations_of(explain_run(noise=[0.0] * 4))
    part = found.part("communication")
    assert (part.low, part.high) == (pytest.approx(0.3), pytest.approx(0.3))


def test_the_part_that_is_clearly_the_largest_binds_the_step_and_says_how_much_there_is_to_win() -> None:
    [found] = explanations_of(explain_run())
    part = found.part("communication")
    assert found.bound_by == "communication"
    assert part.high is not None
    assert part.most_gain == pytest.approx(1 / (1 - part.high))


def test_two_parts_of_which_neither_is_clearly_larger_are_called_mixed() -> None:
    [found] = explanations_of(explain_run(RATIOS | {"no_input": 0.8, "no_reduction": 0.8}))
    assert found.bound_by == "mixed"


def test_a_part_that_counts_is_no_verdict_beside_one_of_which_nobody_knows_whether_it_takes_more() -> None:
    [found] = explanations_of(explain_run(COMPUTES))
    certain = with_parts(found, input=(0.12, 0.118, 0.122))
    assert certain.bound_by == "input"
    beside = with_parts(certain, communication=(0.16, -0.007, 0.327))
    assert beside.bound_by == "undecided"
    assert [part.name for part in beside.open_parts] == ["communication"]
    assert with_parts(certain, communication=(0.08, 0.043, 0.117)).bound_by == "input"
    assert with_parts(certain, communication=(0.08, 0.042, 0.118)).bound_by == "undecided"
    assert with_parts(certain, communication=(0.16, 0.007, 0.313)).bound_by == "mixed"


def test_parts_that_overlap_by_a_tenth_leave_undecided_what_binds_the_step() -> None:
    [found] = explanations_of(explain_run(COMPUTES | {"forward_backward": 1.45, "alone": 1.43}))
    assert found.part("unexplained").value == pytest.approx(-0.45, abs=0.01)
    assert found.bound_by == "undecided"
    assert found.open_parts == []
    [computes] = explanations_of(explain_run(COMPUTES))
    assert with_parts(computes, unexplained=(-0.02, -0.099, 0.08)).bound_by == "compute"
    reaches = with_parts(computes, unexplained=(-0.02, -0.1, 0.08))
    assert reaches.bound_by == "undecided"
    assert [part.name for part in reaches.open_parts] == ["unexplained"]


def test_a_part_that_is_below_0_by_a_tenth_beyond_doubt_hides_what_binds_the_step() -> None:
    [found] = explanations_of(explain_run(COMPUTES))
    assert with_parts(found, input=(-0.1, -0.3, -0.09)).bound_by == "compute"
    below = with_parts(found, input=(-0.2, -0.3, -0.1))
    assert below.bound_by == "undecided"
    assert with_parts(below, communication=(0.3, 0.2, 0.4)).bound_by == "communication"


CALLED: Mapping[str, float] = COMPUTES | {"empty": 0.3, "in_one_call": 0.97}
"""Calling it takes 30 % by itself, and several steps in one call save 3 %."""


def test_dispatch_does_not_bind_a_step_that_several_in_one_call_make_no_faster() -> None:
    [found] = explanations_of(explain_run(CALLED))
    assert found.part("dispatch").value == pytest.approx(0.3, abs=0.01)
    assert found.bound_by == "compute"
    assert found.gain_without(found.part("dispatch")) is None
    [faster] = explanations_of(explain_run({**CALLED, "in_one_call": 0.7}))
    assert faster.bound_by == "dispatch"
    assert faster.gain_without(faster.part("dispatch")) == pytest.approx(1 / 0.7, abs=0.02)


BY_HOST: Mapping[str, float] = COMPUTES | {"empty": 0.05, "in_one_call": 0.7}
"""Calling it takes 5 % by itself, and several steps in one call save 30 %."""


def test_what_several_steps_in_one_call_save_binds_a_step_by_its_dispatch() -> None:
    [found] = explanations_of(explain_run(BY_HOST))
    assert found.bound_by == "dispatch"
    assert found.binding == found.part("host")
    assert found.gain_without(found.part("host")) == pytest.approx(1 / 0.7, abs=0.02)
    assert found.gain_without(found.part("dispatch")) is None, "the same time is not there twice"
    for share, name in ((0.2, "host"), (0.3, "dispatch"), (0.5, "dispatch")):
        [called] = explanations_of(explain_run({**BY_HOST, "empty": share}))
        assert called.binding is not None
        assert (called.bound_by, called.binding.name) == ("dispatch", name)
    [both] = explanations_of(explain_run({**BY_HOST, "no_update": 0.7}))
    assert both.bound_by == "mixed"


def test_a_hosts_share_that_may_bind_the_step_leaves_undecided_what_does() -> None:
    [found] = explanations_of(explain_run(COMPUTES | {"in_one_call": 0.93}))
    [host] = found.within[-1:]
    assert (host.name, found.bound_by) == ("host", "compute")
    assert replace(found, within=(replace(host, low=None, high=None),)).bound_by == "compute", "of one block"
    wide = replace(found, within=(replace(host, low=0.03, high=0.11),))
    assert wide.bound_by == "undecided"
    assert [part.name for part in wide.open_parts] == ["host"]
    assert wide.blocks_needed is not None
    certain = with_parts(replace(wide, calls_are_free=False), dispatch=(0.2, 0.19, 0.21))
    assert (certain.bound_by, certain.binding) == ("dispatch", certain.part("dispatch"))


def test_windows_of_one_step_tell_nothing_of_several_in_one_call() -> None:
    def of_one_step(trial: TrialRecord) -> TrialRecord:
        assert trial.windows is not None
        return trial.model_copy(update={"windows": trial.windows.model_copy(update={"steps_per_window": 1})})

    assert explanations_of(changed(explain_run(CALLED), of_one_step))[0].bound_by == "dispatch"


def test_a_step_of_which_no_other_part_takes_a_tenth_is_bound_by_its_computation() -> None:
    [found] = explanations_of(explain_run(COMPUTES))
    assert found.bound_by == "compute"


def test_input_is_the_limit_where_its_pipeline_gives_less_than_the_step_takes_however_little_it_costs() -> None:
    slow = RATIOS | {"no_input": 0.96, "only_input": 0.995}
    [found] = explanations_of(explain_run(slow))
    assert found.headroom is not None
    assert found.headroom.value == pytest.approx(0.96 / 0.995, abs=0.002)
    assert (found.input_limit, found.bound_by) == ("now", "input"), "communication is 30 % of a step that would wait"
    assert [share.name for share in found.all_binding] == ["input"]


def test_a_pipeline_that_keeps_up_binds_a_step_by_what_it_costs_alone() -> None:
    [spare] = explanations_of(explain_run(RATIOS | {"only_input": 0.6}))
    assert spare.headroom is not None
    assert spare.headroom.value == pytest.approx(1.5, rel=0.01)
    assert (spare.input_limit, spare.bound_by) == ("later", "communication")
    waits = COMPUTES | {"no_input": 0.8, "forward_backward": 0.8, "alone": 0.78, "only_input": 0.6}
    [bursts] = explanations_of(explain_run(waits))
    assert (bursts.input_limit, bursts.bound_by) == ("later", "input")


@pytest.mark.parametrize(
    ("run", "limit"),
    [
        (explain_run(RATIOS | {"only_input": 0.9}), "undecided"),
        (explain_run(RATIOS | {"only_input": 1.0}, noise=[0.0]), "cannot_know"),
        (explain_run(), None),
        (explain_run(RATIOS | {"only_input": 1.0}, crashed={"only_input": "no file"}), None),
        (explain_run(RATIOS | {"only_input": 1.0}, crashed={"only_input": "no file"}, crashes=range(3)), None),
        (explain_run(RATIOS | {"only_input": 1.0}, crashed={"no_input": "no file"}, crashes=range(3)), None),
        (explain_run({name: RATIOS[name] for name in RATIOS if name != "no_input"} | {"only_input": 1.0}), None),
    ],
    ids=["as_fast", "one_block", "not_asked", "failed", "failed_as_often_as_not", "nothing_beside_it", "no_such_arm"],
)
def test_what_is_not_known_of_a_pipeline_limits_nothing(run: Run, limit: str | None) -> None:
    [found] = explanations_of(run)
    assert found.input_limit == limit
    assert found.bound_by != "input"


def test_a_step_whose_batches_waited_since_the_turns_of_others_is_bound_by_its_pipeline_all_the_same() -> None:
    [found] = explanations_of(explain_run(RATIOS | {"no_input": 0.995, "only_input": 1.2}))
    assert (found.outpaced, found.input_limit, found.bound_by) == (True, "now", "input")
    [slower] = explanations_of(explain_run(RATIOS | {"only_input": 0.995}))
    assert (slower.outpaced, slower.input_limit) == (False, "now")


def test_before_its_end_a_run_says_of_no_pipeline_that_it_is_the_limit() -> None:
    [found] = explanations_of(explain_run(RATIOS | {"only_input": 1.0}))
    so_far = replace(found, judged=False)
    assert (so_far.input_limit, so_far.bound_by) == ("not_judged", "not_judged")


def test_where_noise_could_hide_a_tenth_of_the_step_nothing_is_decided() -> None:
    [found] = explanations_of(explain_run(COMPUTES | {"empty": 0.13}, noise=[0.1, -0.1, 0.12, -0.12, 0.0]))
    assert found.bound_by == "undecided"


@pytest.mark.parametrize("arm", ["no_input", "no_reduction", "no_update", "forward_backward", "empty", "alone"])
def test_where_a_part_is_not_known_nothing_is_said_to_take_less_than_a_tenth(arm: str) -> None:
    [found] = explanations_of(explain_run(COMPUTES, crashed={arm: "no room"}))
    assert found.bound_by == "undecided"
    assert found.untold
    assert all(lacks == (arm,) for lacks in found.untold.values())


def test_a_tenth_that_no_part_has_leaves_undecided_what_binds_the_step() -> None:
    [found] = explanations_of(explain_run(COMPUTES | {"forward_backward": 0.62, "alone": 0.6}))
    assert found.part("unexplained").value == pytest.approx(0.38, abs=0.01)
    assert found.bound_by == "undecided"


LESS_TOLD: Mapping[str, float] = {"forward_backward": 0.4, "forward": 0.2, "alone": 0.3}
"""In place of RATIOS', these leave 15 % unexplained."""


@pytest.mark.parametrize(("ratios", "crashed"), [(LESS_TOLD, {}), ({}, {"no_input": "no room"})])
def test_a_part_that_surely_counts_binds_the_step_whatever_is_not_known(
    ratios: Mapping[str, float], crashed: Mapping[str, str]
) -> None:
    [found] = explanations_of(explain_run({**RATIOS, **ratios}, crashed=crashed))
    assert found.bound_by == "communication"
    [several] = explanations_of(explain_run({**RATIOS, **ratios, "no_update": 0.7}, crashed=crashed))
    assert several.bound_by == "mixed"


@pytest.mark.parametrize(
    ("ratios", "crashed"), [({"forward_backward": 0.6, "alone": 0.58}, {}), ({}, {"no_input": "no room"})]
)
def test_a_part_that_may_be_less_than_a_tenth_is_no_verdict_beside_what_is_not_known(
    ratios: Mapping[str, float], crashed: Mapping[str, str]
) -> None:
    whole, noise = {**COMPUTES, "no_reduction": 0.89, "forward_backward": 0.89, "alone": 0.87}, [8 * n for n in STEADY]
    [told] = explanations_of(explain_run(whole, noise))
    assert told.part("communication").counts
    assert (told.part("communication").low or 0) < COUNTS
    assert told.bound_by == "communication"
    [found] = explanations_of(explain_run({**whole, **ratios}, noise, crashed=crashed))
    assert found.bound_by == "undecided"


def test_one_replica_has_no_communication_that_could_be_unknown() -> None:
    run = explain_run({name: ratio for name, ratio in COMPUTES.items() if name not in ("no_reduction", "alone")})
    plan = run.manifest.part(ExplainPlan)
    single = plan.model_copy(update={"families": [plan.families[0].model_copy(update={"alone": None})]})
    [found] = explanations_of(replace(run, manifest=run.manifest.model_copy(update={"explain": single})))
    assert (found.bound_by, found.untold) == ("compute", {})


def test_one_block_gives_shares_without_intervals_and_no_decision() -> None:
    [found] = explanations_of(explain_run(noise=STEADY[:1]))
    assert found.part("communication").value == pytest.approx(0.3)
    assert found.part("communication").high is None
    assert found.bound_by == "undecided"


def test_an_instrument_that_could_not_be_built_is_named_and_the_rest_is_explained() -> None:
    [found] = explanations_of(explain_run(crashed={"empty": "instrument 'empty': it computes 1 MatMul"}))
    assert found.lacking == {"empty": "unsupported: instrument 'empty': it computes 1 MatMul"}
    told = {part.name for part in found.parts}
    assert {"input", "communication", "update", "contention"} <= told
    assert not told & {"dispatch", "compute", "unexplained"}


@pytest.mark.parametrize("arm", ["empty", "whole"])
def test_an_arm_that_failed_once_costs_a_block_and_no_part(arm: str) -> None:
    [found] = explanations_of(explain_run(crashed={arm: "no room"}, crashes=range(1, 2)))
    assert found.lacking == {}
    assert (found.blocks, found.of_blocks) == (len(STEADY) - 1, len(STEADY))
    assert found.part("dispatch").value == pytest.approx(0.05, abs=0.01)


def test_an_arm_that_failed_as_often_as_not_gives_nothing() -> None:
    [found] = explanations_of(explain_run(crashed={"empty": "no room"}, crashes=range(3)))
    assert found.lacking == {"empty": "unsupported: no room"}
    assert found.blocks == len(STEADY)


def test_an_arm_of_no_part_costs_the_parts_no_block() -> None:
    [found] = explanations_of(explain_run(crashed={"forward": "no room"}, crashes=range(2)))
    assert (found.blocks, found.part("communication").blocks) == (len(STEADY), len(STEADY))
    assert {part.name: part.blocks for part in found.within} == {"forward": 3, "backward": 3, "hidden": 5}


def test_an_arm_that_was_given_up_is_lacking_and_costs_no_block() -> None:
    [found] = explanations_of(explain_run(crashed={"empty": "it computes"}, crashes=range(3, 5)))
    assert found.lacking == {"empty": "unsupported: it computes"}
    assert (found.blocks, found.of_blocks) == (len(STEADY), len(STEADY))
    may_pass = changed(
        explain_run(crashed={"empty": "it is held"}, crashes=range(4, 5)),
        lambda trial: trial.model_copy(update={"may_pass": not trial.measured}),
    )
    assert explanations_of(may_pass)[0].lacking == {}


def changed(run: Run, change: Callable[[TrialRecord], TrialRecord]) -> Run:
    return replace(run, trials=[change(trial) for trial in run.trials])


def shares(run: Run) -> Mapping[str, float]:
    [found] = explanations_of(run)
    return {part.name: part.value for part in (*found.parts, *found.within)}


def test_arms_that_memory_parted_are_held_against_the_whole_step_of_their_own_group() -> None:
    run = explain_run()
    parted = {"whole", "forward_backward", "empty", "alone"}
    again = [scaled(trial, 1.5) for trial in run.trials if trial.block == 1 and trial.side in parted]
    first = [trial for trial in run.trials if not (trial.block == 1 and trial.side in parted - {"whole"})]
    second = [trial.model_copy(update={"group": "b1-parted"}) for trial in again]
    assert shares(replace(run, trials=[*first, *second])) == pytest.approx(shares(run))


def test_an_arm_that_fails_where_its_block_runs_again_is_held_against_the_step_that_it_ran_beside() -> None:
    run = explain_run()
    again = [
        scaled(trial, 2).model_copy(update={"attempt": 2, "group": "b1-again"})
        for trial in run.trials
        if trial.block == 1 and trial.side != "empty"
    ]
    assert shares(replace(run, trials=[*run.trials, *again])) == pytest.approx(shares(run))


def with_communication(ends: tuple[float, float, float]) -> Explanation:
    [found] = explanations_of(explain_run(COMPUTES))
    return with_parts(found, communication=ends)


@pytest.mark.parametrize(
    ("ends", "half_width"), [((0.07, 0.03, 0.11), 0.03), ((0.15, -0.01, 0.31), 0.15), ((-0.01, -0.2, 0.18), 0.11)]
)
def test_so_many_trials_are_named_that_an_interval_around_the_same_value_decides(
    ends: tuple[float, float, float], half_width: float
) -> None:
    found = with_communication(ends)
    assert found.bound_by == "undecided"
    assert found.blocks_needed is not None

    def half(count: int) -> float:
        return (ends[2] - ends[0]) * t_quantile(count - 1) / t_quantile(4) * (5 / count) ** 0.5

    assert half(found.blocks_needed) < half_width <= half(found.blocks_needed - 1)
    assert found.too_near == []


def test_of_a_part_too_near_a_tenth_no_number_of_trials_is_named() -> None:
    near = with_communication((0.099, 0.06, 0.138))
    assert near.bound_by == "undecided"
    assert (near.blocks_needed, [part.name for part in near.too_near]) == (None, ["communication"])
    assert MOST_TRIALS == 100


def test_beside_what_stays_hidden_a_part_needs_all_of_its_interval_above_a_tenth() -> None:
    wide = with_communication((0.25, -0.05, 0.55))
    hidden = with_parts(wide, unexplained=(0.3, 0.25, 0.35))
    assert wide.blocks_needed is not None
    assert hidden.blocks_needed is not None
    assert hidden.blocks_needed > wide.blocks_needed


def test_a_part_is_told_by_an_interval_that_holds_the_truth_in_95_of_100_runs_and_a_fifth_shorter_would_not() -> None:
    import numpy as np

    generator = np.random.default_rng(5)
    runs = [explain_run(noise=list(generator.normal(0, 0.02, 8))) for _ in range(120)]
    parts = [explanations_of(run)[0].part("input") for run in runs]
    held = sum(part.low <= 0.1 <= part.high for part in parts if part.low is not None and part.high is not None)
    shorter = sum(abs(part.value - 0.1) <= 0.8 * (part.high - part.value) for part in parts if part.high is not None)
    assert shorter < 0.90 * len(runs) <= held


def test_a_run_of_another_kind_has_no_explanation() -> None:
    with pytest.raises(UsageError, match="is a run of sweep"):
        explanations_of(sweep_run("swept"))
