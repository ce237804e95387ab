"""The sizes of TensorFlow's thread pools, decided on the host where the trial runs."""

from harness.environment import usable_cores
from harness.protocol.messages import Request


def with_threads(request: Request) -> Request:
    """`request` with the inter-op pool that it leaves open, so that what is set is also what is recorded.

    An inter-op pool smaller than twice the replicas gives two-state timings, as collectives block its threads
    (`docs/protocol.md#turns`). Only virtual devices on the processor need one: elsewhere 0 stays TensorFlow's choice.
    """
    if request.inter_op_threads or request.cell.shape.device != "virtual-cpu":
        return request
    return request.model_copy(update={"inter_op_threads": max(usable_cores(), 2 * request.cell.devices)})
