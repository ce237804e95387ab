"""The group of a trial's processes: PyTorch's store at the first one's address, and Gloo between all."""

from harness.protocol.messages import Membership, Request
from harness.trial.same_work.meeting import meet, place

INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that names the interface that Gloo exchanges over."""


def set_up(request: Request) -> None:
    """Give this process its threads and, where there are several, its place in the group."""
    import torch

    if request.intra_op_threads:
        torch.set_num_threads(request.intra_op_threads)
    if request.inter_op_threads:
        torch.set_num_interop_threads(request.inter_op_threads)
    if request.member is not None:
        begin(request.member, request.others_limit_s)


def begin(member: Membership, limit_s: float) -> None:
    """Make the default group; returns when every process is there.

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
    distributed.init_process_group("gloo", store=store, rank=member.index, world_size=count)


def mean(value: float) -> float:
    """The mean over all processes of what each gives."""
    import torch
    from torch import distributed

    found = torch.tensor([value], dtype=torch.float64)
    distributed.all_reduce(found)
    return float(found / distributed.get_world_size())
