"""The inter-op pool follows the host where the trial runs."""

import pytest

from harness.engines.tensorflow import threads
from harness.engines.tensorflow.threads import with_threads
from harness.protocol.messages import Request
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
