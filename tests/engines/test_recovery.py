"""Checkpoints of the same work: a folder that is there whole or not at all, of which the newest two stay."""

from pathlib import Path

import pytest

from harness.trial.same_work.recovery import CheckpointFolders


def save(folder: Path, step: int) -> CheckpointFolders:
    found = CheckpointFolders(folder / "periodic")
    found.save(step, lambda place: (place / "state").write_text(f"of {step}") and None)
    return found


def test_the_newest_is_what_is_gone_back_to_and_the_one_before_stays(tmp_path: Path) -> None:
    for step in (3, 20, 100):
        found = save(tmp_path, step)
    assert found.newest == 100
    assert (found.place(100) / "state").read_text() == "of 100"
    assert found.bytes == len("of 100")
    assert sorted(path.name for path in tmp_path.rglob("step-*")) == ["step-100", "step-20"]


def test_one_that_is_killed_while_it_saves_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    found = save(tmp_path, 1)

    def dies(place: Path) -> None:
        (place / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.save(2, dies)
    assert found.newest == 1
    save(tmp_path, 2)  # over what was left unfinished
    assert found.newest == 2
    assert [path.name for path in found.place(2).iterdir()] == ["state"]


def test_without_a_checkpoint_a_job_begins_at_step_0(tmp_path: Path) -> None:
    found = CheckpointFolders(tmp_path / "periodic")
    assert (found.newest, found.bytes) == (0, 0)
