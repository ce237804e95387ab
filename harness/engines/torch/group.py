"""The group of a trial's processes: PyTorch's store at the first one's address; Gloo and, between cards, NCCL."""

from typing import TYPE_CHECKING

from harness.protocol.messages import Membership, Request
from harness.record.trial import Resources
from harness.trial.same_work.meeting import meet, place

if TYPE_CHECKING:
    from harness.engines.torch.devices import Processor

INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that names the interface that Gloo exchanges over."""


def set_up(request: Request) -> "Processor":
    """Give this process its device, its threads and, where there are several, its place in the group; the device.

    Unsupported, with the reason, where there is no device for it.
    """
    import torch

    from harness.engines.torch.devices import place_of

    device = place_of(request)
    if request.intra_op_threads:
        torch.set_num_threads(request.intra_op_threads)
    if request.member is not None:
        begin(request.member, request.others_limit_s, device)
    return device


def begin(member: Membership, limit_s: float, device: "Processor") -> None:
    """Make the default group, as `device` joins it; returns when every process is there.

    HarnessError that names who is missing after `limit_s`: PyTorch's store waits for as long as a process that has
    connected, or been connected to, says nothing, and knows no names.
    """
    from torch import distributed

    host, port = place(member, 0)
    count, listening = len(member.cluster[member.task]), meet(member, limit_s)
    if listening is not None:
        held = listening.detach()
        store = distributed.TCPStore(host, port, count, True, wait_for_workers=False, master_listen_fd=held)
    else:
        store = distributed.TCPStore(host, port, count, False)
    distributed.init_process_group(store=store, rank=member.index, world_size=count, **device.joins)


def mean(value: float) -> float:
    """The mean over all processes of what each gives, which lies on the host: by Gloo."""
    import torch
    from torch import distributed

    found = torch.tensor([value], dtype=torch.float64)
    distributed.all_reduce(found)
    return float(found / distributed.get_world_size())


class OfOneDevice:
    """What a process shows of its device, whether it trains or sends."""

    _device: "Processor"
    _request: Request

    @property
    def resources(self) -> Resources:
        """The device of this process."""
        return self._device.resources

    def forget_peak(self) -> None:
        """Of the device."""
        self._device.forget_peak()

    def peak_device_memory_bytes(self) -> int | None:
        """Of all processes, each of which must ask; None where nobody counts it."""
        own = self._device.peak_bytes()
        if own is None or self._request.member is None:
            return own
        return round(mean(own) * self._request.cell.shape.workers)
