"""The plan of a run of faults: which jobs, when the fault comes, and what it is done to."""

import signal
from itertools import groupby

import pytest

from harness.protocol.messages import Membership, Request
from harness.record.faults import PlannedFault
from harness.run.kinds.faults.crew import Crew, Hand
from harness.run.kinds.faults.scenarios import inapplicable, plan_jobs, strike_of
from harness.run.launchers.base import memberships_of, tasks_of
from harness.spec.faults import FaultName, Faults, faults_from

ONE_PROCESS = ("one_device", "mirrored", "central_storage", "dtensor")
SETTINGS = faults_from({"repeats": 2, "checkpoint_every": [0, 10, 20]})


def planned(settings: Faults = SETTINGS) -> list[PlannedFault]:
    return plan_jobs(settings).faults.jobs


def test_every_strategy_meets_every_fault_with_every_interval_in_every_repeat() -> None:
    jobs = planned()
    assert len({(job.scenario, job.repeat) for job in jobs}) == len(jobs) == 2 * 3 * (7 * 3 + 2)
    assert [repeat for repeat, _ in groupby(jobs, key=lambda job: job.repeat)] == [0, 1]


def test_undisturbed_jobs_are_only_run_where_there_is_a_checkpoint_to_pay_for() -> None:
    assert {job.checkpoint_every for job in planned() if job.fault == "none"} == {10, 20}
    without = planned(faults_from({"checkpoint_every": [0], "repeats": 1}))
    assert {job.checkpoint_every for job in without if job.fault == "none"} == {0}


def test_a_fault_comes_at_the_same_step_whatever_the_interval_and_at_another_in_another_repeat() -> None:
    steps: dict[tuple[str, str, int], set[int | None]] = {}
    for job in planned():
        steps.setdefault((job.cell_id, job.fault, job.repeat), set()).add(job.fault_step)
    assert all(len(found) == 1 for found in steps.values())
    disturbed = {key: found.pop() for key, found in steps.items() if key[1] != "none"}
    assert all(33 <= (step or 0) <= 66 for step in disturbed.values())
    assert any(disturbed[(*key[:2], 0)] != disturbed[(*key[:2], 1)] for key in disturbed)


def test_the_same_seed_gives_the_same_sealed_plan_and_another_seed_another() -> None:
    assert plan_jobs(SETTINGS).plan == plan_jobs(SETTINGS).plan
    other = SETTINGS.model_copy(update={"seed": 2})
    assert plan_jobs(SETTINGS).plan.sha256 != plan_jobs(other).plan.sha256


def test_jobs_of_a_model_of_text_are_on_text() -> None:
    settings = faults_from({"strategy": ["multi_worker_mirrored"], "model": "gpt"})
    assert {cell.data for cell in plan_jobs(settings).cells} == {"text"}


def test_all_strategies_have_as_many_workers() -> None:
    cells = {cell.strategy: cell for cell in plan_jobs(faults_from({"workers": 3, "ps": 2})).cells}
    assert {name: cell.replicas_in_sync for name, cell in cells.items()} == dict.fromkeys(cells, 3)
    assert len(tasks_of(cells["mirrored"])) == 1
    assert len(tasks_of(cells["multi_worker_mirrored"])) == 3
    assert len(tasks_of(cells["parameter_server"])) == 6


def test_a_strategy_that_is_one_process_has_as_many_replicas_as_others_workers_or_the_most_it_takes() -> None:
    cells = plan_jobs(faults_from({"strategy": list(ONE_PROCESS), "workers": 3})).cells
    assert {cell.strategy: cell.replicas for cell in cells} == {
        "one_device": 1,
        "mirrored": 3,
        "central_storage": 3,
        "dtensor": 3,
    }
    assert {len(tasks_of(cell)) for cell in cells} == {1}
    assert next(cell.mesh for cell in cells if cell.strategy == "dtensor") == "batch:3"
    assert {inapplicable(cell, "cut_link") for cell in cells} == {
        f"{name} is one process: it has no link to others" for name in ONE_PROCESS
    }


