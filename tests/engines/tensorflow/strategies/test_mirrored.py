"""Which collectives MirroredStrategy takes where logical GPUs share a card, told by the graph: there need be no GPU."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from harness.engines.tensorflow.cross_device import build_op
from harness.engines.tensorflow.devices import Devices
from harness.engines.tensorflow.executed import inspect
from harness.engines.tensorflow.strategies import strategies
from harness.errors import Unsupported
from tests.record.examples import cell

TWO = Devices(("GPU:0", "GPU:1"), physical=1, shared=True)


@contextlib.contextmanager
def eight_cards() -> Iterator[Any]:
    """While entered, the runtime, which is given, is on a host with eight; it sees one, as two logical ones."""
    from tensorflow.python.eager import context

    def shown(patch: pytest.MonkeyPatch, method: str, gpus: list[Any]) -> None:
        real = getattr(context.context(), method)

        def listed(device_type: str | None = None) -> Any:
            return gpus if device_type == "GPU" else real(device_type)

        patch.setattr(context.context(), method, listed)

    cards = [context.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(8)]
    with pytest.MonkeyPatch.context() as patch:
        shown(patch, "list_physical_devices", cards)
        shown(patch, "get_visible_devices", cards[:1])
        shown(patch, "list_logical_devices", [context.LogicalDevice(f"/device:GPU:{i}", "GPU") for i in range(2)])
        yield context.context()


def reductions(tf: Any, device: str, xla: bool = False) -> dict[str, int]:
    """The collectives of a traced sum over two replicas of a kind of device."""
    of = cell(device=device)
    with eight_cards():
        strategy = strategies()["mirrored"].build(of, TWO, build_op(of))

    def replica() -> Any:
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([3]))

    part = tf.function(replica, jit_compile=True, autograph=False) if xla else replica
    program = tf.function(lambda: strategy.run(part), autograph=False).get_concrete_function()
    return inspect(program, of).operations


@pytest.mark.parametrize("xla", [False, True])
def test_on_virtual_gpus_of_a_host_with_several_cards_auto_is_a_ring_and_on_its_cards_nccl(tf: Any, xla: bool) -> None:
    assert reductions(tf, "virtual-gpu", xla) == {"CollectiveReduceV2[ring]": 2}
    assert reductions(tf, "gpu", xla) == {"CollectiveReduceV2[nccl]": 2}


def test_what_tensorflow_counts_is_as_before_once_the_strategy_is_built(tf: Any) -> None:  # noqa: ARG001
    of = cell(device="virtual-gpu")
    with eight_cards() as runtime:
        strategies()["mirrored"].build(of, TWO, None)
        assert len(runtime.list_physical_devices("GPU")) == 8


def test_two_ranks_of_nccl_on_one_card_are_refused_with_the_reason(tf: Any) -> None:  # noqa: ARG001
    of = cell(device="virtual-gpu", cross_device_op="nccl")
    with pytest.raises(Unsupported, match="'nccl' takes a card a rank, and the replicas of 'virtual-gpu' share one"):
        strategies()["mirrored"].build(of, TWO, None)
