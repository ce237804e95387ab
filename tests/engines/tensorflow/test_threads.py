"""The inter-op pool follows the host where the trial runs; a record has the pools that TensorFlow has."""

from typing import Any

import pytest

from harness.engines.tensorflow import threads
from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.own_step import OwnStep
from harness.engines.tensorflow.threads import with_threads
from harness.protocol.messages import Request
from harness.spec import OwnStepCell
from tests.record.examples import cell


def pool(cores: int, monkeypatch: pytest.MonkeyPatch, set_to: int = 0, **keys: object) -> int:
    """The inter-op threads of a trial on a host with so many cores."""
    monkeypatch.setattr(threads, "usable_cores", lambda: cores)
    request = Request(cell=cell(**keys), seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=set_to)
    return with_threads(request).inter_op_threads


def test_it_has_two_threads_a_replica_for_collectives_block_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool(2, monkeypatch, replicas=8, global_batch_size=256) == 16


def test_it_has_a_thread_a_core_of_the_host_where_the_trial_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool(64, monkeypatch, replicas=2, global_batch_size=64) == 64


def test_what_the_sweep_sets_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool(64, monkeypatch, set_to=3) == 3


def test_on_gpus_it_is_left_to_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool(64, monkeypatch, device="gpu") == 0


def test_a_record_has_the_pools_that_tensorflow_has_and_those_of_other_processes_as_asked_for(tf: Any) -> None:
    """Nobody calls `set_threads` here: the pools are as the fixture made them."""
    pools = tf.config.threading
    has = (pools.get_intra_op_parallelism_threads(), pools.get_inter_op_parallelism_threads())
    asked = {"intra_op_threads": has[0] + 2, "inter_op_threads": has[1] + 3}
    devices = Devices(("/device:CPU:0",), 1, shared=False)
    request = Request(cell=cell(), seed=1, data_dir="", window_s=0.1, **asked)
    of_step = request.model_copy(update={"cell": OwnStepCell(step="mine:make")})
    channel: Any = None
    for found in (devices.resources(request), OwnStep(of_step, channel, classify)._resources()):
        assert (found.intra_op_threads, found.inter_op_threads) == has
    elsewhere = devices.resources(request, of_this_process=False)
    assert (elsewhere.intra_op_threads, elsewhere.inter_op_threads) == tuple(asked.values())
