"""A job's process, whatever engine trains: it goes on from what was saved, and says so."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import Unsupported
from harness.protocol.channel import Channel
from harness.protocol.engine import Ending
from harness.protocol.messages import JobOrder, JobReport, Membership, Outcome, Report, Request
from harness.protocol.state import VariableState
from harness.trial.ending import plain_ending
from harness.trial.job import SynchronousJob, Teller, run_job
from harness.trial.job_state import read_state
from harness.trial.same_work.engine import TrialsAlone
from tests.record.examples import cell

STEPS = 7
NOT_AGAIN = "Mine's trainings are not taken up again here"


class Adds:
    """A training whose only weight is what its steps' numbers add up to; it saves in `disk`."""

    def __init__(self, disk: dict[int, float], dies_at: int | None = None) -> None:
        self.disk, self.dies_at = disk, dies_at
        self.weight, self.done, self.met = 0.0, 0, 0

    def state(self) -> list[VariableState]:
        return [VariableState("weight", "weight", (np.float32([self.weight]),))]

    def updates(self) -> int:
        return self.done

    def step(self, number: int) -> None:
        if number == self.dies_at:
            raise RuntimeError("a peer is gone")
        self.weight, self.done = self.weight + number, self.done + 1

    def restore(self) -> int:
        self.done = max(self.disk, default=0)
        self.weight = self.disk.get(self.done, 0.0)
        return self.done

    def save(self, step: int) -> None:
        self.disk[step] = self.weight

    def checkpoint_bytes(self) -> int:
        return 8

    def listen(self, saved: Callable[[int], None]) -> None:
        raise Unsupported("nothing listens")

    def agree(self, value: float) -> float:
        self.met += 1
        return value


def request(folder: Path, member: Membership | None = None, **order: Any) -> Request:
    asked = JobOrder(**{"steps": STEPS, "checkpoint_every": 3, "folder": str(folder), **order, "state": f"{folder}/s"})
    known = {"cell": cell(), "seed": 1, "data_dir": "", "window_s": 0.1, "intra_op_threads": 1, "inter_op_threads": 1}
    return Request(**known, task="job", job=asked, member=member)


def ran(asked: Request, training: Adds) -> tuple[Outcome, list[JobReport]]:
    """How the process of a job ended, and what it told."""
    ours, theirs = socket.socketpair()
    with ours, theirs:

        def train(of: Request, teller: Teller) -> None:
            SynchronousJob(of, teller, training).run()

        outcome = run_job(asked, Channel(theirs), None, plain_ending, train)
        theirs.close()
        reports = [Report.model_validate_json(line) for line in ours.makefile()]
    return outcome, [report.job for report in reports if report.job is not None]


class Alone(TrialsAlone):
    """An engine whose trainer is what it is given."""

    title, clusters = "Mine", None

    def __init__(self, training: Any) -> None:
        self._training = training

    def trainer(self, request: Request) -> Any:
        return self._training

    def classify(self, error: Exception) -> Ending:
        return plain_ending(error)


def test_of_an_engine_every_training_is_a_job_that_can_be_taken_up_again_whatever_class_it_is_of(
    tmp_path: Path,
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for training, ends in ((Adds({}), ("ok", None)), (object(), ("unsupported", NOT_AGAIN))):
            outcome = Alone(training).tasks()["job"](request(tmp_path), Channel(theirs))
            assert (outcome.status, outcome.reason) == ends


def test_it_trains_to_its_last_step_and_saves_at_every_so_many(tmp_path: Path) -> None:
    disk: dict[int, float] = {}
    outcome, told = ran(request(tmp_path), Adds(disk))
    assert outcome.status == "ok"
    assert [(report.what, report.step) for report in told if report.what != "step"] == [
        ("training", 0),
        ("saved", 3),
        ("saved", 6),
        ("done", 7),
    ]
    assert [report.step for report in told if report.what == "step"] == [*range(1, STEPS + 1)]
    assert disk == {3: 0 + 1 + 2, 6: 15}
    state = read_state(tmp_path / "s")
    assert (state["0|weight weight"], state["initial|0"]) == (21, 0)


def test_one_that_was_broken_off_goes_on_from_its_newest_checkpoint_and_ends_the_same(tmp_path: Path) -> None:
    disk: dict[int, float] = {}
    outcome, _ = ran(request(tmp_path), Adds(disk, dies_at=5))
    assert (outcome.status, outcome.reason) == ("crashed", "RuntimeError: a peer is gone")
    outcome, told = ran(request(tmp_path), Adds(disk))
    assert (told[0].what, told[0].step) == ("training", 3)
    assert read_state(tmp_path / "s")["0|weight weight"] == 21
    assert told[-1].updates is not None
    assert (told[-1].updates.applied, told[-1].updates.lost) == (STEPS, 0)


def test_updates_that_a_checkpoint_forgot_are_counted_as_lost(tmp_path: Path) -> None:
    class Forgets(Adds):
        def restore(self) -> int:
            found = super().restore()
            self.done = 0
            return found

    _, told = ran(request(tmp_path), Forgets({3: 3.0}))
    assert told[-1].updates is not None
    assert (told[-1].updates.applied, told[-1].updates.lost) == (4, 3)


def test_of_several_processes_the_first_alone_writes_the_final_state(tmp_path: Path) -> None:
    second = Membership(task="worker", index=1, cluster={"worker": ["a:1", "b:1"]})
    outcome, told = ran(request(tmp_path, second), Adds({}))
    assert (outcome.status, told[-1].what) == ("ok", "done")
    assert not list(tmp_path.iterdir())


def test_windows_with_a_checkpoint_and_without_take_turns_and_all_meet_at_their_end(tmp_path: Path) -> None:
    training = Adds({})
    _, told = ran(request(tmp_path, cost_windows=2), training)
    cost = told[-1].cost
    assert cost is not None
    assert (len(cost.with_s), len(cost.without_s), cost.steps_per_window, cost.bytes) == (2, 2, 3, 8)
    assert {*training.disk} == {3, 6, STEPS + 3, STEPS + 12}  # with, without, without, with
    assert training.met == 5


@pytest.mark.parametrize("listens", [True, False])
def test_one_that_is_to_save_when_it_is_told_to_end_is_refused_where_nothing_listens(
    tmp_path: Path, listens: bool
) -> None:
    outcome, _ = ran(request(tmp_path, preemption=listens), Adds({}))
    assert (outcome.status, outcome.reason) == (("unsupported", "nothing listens") if listens else ("ok", None))
