"""A process's place in a cluster: what it must do before its framework starts, and how it takes its leave."""

import os
import socket
import time
from collections.abc import Iterable

from harness.errors import HarnessError
from harness.protocol.channel import Channel
from harness.protocol.messages import Membership, Turn
from harness.spec.address import split_address
from harness.trial.namespace import enter

LISTEN_S = 10.0
"""How long servers are waited for before that is left to the framework."""
LOOK_S = 0.01
INTERFACES = "NCCL_SOCKET_IFNAME"
"""The variable that names interfaces of the host; a network of the launcher's has others, and NCCL would look for none
of those."""


def enter_network(member: Membership) -> None:
    """Move to the network that the launcher gave the process; HarnessError when another's address does not resolve."""
    if member.namespace:
        enter(member.namespace, member.user_namespace or None)
        os.environ.pop(INTERFACES, None)
    _resolve_all(member)


def _resolve_all(member: Membership) -> None:
    """HarnessError when a process's host does not resolve here, where a framework would try until the trial's limit."""
    for task, addresses in member.cluster.items():
        for index, address in enumerate(addresses):
            host = split_address("address", address)[0]
            try:
                socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                whose = member.model_copy(update={"task": task, "index": index}).name
                raise HarnessError(
                    f"{whose}'s address '{host}' does not resolve on {socket.gethostname()}: {error.strerror or error}"
                ) from None


def await_listening(addresses: Iterable[str], limit_s: float = LISTEN_S) -> bool:
    """Return when all of `addresses` take connections: True; or after `limit_s` seconds: False.

    TensorFlow's channels try again a whole second after a connection was refused, and processes that are started
    together listen within tenths of one. Whoever is missing after the limit is the framework's to wait for.
    """
    end = time.monotonic() + limit_s
    return all(_listens(address, end) for address in addresses)


def _listens(address: str, end: float) -> bool:
    host, port = split_address("address", address)
    while (left := end - time.monotonic()) > 0:
        try:
            socket.create_connection((host, port or 0), timeout=left).close()
        except OSError:
            time.sleep(LOOK_S)
        else:
            return True
    return False


def await_leave(channel: Channel) -> None:
    """Stay until the parent has heard from everyone: a process that leaves early is a failure to the others."""
    while True:
        try:
            line = channel.receive_line()
        except EOFError:
            return
        if line is not None and Turn.model_validate_json(line).do == "leave":
            return
