"""Which GPUs the processes of a trial take, told by what `tf.config` and a server's ConfigProto are given.

There need be no GPU: `tf.config` shows some that are not there, and writes down what it is told.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.engines.tensorflow.devices import base, device_kinds, gpu
from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.server import server_config
from harness.engines.tensorflow.strategies import strategies
from harness.environment.gpu import SLURM_GAVE
from harness.errors import Unsupported
from harness.protocol.messages import Membership, Request
from tests.record.examples import cell

WORKERS = {"worker": ["a:1", "a:2"]}
SERVED = {"chief": ["a:1"], "worker": ["a:2", "a:3"], "ps": ["a:4"]}


@dataclass
class Host:
    """A host with GPUs, as TensorFlow shows it."""

    gpus: list[str]
    visible: list[str] | None = None
    grows: list[str] = field(default_factory=list)
    started: bool = False
    """Whether the runtime was started."""


@pytest.fixture
def host(tf: Any, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with eight."""
    shown = Host([f"/physical_device:GPU:{i}" for i in range(8)])

    def started(_: str) -> list[Any]:
        shown.started = True
        return [tf.config.LogicalDevice(f"/device:GPU:{i}", "GPU") for i, _ in enumerate(shown.visible or shown.gpus)]

    def set_visible(devices: list[str], _: str) -> None:
        shown.visible = devices

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: shown.gpus if kind == "GPU" else ["a CPU"])
    monkeypatch.setattr(tf.config, "set_visible_devices", set_visible)
    monkeypatch.setattr(tf.config, "list_logical_devices", started)
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, _: shown.grows.append(gpu))
    monkeypatch.setattr(gpu, "set_threads", lambda _: None)
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    return shown


def request(member: Membership | None = None, device: str = "gpu", **keys: Any) -> Request:
    """A trial's, of one process or of several."""
    return Request(
        cell=cell(device=device, **keys),
        seed=1,
        data_dir="",
        window_s=0.1,
        intra_op_threads=1,
        inter_op_threads=4,
        member=member,
    )


def place(task: Any, index: int, cluster: dict[str, list[str]], first_device: int = 0) -> Membership:
    """A process's place on the host."""
    return Membership(task=task, index=index, cluster=cluster, first_device=first_device)


def set_up(of: Request) -> Devices:
    """What the process gets."""
    return device_kinds()["gpu"].set_up(of)


def config_of(of: Request) -> Any:
    """What the process's server is told."""
    assert of.member is not None
    return server_config(of, device_kinds()[of.cell.device].server_devices(of, of.member))


def test_one_process_takes_the_first_gpus_and_lets_their_memory_grow(host: Host) -> None:
    devices = set_up(request(replicas=2))
    assert host.visible == host.grows == host.gpus[:2]
    assert (devices.names, devices.physical, devices.shared) == (("/device:GPU:0", "/device:GPU:1"), 8, False)


@pytest.mark.usefixtures("host")
def test_memory_grows_though_the_processor_is_cut_into_logical_devices() -> None:
    set_up(request(replicas=2))
    assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true", "TensorFlow forgets set_memory_growth then"


def test_workers_on_one_host_take_different_gpus(host: Host) -> None:
    taken = []
    for index in range(2):
        set_up(request(place("worker", index, WORKERS, first_device=4 * index), workers=2, replicas=4))
        taken.append(host.visible)
    assert taken == [host.gpus[:4], host.gpus[4:]]


def test_a_worker_names_its_gpus_without_starting_the_runtime_which_must_join_the_cluster_first(host: Host) -> None:
    devices = set_up(request(place("worker", 1, WORKERS, first_device=2), workers=2))
    assert devices.names == ("/device:GPU:0", "/device:GPU:1")
    assert not host.started


def test_a_worker_whose_gpus_are_not_there_says_whose_the_others_are(host: Host) -> None:
    host.gpus = host.gpus[:3]
    with pytest.raises(Unsupported) as caught:
        set_up(request(place("worker", 1, WORKERS, first_device=2), workers=2))
    assert str(caught.value) == (
        "2 replicas need 2 GPUs besides the 2 of other processes on its host, and TensorFlow finds 3"
    )


@pytest.mark.usefixtures("host")
def test_more_replicas_than_gpus_are_refused() -> None:
    with pytest.raises(Unsupported, match="9 replicas need 9 GPUs, and TensorFlow finds 8"):
        set_up(request(replicas=9))


def test_a_coordinator_needs_no_gpu_and_takes_none(host: Host) -> None:
    host.gpus = []
    devices = set_up(request(place("chief", 0, SERVED), workers=2, replicas=1, ps=1))
    assert host.visible == []
    assert not host.started
    assert devices.names[0].endswith("GPU:0")


