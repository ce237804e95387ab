"""The group of a trial's processes: PyTorch's store at the first one's address, and Gloo between all."""

import os
import socket

from harness.errors import HarnessError
from harness.protocol.messages import Membership
from harness.spec.address import split_address
from harness.trial.membership import await_listening, enter_network

INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that names the interface that Gloo exchanges over; where it is not set it takes the one of the host's
name, which a network of the launcher's does not have."""


def enter(member: Membership) -> None:
    """Move to the network that the launcher gave, and let Gloo exchange over the interface of this process's address.

    HarnessError where another's address does not resolve.
    """
    enter_network(member)
    found = _interface_of(_place(member, member.index)[0])
    if found and (member.namespace or INTERFACE not in os.environ):
        os.environ[INTERFACE] = found


def begin(member: Membership) -> None:
    """Make the default group; returns when every process is there."""
    from torch import distributed

    host, port = _place(member, 0)
    count, first = len(member.cluster[member.task]), member.index == 0
    if first:
        listening = _listening(host, port)
        store = distributed.TCPStore(host, port, count, True, wait_for_workers=False, master_listen_fd=listening)
    else:
        await_listening([f"{host}:{port}"])  # one that is refused tries again a second later
        store = distributed.TCPStore(host, port, count, False)
    distributed.init_process_group("gloo", store=store, rank=member.index, world_size=count)


def mean(value: float) -> float:
    """The mean over all processes of what each gives."""
    import torch
    from torch import distributed

    found = torch.tensor([value], dtype=torch.float64)
    distributed.all_reduce(found)
    return float(found / distributed.get_world_size())


def _place(member: Membership, index: int) -> tuple[str, int]:
    host, port = split_address("address", member.cluster[member.task][index])
    return host, port or 0


def _listening(host: str, port: int) -> int:
    """The descriptor of a socket that listens there; the launcher holds the port bound besides, so it must be shared.

    HarnessError where the port is taken.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen()
    except OSError as error:
        found.close()
        raise HarnessError(f"worker 0 cannot listen on {host}:{port}: {error.strerror or error}") from None
    return found.detach()


def _interface_of(host: str) -> str:
    """The interface that has the address of `host`; empty where none has."""
    import psutil

    address = socket.gethostbyname(host)
    for name, addresses in psutil.net_if_addrs().items():
        if any(one.family == socket.AF_INET and one.address == address for one in addresses):
            return str(name)
    return ""