def test_one_run_has_the_jobs_of_several_engines_with_as_many_workers_each() -> None:
    asked = faults_from({"engine": ["tensorflow", "torch", "jax", "horovod"], "workers": 3, "repeats": 1})
    plan = plan_jobs(asked)
    assert {(cell.engine, cell.strategy): len(tasks_of(cell)) for cell in plan.cells} == {
        ("tensorflow", "mirrored"): 1,
        ("tensorflow", "multi_worker_mirrored"): 3,
        ("tensorflow", "parameter_server"): 5,
        ("torch", "data_parallel"): 3,
        ("jax", "data_parallel"): 1,
        ("jax", "multi_process"): 3,
        ("horovod", "data_parallel"): 3,
    }
    assert {cell.replicas_in_sync for cell in plan.cells} == {3}
    scenarios = [job.scenario for job in plan.faults.jobs]
    assert len({*scenarios}) == len(scenarios)
    assert {"torch/data_parallel/kill_worker/20", "horovod/data_parallel/kill_worker/20"} < {*scenarios}
    assert plan.faults.settings.strategy == [
        "mirrored",
        "multi_worker_mirrored",
        "parameter_server",
        "data_parallel",
        "multi_process",
    ]


@pytest.mark.parametrize(
    ("strategy", "fault", "reason"),
    [
        ("mirrored", "kill_ps", "mirrored has no parameter servers"),
        ("multi_worker_mirrored", "kill_ps", "multi_worker_mirrored has no parameter servers"),
        ("mirrored", "cut_link", "mirrored is one process: it has no link to others"),
        ("mirrored", "freeze_ps", "mirrored has no parameter servers"),
        ("multi_worker_mirrored", "cut_link", None),
        ("parameter_server", "freeze_ps", None),
        ("parameter_server", "kill_ps", None),
    ],
)
def test_what_makes_no_sense_has_a_reason(strategy: str, fault: str, reason: str | None) -> None:
    cell = next(cell for cell in plan_jobs(SETTINGS).cells if cell.strategy == strategy)
    assert inapplicable(cell, fault) == reason


class Signalled(Crew):
    """Notes what is sent to whom."""

    def __init__(self, members: list[Membership]) -> None:
        super().__init__([Hand(member.name, member, None, None, child=object()) for member in members])  # type: ignore[arg-type]
        self.sent: list[tuple[str, int]] = []

    def signal(self, hand: Hand, number: int) -> None:
        self.sent.append((hand.name, number))


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        ("kill_worker", [("worker 1", signal.SIGKILL)]),
        ("kill_ps", [("ps 0", signal.SIGKILL)]),
        ("freeze_worker", [("worker 1", signal.SIGSTOP)]),
        ("freeze_ps", [("ps 0", signal.SIGSTOP)]),
        ("sigterm", [("worker 1", signal.SIGTERM)]),
        ("restart", [(name, signal.SIGKILL) for name in ("coordinator", "worker 0", "worker 1", "ps 0")]),
    ],
)
def test_a_fault_hits_one_of_its_kind(fault: FaultName, sent: list[tuple[str, int]]) -> None:
    cell = next(cell for cell in plan_jobs(SETTINGS).cells if cell.asynchronous)
    request = Request(cell=cell, seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1)
    members = memberships_of(request, {task: f"h:{number}" for number, task in enumerate(tasks_of(cell))})
    job = next(job for job in planned() if job.fault == fault and job.cell_id == cell.cell_id)
    first = strike_of(job, SETTINGS.model_copy(update={"target": "first"}), members, None)
    assert first is not None
    assert first.targets[0] == {"kill_ps": "ps 0", "freeze_ps": "ps 0", "restart": "coordinator"}.get(fault, "worker 0")
    strike = strike_of(job, SETTINGS, members, None)
    assert strike is not None
    crew = Signalled(members)
    strike.hits(crew)
    assert crew.sent == sent
    if fault.startswith("freeze"):
        assert strike.heals is not None
        strike.heals(crew)
        assert crew.sent[-1] == (strike.targets[0], signal.SIGCONT)
        crew.named(strike.targets[0]).child = None  # ended meanwhile
        strike.heals(crew)
        assert len(crew.sent) == 2
