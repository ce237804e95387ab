"""Runs of `explain` with known truth: how long each arm takes of the whole step, block by block."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.explain import Explanation
from harness.record import Run
from harness.record.cluster import AsynchronousUpdates
from harness.record.explain import (
    ALONE,
    EMPTY,
    NO_INPUT,
    NO_REDUCTION,
    NO_UPDATE,
    ONLY_INPUT,
    WHOLE,
    ExplainPlan,
    FamilyRecord,
)
from harness.record.manifest import PlanRecord
from harness.record.trial import TraceRecord
from harness.run.kinds import explain as explain_kind
from harness.run.kinds.explain import ExplainRun, alone_of, pipeline_of
from harness.spec.cell import TrainingCell, trained
from tests.comparisons import MIRRORED, as_run, scaled
from tests.run.fakes import FEEDS_WELL
from tests.synthetic import computing, make_run

RATIOS = {
    "whole": 1.0,
    "no_input": 0.9,
    "no_reduction": 0.7,
    "no_update": 0.95,
    "forward_backward": 0.55,
    "forward": 0.2,
    "empty": 0.05,
    "alone": 0.45,
    "reduction": 0.42,
}
"""Input 10, communication 30, update 5, dispatch 5, contention 10, compute 40 %: together the whole step. The sums by
themselves take 37 %, so 7 % of a step hide behind it."""
QUIET = dict.fromkeys(["whole", "no_input", "no_reduction", "no_update", "forward_backward"], 1.0)
"""Of which nothing but what computes takes time."""
FEW = (WHOLE, NO_INPUT, NO_REDUCTION, NO_UPDATE, EMPTY)
"""Arms that tell how much of a step is input, communication, update and dispatch."""
STEADY = (0.0, 0.002, -0.002, 0.001, -0.001)


def one_block_each(patch: pytest.MonkeyPatch) -> None:
    """Have runs measure one block of each cell: what more of them add, the ones here show."""
    patch.setattr(ExplainRun, "_left", lambda run: range(len(run.plan.families)))


def with_arms(patch: pytest.MonkeyPatch, arms: Callable[[TrainingCell], Collection[str]]) -> None:
    """Have runs measure of each cell the `arms` that it has of those named."""
    made: Any = explain_kind._family

    def family(cell: TrainingCell, engine: str) -> FamilyRecord:
        whole: FamilyRecord = made(cell, engine)
        return whole.model_copy(update={"arms": [arm for arm in whole.arms if arm in arms(cell)]})

    patch.setattr(explain_kind, "_family", family)


def explain_run(
    ratios: Mapping[str, float] = RATIOS,
    noise: Sequence[float] = STEADY,
    crashed: Mapping[str, str] | None = None,
    crashes: range | None = None,
    at_once: int = 1,
    passed: Mapping[int, int] | None = None,
    traced: Mapping[str, float] | None = None,
    computes: Sequence[float] = (),
) -> Run:
    """A run of one cell. In block b arm x takes ratios[x] + noise[b + its number] of the whole step's time, which
    itself differs from block to block; those of `crashed` are unsupported for the reason given,
    in every block or in `crashes`. `passed` says how many updates had how many others pass, of workers `at_once`;
    `traced` how many seconds of a step each part has in a profile of the first trial; `computes` how many each worker
    computes alone."""
    manifest, [template] = make_run([MIRRORED], blocks=1, faults=False)
    cell, alone, pipeline = trained(MIRRORED), alone_of(trained(MIRRORED)), pipeline_of(trained(MIRRORED), "tensorflow")
    assert pipeline is not None
    names, trials = list(ratios), []
    for block in range(len(noise)):
        for number, name in enumerate(names):
            wobble = 0.0 if name == "whole" else noise[(block + number) % len(noise)]
            record = scaled(template, (1 + 0.3 * block) * (ratios[name] + wobble))
            of = {ALONE: alone, ONLY_INPUT: pipeline}.get(name, cell)
            place = {"block": block, "group": f"b{block}", "side": name, "order": number}
            record = record.model_copy(update={"cell": of, "cell_id": of.cell_id, **place})
            if name == ONLY_INPUT:
                checks = FEEDS_WELL.checks
                record = record.model_copy(update={"checks": checks, "status": "unproved", "reason": checks.unproved})
            if (reason := (crashed or {}).get(name)) and (crashes is None or block in crashes):
                gone = ("windows", "step_time_s", "throughput_examples_per_s", "cpu_seconds_per_example")
                record = record.model_copy(
                    update={"status": "unsupported", "phase": "check", "reason": reason, **dict.fromkeys(gone)}
                )
            if passed and name == "whole":
                updates = AsynchronousUpdates(scheduled=100, applied=100, staleness=dict(passed))
                record = record.model_copy(update={"updates": updates})
            if traced is not None and name == "whole" and not block:
                profile = TraceRecord(path="traces/one", steps=5, bytes=1, parts=dict(traced) or None)
                record = record.model_copy(update={"trace": profile})
            trials.append(computing(record, *computes) if computes else record)
    ids = {"cell_id": cell.cell_id, "alone": alone.cell_id, "pipeline": pipeline.cell_id}
    family = FamilyRecord(**ids, arms=names, at_once=at_once)
    return as_run(
        manifest,
        trials,
        "explain-run",
        cells=[cell, alone, pipeline],
        plans=[PlanRecord.sealed(1, 1, [[names]] * len(noise))],
        explain=ExplainPlan(families=[family], blocks=max(2, len(noise))),
    )


def with_parts(found: Explanation, **ends: tuple[float, float, float]) -> Explanation:
    """The same with these parts' values and intervals (value, low, high)."""
    parts = [
        replace(part, value=ends[part.name][0], low=ends[part.name][1], high=ends[part.name][2])
        if part.name in ends
        else part
        for part in found.parts
    ]
    return replace(found, parts=tuple(parts))
