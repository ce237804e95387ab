"""The processors of a cluster are those of all its hosts, each counted once."""

from dataclasses import dataclass

from harness.protocol.messages import Membership, Outcome
from harness.record.trial import Resources
from harness.run.launchers import Seat
from harness.run.process.processors import resources_of

WORKERS = {"worker": [f"a:{i}" for i in range(4)]}
SERVED = {"chief": ["a:9"], "worker": ["a:1", "a:2"], "ps": ["a:3"]}


@dataclass
class ForkServer:
    """What a process is forked from."""

    machine: str


@dataclass
class Ended:
    """A process that has ended well."""

    seat: Seat
    outcome: Outcome | None


def process(host: str, physical: int, replicas: int = 1, task: str = "worker", index: int = 0) -> Ended:
    """One on a host with so many processors."""
    member = Membership(task=task, index=index, cluster=SERVED if task != "worker" else WORKERS)
    resources = Resources(logical_devices=["d"] * replicas, physical_devices=physical, shared=replicas > physical)
    return Ended(Seat(member, ForkServer(host)), Outcome(status="ok", resources=resources))


def found(*processes: Ended) -> tuple[int, bool]:
    """(processors, whether replicas share them)."""
    assert processes[0].outcome is not None
    resources = resources_of(processes, processes[0].outcome.resources)
    return resources.physical_devices, resources.shared


def test_workers_on_hosts_of_their_own_have_the_processors_of_all_of_them() -> None:
    assert found(*(process(f"host {i}", 2, index=i) for i in range(4))) == (8, False)


def test_sixteen_gpus_on_four_hosts_are_sixteen() -> None:
    assert found(*(process(f"host {i}", 4, replicas=4, index=i) for i in range(4))) == (16, False)


def test_the_cards_of_a_cluster_are_those_of_every_process_each_once() -> None:
    workers = [process("", 2, index=index) for index in range(3)]
    for worker, gpus in zip(workers, (["x"], ["y"], ["y"]), strict=True):
        assert worker.outcome is not None
        resources = worker.outcome.resources.model_copy(update={"gpus": gpus})
        worker.outcome = worker.outcome.model_copy(update={"resources": resources})
    assert workers[0].outcome is not None
    assert resources_of(workers, workers[0].outcome.resources).gpus == ["x", "y"]


def test_workers_on_one_machine_have_its_processors_once_and_share_them() -> None:
    assert found(*(process("", 2, index=i) for i in range(4))) == (2, True)


def test_replicas_share_where_one_host_has_too_few_however_many_others_have() -> None:
    assert found(process("a", 16), process("b", 1, index=1), process("b", 1, index=2)) == (17, True)


def test_parameter_servers_and_the_coordinator_are_not_what_replicas_compute_on() -> None:
    lead = process("a", 1, replicas=2, task="chief")
    servers = [process("b", 4, replicas=0), process("c", 4, replicas=0, index=1), process("d", 64, task="ps")]
    assert found(lead, *servers) == (8, False)
