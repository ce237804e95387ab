"""Real clusters of real processes: what they compute is proved, and when one of them ends the trial says which."""

import functools
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psutil
import pytest

from harness.record.trial import TrialRecord
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended
from tests.record.examples import cell
from tests.run.process.clusters import live, measured, take_turns

Served = Callable[..., TrialRecord]
SYNCHRONOUS = {
    "strategy": "multi_worker_mirrored",
    "workers": 2,
    "replicas": 1,
    "data": "synthetic",
    "model": "mlp",
    "optimizer": "sgd",
}
SERVED = {
    "strategy": "parameter_server",
    "workers": 2,
    "replicas": 1,
    "ps": 1,
    "batch_size": 8,
    "global_batch_size": 8,
    "data": "synthetic",
    "model": "mlp",
    "optimizer": "sgd",
}
LONG = "tests.planted:long_loss_model"


@pytest.fixture(scope="module")
def served(preloaded: Callable[[], AbstractContextManager[None]]) -> Served:
    """The record of SERVED with other keys: a trial is run once, however many look at it."""

    @functools.cache
    def record(**keys: Any) -> TrialRecord:
        with preloaded(), Zygote() as zygote:
            return measured(zygote, **SERVED | keys)

    return record


@pytest.mark.slow
@pytest.mark.parametrize(("op", "replicas", "optimizer"), [("auto", 1, "adam"), ("ring", 2, "sgd")])
def test_two_workers_in_lock_step_sum_every_replicas_gradients_and_each_ones_times_are_kept(
    zygote: Zygote, op: str, replicas: int, optimizer: str
) -> None:
    keys = {"replicas": replicas, "global_batch_size": 64 * replicas, "optimizer": optimizer}
    record = measured(zygote, **SYNCHRONOUS | keys, cross_device_op=op)
    assert (record.status, record.reason) == ("ok", None)
    assert record.windows is not None
    assert record.cluster is not None
    assert len(record.windows.workers) == 2
    assert record.windows.seconds == [max(pair) for pair in zip(*record.windows.workers, strict=True)]
    assert [member.name for member in record.cluster.members] == ["worker 0", "worker 1"]
    assert [*record.executed.operations] == [f"CollectiveReduceV2[{'auto: ring' if op == 'auto' else op}]"]
    assert record.resources.logical_devices[-1].endswith(f"device:CPU:{replicas - 1}")


@pytest.mark.slow
def test_nccl_between_processors_is_unsupported_with_the_reason(zygote: Zygote) -> None:
    record = measured(zygote, **SYNCHRONOUS, cross_device_op="nccl")
    assert record.status == "unsupported"
    assert "NVIDIA GPUs" in str(record.reason)


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "model"), [("adam", "mlp"), ("sgd", LONG), ("momentum", "mlp")])
def test_locked_updates_reach_parameter_servers_every_one(served: Served, optimizer: str, model: str) -> None:
    record = served(model=model, optimizer=optimizer)
    assert record.measured, record.reason
    assert record.updates is not None
    assert (record.status, record.reason) == ("unproved", record.updates.unproved(2))
    assert record.updates.scheduled == record.updates.applied > 20
    assert (record.updates.lost, sum(record.updates.staleness.values())) == (0, record.updates.scheduled)
    assert any("[locked]" in name for name in record.executed.operations)


@pytest.mark.slow
def test_updates_that_others_pass_while_they_are_computed_count_as_stale(served: Served) -> None:
    both = served(model=LONG, optimizer="sgd")
    alone = served(workers=1, ps=2, partitioner="min_size", optimizer="sgd")
    assert both.updates is not None
    assert alone.updates is not None
    assert sum(count for passed, count in both.updates.staleness.items() if passed) > both.updates.scheduled / 4
    assert list(alone.updates.staleness) == [0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("partitioner", "optimizer", "workers"), [("fixed", "adam", 2), ("min_size", "sgd", 1), ("max_size", "sgd", 1)]
)
def test_variables_in_shards_are_updated_as_whole_ones_are(
    served: Served, partitioner: str, optimizer: str, workers: int
) -> None:
    record = served(workers=workers, ps=2, partitioner=partitioner, optimizer=optimizer)
    assert record.measured, record.reason
    assert record.status == ("ok" if workers == 1 else "unproved")


@pytest.mark.slow
def test_updates_of_a_keras_optimizer_that_were_lost_make_a_wrong_result_with_their_number(zygote: Zygote) -> None:
    record = measured(zygote, windows=5, **SERVED, updates="keras")
    assert (record.status, record.throughput_examples_per_s) == ("wrong_result", None)
    assert record.updates is not None
    assert record.updates.lost == record.updates.scheduled - record.updates.applied > 0
    assert f"{record.updates.scheduled} updates were scheduled and {record.updates.applied} were" in str(record.reason)