def test_a_worker_that_serves_is_given_its_own_gpu_and_grows(host: Host) -> None:
    config = config_of(request(place("worker", 1, SERVED, first_device=1), workers=2, replicas=1, ps=1))
    assert config.gpu_options.visible_device_list == "1"
    assert config.gpu_options.allow_growth
    assert not host.started


def test_a_worker_that_serves_where_there_are_too_few_gpus_is_unsupported(host: Host) -> None:
    host.gpus = host.gpus[:1]
    with pytest.raises(Unsupported, match="1 GPUs besides the 1 of other processes"):
        config_of(request(place("worker", 1, SERVED, first_device=1), workers=2, replicas=1, ps=1))


@pytest.mark.parametrize(("task", "device"), [("ps", "gpu"), ("ps", "virtual-cpu"), ("worker", "virtual-cpu")])
@pytest.mark.usefixtures("host")
def test_a_parameter_server_and_a_worker_on_processors_take_no_gpu(task: str, device: str) -> None:
    config = config_of(request(place(task, 0, SERVED), device, workers=2, replicas=1, ps=1))
    assert dict(config.device_count) == {"GPU": 0}
    assert (config.intra_op_parallelism_threads, config.inter_op_parallelism_threads) == (1, 4)


@pytest.mark.parametrize("kind", ["GPU", "CPU"])
def test_the_devices_of_a_coordinators_trial_are_its_workers_of_the_cells_kind(
    kind: str, tf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = [
        tf.config.LogicalDevice(f"/job:{task}/replica:0/task:{index}/device:{kind}:0", kind)
        for task, index in (("chief", 0), ("worker", 1), ("worker", 0), ("ps", 0))
        for kind in ("CPU", "GPU")
    ]
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda wanted: [d for d in cluster if d.device_type == wanted]
    )
    found = strategies()["parameter_server"].devices_of(None, Devices((f"/device:{kind}:0",), 1, False))
    assert found.names == tuple(f"/job:worker/replica:0/task:{index}/device:{kind}:0" for index in range(2))
    assert kind in found.reference


@pytest.fixture
def mesh_starts(host: Host, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool, str]]:
    """Each start of DTensor: on what, whether TensorFlow's runtime had started, and whether NCCL was asked for."""
    from tensorflow.experimental import dtensor

    starts: list[tuple[str, bool, str]] = []
    monkeypatch.setenv(gpu.MESH_USES_NCCL, "")  # so that it is as it was afterwards
    monkeypatch.delenv(gpu.MESH_USES_NCCL)
    monkeypatch.setattr(
        dtensor,
        "initialize_accelerator_system",
        lambda kind: starts.append((kind, host.started, os.environ[gpu.MESH_USES_NCCL])),
    )
    return starts


def test_a_mesh_of_gpus_starts_as_dtensor_wants_before_tensorflow_does_and_nothing_else_does(
    host: Host, mesh_starts: list[tuple[str, bool, str]]
) -> None:
    set_up(request(replicas=2))
    assert mesh_starts == []
    host.started = False
    set_up(request(strategy="dtensor", mesh="batch:2", replicas=2))
    assert mesh_starts == [("GPU", False, "1")]


@pytest.mark.usefixtures("host")
def test_who_wants_no_nccl_on_a_mesh_is_heard(
    mesh_starts: list[tuple[str, bool, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(gpu.MESH_USES_NCCL, "0")
    set_up(request(strategy="dtensor", mesh="batch:2", replicas=2))
    assert mesh_starts == [("GPU", False, "0")]


STARTED = """
from harness.engines.tensorflow.devices import gpu
from harness.engines.tensorflow.engine import import_keras
import_keras("tensorflow")  # without what no trial uses
gpu._start_mesh()
from tensorflow.python.eager import context
print(context.context().config.experimental.collective_nccl)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("tf")
def test_tensorflow_itself_is_then_configured_for_nccl() -> None:
    """In a process of its own: TensorFlow takes its configuration once."""
    done = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True)
    assert done.stdout.split() == ["True"], done.stderr


def test_where_slurm_gave_a_step_no_gpu_the_reason_says_how_to_ask_for_them(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.gpus = []
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert "Slurm" not in str(base.no_gpu_reason())
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    for name in SLURM_GAVE:
        monkeypatch.delenv(name, raising=False)
    assert str(base.no_gpu_reason()).endswith("ask for them, such as --slurm-args '--gpus-per-node=4'")
    monkeypatch.setenv("SLURM_STEP_GPUS", "0,1")
    assert "Slurm" not in str(base.no_gpu_reason())
