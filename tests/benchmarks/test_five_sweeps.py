"""Sweeps in a row: each fastest cell is to be in all sets that may be the fastest, and each sweep in time."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.analysis import RunSummary, summarise
from harness.record.trial import TrialRecord
from tests.comparisons import scaled
from tests.goals import load
from tests.synthetic import make_cell, make_run

MIRRORED = make_cell("mirrored", 2)


@pytest.fixture(scope="module")
def goal() -> ModuleType:
    """benchmarks/goals/five_sweeps.py."""
    return load("five_sweeps")


def swept(name: str, times: float, **changes: Any) -> RunSummary:
    """A sweep of three cells, of which one takes `times` as long as it did, and its rival 1.02 times."""
    cells = [make_cell("none"), MIRRORED, make_cell("mirrored", 2, op="reduction_to_one_device")]

    def change(record: TrialRecord) -> TrialRecord:
        own = times if record.cell == MIRRORED else 1.02
        return scaled(record, own).model_copy(update={"run_id": name})

    return summarise(*make_run(cells, faults=False, change=change, run_id=name, **changes))


def test_sweeps_whose_fastest_cells_are_in_all_sets_keep_the_promise(goal: ModuleType) -> None:
    one, other = swept("one", 1.0, noise=0.05), swept("other", 1.02, noise=0.05, seed=2)
    sweeps = [goal.Swept(one, 250.0, 0), goal.Swept(other, 300.0, 0), goal.Swept(one)]
    assert len(sweeps[0].may_be_fastest) == 2
    assert sweeps[0].may_be_fastest[0] in sweeps[1].may_be_fastest
    assert goal.missed(sweeps) == []
    assert sweeps[0].row == ("one", "250 s", "0", one.by_id[sweeps[0].may_be_fastest[0]].label, "2 of 3")
    assert sweeps[2].row[1:3] == ("–", "–"), "what was not noted is not judged"


def test_a_fastest_cell_that_is_in_another_sweeps_set_no_longer_misses_it(goal: ModuleType) -> None:
    sweeps = [goal.Swept(swept(name, times)) for name, times in (("one", 0.8), ("two", 0.8), ("slow", 1.3))]
    assert goal.missed(sweeps) == [
        "the fastest cell of one is not in the set of slow",
        "the fastest cell of two is not in the set of slow",
        "the fastest cell of slow is not in the set of one, two",
    ]


def test_too_long_a_sweep_one_that_ended_badly_and_one_that_did_not_finish_miss_it(goal: ModuleType) -> None:
    good = swept("good", 0.8)
    assert goal.missed([goal.Swept(good, 300.6, 0)]) == ["good took 301 s"]
    assert goal.missed([goal.Swept(good, 20.0, 1)]) == ["good ended with 1"]
    assert goal.missed([]) == ["there is no sweep"]
    stopped = goal.Swept(swept("stopped", 0.8, status="interrupted"))
    assert stopped.row[3:] == ("–", "0 of 3")
    assert goal.missed([stopped]) == ["the fastest cell of stopped is not in the set of stopped"]


def test_kept_runs_are_read_with_what_was_noted_of_them(goal: ModuleType, tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell(), MIRRORED], faults=False)
    folder = tmp_path / manifest.run_id
    folder.mkdir()
    (folder / "run.json").write_text(manifest.model_dump_json(), encoding="utf-8")
    (folder / "trials.jsonl").write_text("".join(f"{trial.model_dump_json()}\n" for trial in trials), encoding="utf-8")
    [untold] = goal.kept(tmp_path)
    (tmp_path / goal.TIMES).write_text(json.dumps({manifest.run_id: [281.4, 0]}), encoding="utf-8")
    [told] = goal.kept(tmp_path)
    assert (untold.seconds, untold.exit) == (None, None)
    assert told.row == (manifest.run_id, "281 s", "0", "mirrored ×2 b32", "1 of 2")
    assert goal.kept(tmp_path / "nothing") == []
