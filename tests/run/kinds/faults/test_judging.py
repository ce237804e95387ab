"""How a job's history becomes its record: which status, and what counts as right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.protocol.state import VariableState
from harness.record.faults import Detection, FaultRecord, PlannedFault, UpdateCounts
from harness.run.kinds.faults.history import History
from harness.run.kinds.faults.judging import Case, UndisturbedState, fault_record, unsupported
from harness.trial.job_state import read_state, write_state
from tests.record.examples import cell

STEPS = 100
INITIAL = np.zeros(4, np.float32)
RIGHT = np.full(4, 0.5, np.float32)


def case(fault: str = "kill_worker", asynchronous: bool = False) -> Case:
    of = cell(strategy="parameter_server", ps=1) if asynchronous else cell()
    job = PlannedFault.model_validate(
        {"scenario": f"mirrored/{fault}/20", "cell_id": of.cell_id, "fault": fault, "checkpoint_every": 20, "repeat": 0}
    )
    return Case("r", job, of, STEPS, ("worker 1",))


def history(resumed_from: int | None = 20, applied: int = STEPS, **counts: Any) -> History:
    """A job that was hit after step 30 at second 30, and began again ten seconds later."""
    steps = [(float(second), second) for second in range(1, 31)]
    trainings = [(0.0, 0)]
    if resumed_from is not None:
        trainings.append((40.0, resumed_from))
        steps += [(40.0 + number, resumed_from + number) for number in range(1, STEPS - resumed_from + 1)]
    else:
        steps += [(float(second), second) for second in range(31, STEPS + 1)]
    return History(
        began_s=0.0,
        ended_s=200.0,
        end="done",
        steps=steps,
        trainings=trainings,
        fault_s=30.5,
        detections=[Detection(by="process_end", who="worker 1", after_s=1.0)],
        updates=UpdateCounts(scheduled=STEPS, applied=applied, **counts),
    )


def state_file(folder: Path, value: Any = RIGHT) -> Path:
    path = folder / "state.npz"
    write_state(path, [VariableState("w", "weight", (INITIAL,))], [VariableState("w", "weight", (value,))])
    return path


@pytest.fixture
def reference(tmp_path: Path) -> UndisturbedState:
    (tmp_path / "reference").mkdir()
    return UndisturbedState.of([read_state(state_file(tmp_path / "reference"))])


def judged(path: Path, of: History, reference: UndisturbedState, **changes: Any) -> FaultRecord:
    return fault_record(case(**changes), of, path, lambda: reference)


def test_a_job_that_goes_on_from_a_checkpoint_with_the_right_weights_has_recovered(
    tmp_path: Path, reference: UndisturbedState
) -> None:
    record = judged(state_file(tmp_path), history(), reference)
    assert (record.status, record.steps_lost, record.resumed_from) == ("recovered", 10, 20)
    assert record.weights is not None
    assert (record.weights.right, record.weights.identical) == (True, True)
    assert record.useful_step_after_s == pytest.approx(20.5)  # second 51: step 31, not done before
    assert record.interruption is not None
    assert (record.interruption.detection_s, record.interruption.restart_s) == (1.0, 8.5)


def test_a_job_that_had_to_begin_at_step_0_has_lost_its_state(tmp_path: Path, reference: UndisturbedState) -> None:
    record = judged(state_file(tmp_path), history(resumed_from=0), reference)
    assert (record.status, record.steps_lost) == ("lost_state", 30)


def test_a_job_that_was_never_started_again_has_no_interruption(tmp_path: Path, reference: UndisturbedState) -> None:
    record = judged(state_file(tmp_path), history(resumed_from=None), reference)
    assert (record.status, record.interruption, record.steps_lost) == ("recovered", None, 0)
    assert record.useful_step_after_s == pytest.approx(0.5)


def test_weights_beyond_the_gates_margin_are_wrong_and_named(tmp_path: Path, reference: UndisturbedState) -> None:
    record = judged(state_file(tmp_path, RIGHT * np.float32(1.01)), history(), reference)
    assert record.status == "wrong_weights"
    assert record.reason == "against an undisturbed job: weight w differs by 1 % of its change"


def test_a_difference_as_between_undisturbed_jobs_is_no_fault(tmp_path: Path) -> None:
    states = []
    for number, factor in enumerate((1.0, 1.002)):
        (tmp_path / str(number)).mkdir()
        states.append(read_state(state_file(tmp_path / str(number), RIGHT * np.float32(factor))))
    record = judged(state_file(tmp_path, RIGHT * np.float32(1.01)), history(), UndisturbedState.of(states))
    assert record.status == "recovered"
    assert record.weights is not None
    assert record.weights.identical is False


def test_weights_that_are_no_numbers_are_wrong(tmp_path: Path, reference: UndisturbedState) -> None:
    record = judged(state_file(tmp_path, RIGHT * np.float32(np.nan)), history(), reference)
    assert record.status == "wrong_weights"


def test_an_update_too_many_is_wrong_even_with_the_right_weights(tmp_path: Path, reference: UndisturbedState) -> None:
    record = judged(state_file(tmp_path), history(applied=STEPS + 1, repeated=1), reference)
    assert record.status == "wrong_weights"


def test_asynchronous_updates_are_judged_by_whether_each_came_once(tmp_path: Path, reference: UndisturbedState) -> None:
    anything = state_file(tmp_path, RIGHT * np.float32(7))
    once = judged(anything, history(once=STEPS), reference, asynchronous=True)
    assert once.status == "recovered"
    twice = judged(
        anything, history(applied=STEPS + 1, once=STEPS - 1, repeated=1, torn=1), reference, asynchronous=True
    )
    assert twice.status == "wrong_weights"
    assert twice.reason == "of 100 updates: 1 applied twice, 1 begun more often than finished"


def test_an_undisturbed_job_that_is_right_is_just_that(tmp_path: Path, reference: UndisturbedState) -> None:
    of = history(resumed_from=None)
    of.fault_s, of.detections = None, []
    record = judged(state_file(tmp_path), of, reference, fault="none")
    assert (record.status, record.useful_step_after_s, record.standstill_s) == ("undisturbed", None, None)


def test_a_job_that_hung_is_not_judged_by_weights_it_does_not_have(tmp_path: Path, reference: UndisturbedState) -> None:
    of = history()
    of.end, of.reason, of.evidence = "hung", "not done within 120 s", "stacks"
    record = judged(tmp_path / "nowhere.npz", of, reference)
    assert (record.status, record.reason, record.evidence) == ("hung", "not done within 120 s", "stacks")


def test_what_was_not_run_has_its_reason_only() -> None:
    record = unsupported(case(), "no root")
    assert (record.status, record.reason, record.job_s) == ("unsupported", "no root", 0.0)
