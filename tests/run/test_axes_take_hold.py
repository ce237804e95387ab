"""Every axis takes hold: two real trials that differ in nothing else leave a record that shows it.

So does every key of a collective and of an input pipeline. An axis whose flag had no effect would pass every test of
names and groups. The entry says what in the record shows the axis, and what a machine may lack for it. Between two
trials of one cell nothing of it differs.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pydantic import BaseModel

from harness.record import Run, TrialRecord, load_run
from harness.run.kinds.measure import measure_matrix
from harness.run.progress import Quiet
from harness.run.turns import live
from harness.spec import sweep_from
from harness.spec.axes import TABLE
from harness.spec.entry import Axis
from harness.spec.expand import Matrix
from harness.spec.pipeline import PipelineCell
from harness.spec.work import Cell
from tests.axes import (
    KEYS_OF_COLLECTIVES,
    KEYS_OF_PIPELINES,
    OF_COLLECTIVES,
    OF_PIPELINES,
    collectives_of,
    pair_of,
    pipelines_of,
)
from tests.preloaded import handed_in

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("axes")]
ENGINE = "engine"
"""It has processes of its own: `tests/engines/test_several.py` sees that it takes hold, and the tests of an engine that
axes do which are tried with it."""
MODEL = "model"
"""Of a pipeline nothing that is recorded shows it: the gate holds each batch against what the model takes, and a model
that takes other data cannot be fed these (`tests/engines/tensorflow/test_pipelines.py`)."""
FAR_APART = 2.0
"""Measured figures differ between equal trials too: only a difference by such a factor shows anything."""
REPEATED = ("batch_size", "batch_scope", "ps")
"""Axes whose first cell is measured twice: by one device, by two, and by a worker and a server."""
SHOWING = sorted({place for axis in TABLE.values() for place in axis.shown_by if place.startswith("executed.")})
"""Places of what ran, which is the same in each trial of a cell."""

PAIRS: dict[str, tuple[Axis, Callable[[], tuple[Cell, Cell]]]] = {
    **{
        key: (axis, partial(pair_of, key))
        for key, axis in TABLE.items()
        if key != ENGINE and ENGINE not in axis.tried_with
    },
    **{
        f"collective {key}": (OF_COLLECTIVES[key], partial(collectives_of, key))
        for key in KEYS_OF_COLLECTIVES
        if key != ENGINE
    },
    **{
        f"pipeline {key}": (OF_PIPELINES[key], partial(pipelines_of, key))
        for key in KEYS_OF_PIPELINES
        if key not in (ENGINE, MODEL)
    },
}


def measured(cells: Iterable[Cell], folder: Path) -> Run:
    """One run, of one preloaded process, with a trial of each cell. No worker times what it computes alone, which
    nothing here reads."""
    settings = {"trials": 1, "windows": 5, "max_warmup": 0, "window": 0.005, "data_dir": str(folder / "data")}
    matrix = Matrix(tuple(dict.fromkeys(cells)))
    with handed_in(), mock.patch.object(live, "ALONE_BLOCKS", 0):
        return load_run(measure_matrix(sweep_from(settings), matrix, folder, ["pytest"], Quiet()))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of the cells of all pairs."""
    return measured((cell for _, pair in PAIRS.values() for cell in pair()), tmp_path_factory.mktemp("axes"))


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of those that are measured once more."""
    return measured((pair_of(key)[0] for key in REPEATED), tmp_path_factory.mktemp("again"))


def shown(trial: TrialRecord, place: str) -> Any:
    """What the record says there; of processes how many there are, since no two have one id."""
    value: Any = trial
    for part in place.split("."):
        value = getattr(value, part, None)
    return len(value) if isinstance(value, list) and value and isinstance(value[0], BaseModel) else value


def differ(a: Any, b: Any) -> bool:
    """Whether the two can only be of different values of the axis."""
    if isinstance(a, float) and isinstance(b, float):
        return max(a, b) >= FAR_APART * min(a, b)
    return bool(a != b)


@pytest.mark.parametrize(("entry", "pair"), PAIRS.values(), ids=PAIRS)
def test_an_axis_shows_in_what_is_recorded_of_a_trial(
    entry: Axis, pair: Callable[[], tuple[Cell, Cell]], run: Run
) -> None:
    by_cell = {trial.cell_id: trial for trial in run.trials}
    a, b = (by_cell[cell.cell_id] for cell in pair())
    missing = next((trial.reason for trial in (a, b) if trial.status == "unsupported"), None)
    if missing is not None and entry.lacking:
        pytest.skip(f"this machine lacks {entry.lacking}: {missing}")
    for trial in (a, b):
        races = trial.cell.get("strategy") == "parameter_server" and trial.cell.get("workers") > 1
        assert trial.status == ("unproved" if races or trial.cell.get("cut") else "ok"), trial.reason
        if isinstance(trial.cell, PipelineCell) and not trial.cell.cut:
            assert trial.checks.order is (True if trial.cell.deterministic else None)
    assert any(differ(shown(a, place), shown(b, place)) for place in entry.shown_by)


@pytest.mark.parametrize("key", REPEATED)
def test_between_two_trials_of_one_cell_nothing_differs_that_shows_an_axis(key: str, run: Run, again: Run) -> None:
    cell, _ = pair_of(key)
    [a], [b] = ([trial for trial in of.trials if trial.cell_id == cell.cell_id] for of in (run, again))
    assert a.executed.fingerprint
    assert not [place for place in SHOWING if differ(shown(a, place), shown(b, place))]