@pytest.mark.slow
def test_a_keras_optimizer_cannot_train_what_is_in_shards_and_the_record_says_so(zygote: Zygote) -> None:
    record = measured(zygote, **{**SERVED, "ps": 2}, updates="keras", partitioner="fixed")
    assert record.status == "unsupported"
    assert "Keras 3 cannot train a variable in shards" in str(record.reason)


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "name"), [(SYNCHRONOUS, "worker 1"), (SERVED, "worker 1"), (SERVED, "ps 0")])
def test_a_process_that_is_killed_ends_the_trial_which_says_who_it_was(
    zygote: Zygote, keys: dict[str, Any], name: str
) -> None:
    trial = live(zygote, cell(**keys))
    trial.start()
    trial.set_up()
    trial.measure_from(0)
    processes = trial.child.merged.processes
    [victim] = [process for process in processes if process.member.name == name]
    zygote.drain()
    pids = [process.child.pid for process in processes]
    victim.child.signal(signal.SIGKILL)
    with pytest.raises(Ended):
        take_turns(trial, 2)
    record = trial.record()
    assert (record.status, record.reason) == ("crashed", f"{name} ended by SIGKILL during steady")
    assert record.cluster is not None
    assert (record.cluster.launcher, record.cluster.isolated) == ("local", trial.child.merged.placement.isolated)
    assert {member.name for member in record.cluster.members} == {process.member.name for process in processes}
    assert all(member.phase for member in record.cluster.members)
    deadline = time.monotonic() + 10
    while any(psutil.pid_exists(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


@pytest.mark.slow
def test_a_worker_that_hangs_is_recorded_with_its_stacks_by_name(zygote: Zygote) -> None:
    trial = live(zygote, cell(**SYNCHRONOUS), timeout_s=20.0)
    trial.start()
    trial.set_up()
    trial.timeout_s = 2.0
    victim = trial.child.merged.processes[1]
    victim.child.signal(signal.SIGSTOP)
    with pytest.raises(Ended):
        trial.take_turn(0)
    record = trial.record()
    assert record.status == "timeout"
    assert str(record.reason).endswith("during warmup: worker 0 in warmup and worker 1 in warmup have not reported")
    assert "worker 0, in warmup" in str(record.evidence)
    assert "in quick_execute" in str(record.evidence), "the frames next to where it hangs are those that are kept"
    assert record.cluster is not None
    assert [member.phase for member in record.cluster.members] == ["warmup", "warmup"]


@pytest.mark.slow
def test_a_cluster_that_one_worker_does_not_join_says_who_has_not_reported(zygote: Zygote) -> None:
    trial = live(zygote, cell(**SYNCHRONOUS), timeout_s=3.0)
    trial.start()
    victim = trial.child.merged.processes[1]
    victim.child.signal(signal.SIGSTOP)
    with pytest.raises(Ended):
        trial.set_up()
    record = trial.record()
    assert record.status == "timeout"
    assert record.cluster is not None
    assert [member.name for member in record.cluster.members] == ["worker 0", "worker 1"]
    come_to = record.cluster.members[1].phase  # before it was stopped, which is up to the machine
    assert f"worker 1 in {come_to}" in str(record.reason)


@pytest.mark.slow
def test_workers_train_in_a_loopback_of_an_ordinary_users_namespace(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What anybody but root gets; the namespaces of trials before this one are given up."""
    from harness.run.network import NotAvailable, loopback, pool

    class OfAUser(loopback.PrivateLoopback):
        def __init__(self) -> None:
            self._namespace = loopback._ready(loopback.Namespace(as_user=True))
            self.hosts = [self._namespace.host(loopback.ADDRESS)]

    zygote.closing.close()
    monkeypatch.setattr(pool, "PrivateLoopback", OfAUser)
    try:
        OfAUser().close()
    except NotAvailable as error:
        pytest.skip(str(error))
    record = measured(zygote, windows=1, **SYNCHRONOUS)
    zygote.closing.close()
    assert (record.status, record.reason) == ("ok", None)
    assert record.cluster is not None
    assert record.cluster.isolated


def test_a_cluster_that_cannot_be_placed_is_unsupported_with_the_reason(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.run.launchers import local
    from harness.run.network import NotAvailable

    def refuse() -> None:
        raise OSError(98, "Address already in use")

    def no_namespace(_: object) -> None:
        raise NotAvailable("the kernel refuses a network namespace")

    monkeypatch.setattr(local, "_port", refuse)
    monkeypatch.setattr(local.Grounds, "loopback", no_namespace)
    record = measured(zygote, **SYNCHRONOUS)
    assert record.status == "unsupported"
    assert record.reason == "launcher 'local': no port could be taken on 127.0.0.1: Address already in use"
