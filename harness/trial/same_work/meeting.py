"""How the processes of a trial meet before they do by a framework, which knows no names of theirs; and the interface
that Gloo exchanges over."""

import contextlib
import ipaddress
import os
import select
import socket
import time

from harness.errors import HarnessError
from harness.protocol.messages import Membership
from harness.spec.address import joined, split_address
from harness.trial.membership import LOOK_S, enter_network

GO, INDEX_BYTES = b"!", 4
OTHERS = 1.25
"""Who waits for the first process waits so many times as long as that one waits for all: it knows who is missing."""


def enter(member: Membership, variable: str) -> None:
    """Move to the network that the launcher gave, and let Gloo exchange over the interface that leads to the others.

    `variable` is the one by which the framework is told; where it is not set Gloo takes the interface of the host's
    name, which a network of the launcher's does not have. HarnessError where another's address does not resolve, and
    where the user has named an interface that is not here.
    """
    enter_network(member)
    interfaces = _interfaces()
    own = _towards_others(member)
    found = next((name for name, addresses in interfaces.items() if own in addresses), "")
    if found and (member.namespace or not os.environ.get(variable)):
        os.environ[variable] = found
    for name in filter(None, os.environ.get(variable, "").split(",")):
        if name not in interfaces:
            raise HarnessError(f"{variable}: no interface '{name}' here, only {', '.join(interfaces)}; unset it")


def meet(member: Membership, limit_s: float) -> socket.socket | None:
    """Return when every process is there: in the first one the socket that listens at its port, in any other None.

    Where others come from outside, and not through a network of the launcher's, it listens at every address, as
    TensorFlow's servers do: the host need not have the one by which they reach it, and may know its own name by one
    that nobody else reaches. HarnessError that names who is missing after `limit_s`.
    """
    host, port = place(member, 0)
    if member.index:
        _be_called(host, port, member.index, OTHERS * limit_s)
        return None
    found = _listening(host, port, everywhere=not (member.namespace or _all_here(member)))
    _call_all(found, joined(host, port), len(member.cluster[member.task]), limit_s)
    return found


def place(member: Membership, index: int) -> tuple[str, int]:
    """The host and the port of a process."""
    host, port = split_address("address", member.cluster[member.task][index])
    return host, port or 0


def _listening(host: str, port: int, everywhere: bool) -> socket.socket:
    """A socket that listens there; the launcher holds the port bound besides, so it must be shared.

    HarnessError where the port is taken.
    """
    with contextlib.ExitStack() as unless_it_listens:
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            found = unless_it_listens.enter_context(socket.socket(family, socket.SOCK_STREAM))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(("", port) if everywhere else address)
            found.listen()
        except OSError as error:
            raise HarnessError(f"cannot listen on {joined(host, port)}: {error.strerror or error}") from None
        unless_it_listens.pop_all()
        return found


def _all_here(member: Membership) -> bool:
    """Whether all processes have addresses by which this host alone is reached."""
    hosts = {place(member, index)[0] for index in range(len(member.cluster[member.task]))}
    return all(host == "localhost" or _is_loopback(host) for host in hosts)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _call_all(listening: socket.socket, address: str, count: int, limit_s: float) -> None:
    """The first process's part, whose address the others know: every other one connects and says its index; once all
    have, all are told to go on.

    HarnessError that names those who have not after `limit_s`. Who connects and says something else, or nothing, is
    none of them.
    """
    end = time.monotonic() + limit_s
    here: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as open_sockets:
        unknown: set[socket.socket] = set()
        while missing := sorted({*range(1, count)} - here.keys()):
            readable, _, _ = select.select([listening, *unknown], [], [], max(0.0, end - time.monotonic()))
            if not readable:
                names = ", ".join(f"worker {index}" for index in missing)
                raise HarnessError(f"{names} did not come to {address} within {limit_s:g} s")
            for ready in readable:
                if ready is listening:
                    unknown.add(open_sockets.enter_context(listening.accept()[0]))
                    continue
                unknown.remove(ready)
                with contextlib.suppress(OSError):
                    here[int.from_bytes(ready.recv(INDEX_BYTES))] = ready
        for index in range(1, count):
            with contextlib.suppress(OSError):  # who is gone by now is told by its own channel
                here[index].sendall(GO)


def _be_called(host: str, port: int, index: int, limit_s: float) -> None:
    """Any other's part; HarnessError where the first process has not told it to go on after `limit_s`."""
    end = time.monotonic() + limit_s
    while (left := end - time.monotonic()) > 0:
        # refused where it does not listen yet
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=left) as connection:
            connection.sendall(index.to_bytes(INDEX_BYTES))
            connection.settimeout(max(LOOK_S, end - time.monotonic()))
            if connection.recv(len(GO)) == GO:
                return
        time.sleep(LOOK_S)
    raise HarnessError(f"worker 0 did not answer on {joined(host, port)} within {limit_s:g} s")


def _towards_others(member: Membership) -> str:
    """The address of this host that the others see, which its own name need not lead to; empty where no way leads to
    them. Those on this host may be reached by one that the others do not see."""
    count, found = len(member.cluster[member.task]), []
    for index in [index for index in range(count) if index != member.index] or [member.index]:
        family, *_, address = socket.getaddrinfo(*place(member, index), type=socket.SOCK_DGRAM)[0]
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect(address)  # of a datagram socket: nothing is sent
            found.append(str(way.getsockname()[0]))
    seen = (own for own in found if not _is_loopback(own))
    return next(seen, next(iter(found), ""))


def _interfaces() -> dict[str, list[str]]:
    """This network's, each with its addresses."""
    import psutil

    return {
        name: [one.address for one in addresses if one.family in (socket.AF_INET, socket.AF_INET6)]
        for name, addresses in psutil.net_if_addrs().items()
    }
