"""Runs of `explain` of the engines beside TensorFlow, as tests ask for them and look at them."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.explain import Explanation, explanations_of
from harness.record.explain import ARMS
from harness.record.reading import Run, load_run
from harness.run.kinds.explain import ExplainSettings, explain
from harness.run.request import asked_matrix
from harness.spec import sweep_from
from harness.spec.cell import TrainingCell, trained
from tests.engines.sweeps import COMPILED_SOON
from tests.explained import one_block_each, with_arms
from tests.preloaded import handed_in
from tests.undisturbed import undisturbed


def one_block(
    folder: Path,
    axes: dict[str, Any],
    keeps: Callable[[TrainingCell], bool] = lambda _: True,
    shows: Callable[[Run], object] = lambda _: None,
    arms: Callable[[TrainingCell], Collection[str]] = lambda _: ARMS,
) -> Run:
    """One block, with the `arms` that it has of those named, of each cell of `axes` that is kept; windows are a step or
    two. It is measured again where it does not show what it is to (`undisturbed`)."""
    sweep = sweep_from({**axes, "trials": 2, "windows": 5, "max_warmup": 0, "window": 0.005})
    matrix = asked_matrix(sweep)
    asked = (trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base)
    cells = [cell for cell in asked if keeps(cell)]
    with handed_in(others=True), pytest.MonkeyPatch.context() as patch:
        for name, value in COMPILED_SOON.items():
            patch.setenv(name, value)
        one_block_each(patch)
        with_arms(patch, arms)
        return undisturbed(lambda: load_run(explain(ExplainSettings(sweep, cells), folder)), shows)


def explanation_of(run: Run, op: str) -> Explanation:
    """That of the one cell of a cross-device op."""
    [one] = [one for one in explanations_of(run) if one.cell.get("cross_device_op") == op]
    return one


def must_be_most(explained: Explanation, part: str) -> None:
    """No other part is half as long."""
    others = [one.value for one in explained.parts if one.name not in (part, "unexplained")]
    assert max(others) < explained.part(part).value / 2


def must_hold_what_was_planted(explained: Explanation, part: str, planted_s: float) -> None:
    """A step's part is as long as what was planted in it, and no more than the step has: a busy machine makes a sleep
    longer, and then the step too."""
    step_s = explained.step_time_s or 0
    part_s = explained.part(part).value * step_s
    assert part_s > planted_s / 2
    assert abs(step_s - part_s) < part_s / 2
