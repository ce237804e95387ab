"""Processes of JAX: what one trial has compiled the next reads, and how they come to each other."""

import json
import os
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.engines._on_jax.joining import wait_for_coordinator, without_proxy

ROOT = Path(__file__).parents[3]
LOOPBACK = "127.0.0.1"
LONG_S = 600.0
PROCESS = """
import json, os, sys
import jax, numpy as np
from jax.experimental import multihost_utils
from harness.engines._on_jax import devices as of_jax
from harness.engines._on_jax.devices import laid, set_up
from harness.protocol.messages import Membership, Request
from harness.spec import Sweep, expand
from harness.trial.engines import catalogue_of

address, index, scratch = sys.argv[1], int(sys.argv[2]), sys.argv[3]
asked = Sweep(engine=["jax"], strategy=["multi_process"], workers=[2], replicas=[1], loop=["jit"])
cell = next(cell for cell in expand(asked, catalogue_of("jax")).cells if cell.shape.workers == 2)
member = Membership(task="worker", index=index, cluster={"worker": [address, address]})
request = Request(
    cell=cell, seed=1, data_dir="", scratch=scratch, window_s=0.1, intra_op_threads=1, inter_op_threads=0, member=member
)
events, compared = [], []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name.rpartition("/")[2]))
multihost_utils.assert_equal = lambda *_, **__: compared.append(1)
of_jax.POOL = os.environ.get("POOL_SET_BY", of_jax.POOL)
taken = set_up(request)
devices = taken.devices
mesh = jax.sharding.Mesh(np.array(devices), ("both",))
whole, cut = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*of)) for of in ((), ("both",)))
given = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "number": np.int32(3)}
there, rows = laid(given, whole), laid(given["a"], cut)
summed = jax.jit(lambda of, rows: rows.sum(axis=0) * of["number"] + of["a"][0], out_shardings=whole)(there, rows)
print(json.dumps({
    "sum": np.asarray(summed.addressable_data(0)).tolist(),
    "kept": np.asarray(there["a"].addressable_data(0)).tolist(),
    "types": [str(there["a"].dtype), str(there["number"].dtype)],
    "row": np.asarray(rows.addressable_data(0)).tolist(),
    "index": jax.process_index(),
    "devices": jax.device_count(),
    "hits": events.count("cache_hits"),
    "misses": events.count("cache_misses"),
    "compared": len(compared),
    "threads": [taken.resources.intra_op_threads, taken.resources.inter_op_threads],
}))
"""


Told = list[dict[str, Any]]
"""What each of two processes says."""


def both(python: str, scratch: Path, **variables: str) -> Told:
    """What two processes say of a step that they share, one after the other by their numbers."""
    with socket.create_server((LOOPBACK, 0)) as free:
        address = "{}:{}".format(*free.getsockname())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    commands = [[python, "-c", PROCESS, address, str(index), str(scratch)] for index in (0, 1)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for command in commands]
    said = [process.communicate(timeout=LONG_S)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in said]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What trials of a run share."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def first(jax_python: str, scratch: Path) -> Told:
    return both(jax_python, scratch)


@pytest.fixture(scope="module")
def elsewhere(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The same where the environment names a proxy that never answers, and other devices and threads; of the threads
    what the trial sets is lost."""
    told = {"JAX_NUM_CPU_DEVICES": "3", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    told |= {"NPROC": "5", "POOL_SET_BY": "NOBODY_READS_IT"}
    with pytest.MonkeyPatch.context() as patched, socket.create_server((LOOPBACK, 0)) as proxy:
        host, port = proxy.getsockname()
        for name in ("http_proxy", "https_proxy", "grpc_proxy"):
            patched.setenv(name, f"http://{host}:{port}")
        for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
            patched.delenv(name, raising=False)
        return both(jax_python, tmp_path_factory.mktemp("elsewhere"), **told)


def test_every_process_of_a_later_trial_compiles_nothing(jax_python: str, scratch: Path, first: Told) -> None:
    later = both(jax_python, scratch)
    assert all(one["misses"] > 0 and one["hits"] == 0 for one in first)
    assert [(one["hits"], one["misses"]) for one in later] == [(one["misses"], 0) for one in first]
    assert [one["sum"] for one in later] == [one["sum"] for one in first] == [[9, 16, 23]] * 2
    assert [one["index"] for one in first] == [0, 1]


def test_arrays_are_laid_over_processes_as_they_are_and_nobody_sends_them(first: Told) -> None:
    for number, one in enumerate(first):
        assert one["kept"] == [[0, 1, 2], [3, 4, 5]]
        assert one["types"] == ["float32", "int32"]
        assert one["row"] == [one["kept"][number]]
        assert one["compared"] == 0


def test_a_process_waits_until_the_coordinator_speaks_and_not_for_who_only_listens() -> None:
    with ThreadPoolExecutor() as pool, socket.create_server((LOOPBACK, 0)) as met:
        host, port = met.getsockname()
        waiting = pool.submit(wait_for_coordinator, host, port, LONG_S)
        met.accept()[0].close()  # it is not the coordinator's yet
        with met.accept()[0] as connection:
            assert not waiting.done()
            connection.sendall(b"\0")
            assert waiting.result(LONG_S) is None


def test_a_coordinator_that_never_comes_is_left_to_jax_after_the_limit() -> None:
    with socket.create_server((LOOPBACK, 0)) as met:
        host, port = met.getsockname()
    begun = time.monotonic()
    wait_for_coordinator(host, port, 0.1)
    assert time.monotonic() - begun >= 0.1


def test_no_proxy_is_asked_for_the_way_to_the_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "localhost")
    without_proxy({"node2", "node1"})
    assert os.environ["no_proxy"] == "localhost,node1,node2"
    assert "no_grpc_proxy" not in os.environ
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("no_grpc_proxy", "localhost")
    without_proxy({"node1"})
    assert [os.environ[name] for name in ("no_proxy", "no_grpc_proxy")] == ["node1", "localhost,node1"]


def test_processes_join_each_other_with_the_devices_of_their_cell_where_the_environment_names_a_proxy_and_other_ones(
    elsewhere: Told,
) -> None:
    assert [one["sum"] for one in elsewhere] == [[9, 16, 23]] * 2
    assert [one["devices"] for one in elsewhere] == [2, 2]


def test_threads_are_told_as_they_are_and_not_as_they_were_asked_for(first: Told, elsewhere: Told) -> None:
    assert [one["threads"] for one in first] == [[1, 1]] * 2
    assert [one["threads"] for one in elsewhere] == [[5, 5]] * 2
