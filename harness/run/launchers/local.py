"""Processes on this machine, forked from one preloaded process: on loopback, or on an emulated network."""

import contextlib
import socket
import weakref
from collections.abc import Sequence

from harness.protocol.messages import Membership, Request
from harness.record.cluster import NetworkRecord
from harness.run.launchers.base import (
    EXPOSED,
    CannotPlace,
    Launcher,
    NotNow,
    Placement,
    Seat,
    memberships_of,
    tasks_of,
    tell,
)
from harness.run.network import EmulatedNetwork, Ground, Grounds, NetworkError, NotAvailable, TooSlow
from harness.run.process.zygote import Zygote
from harness.spec.work import Cell

LOOPBACK = "127.0.0.1"


class Local(Launcher):
    """Every trial's processes are alone in network namespaces, where the kernel gives any.

    TensorFlow's servers listen on all interfaces and do what anybody who reaches them says. Where there are no
    namespaces, or none are wanted, the processes are on the machine's own loopback, on ports that are held bound,
    but deaf, until the trial is over, so that nobody else is given them; the record then says that they were not
    isolated.
    """

    name = "local"
    summary = "processes on this machine, on loopback or on an emulated network"
    emulates_networks = True

    def __init__(self) -> None:
        self._grounds: weakref.WeakKeyDictionary[Zygote, Grounds] = weakref.WeakKeyDictionary()
        self._warned: weakref.WeakSet[Zygote] = weakref.WeakSet()
        """Runs that have been told that their processes are not isolated."""

    def available(self) -> str | None:
        """Always available."""
        return None

    def open(self, requests: Sequence[Request], zygote: Zygote) -> None:
        """Build and measure every network that is asked for, about 1.5 s each, so that no trial waits for it."""
        for network, hosts in dict.fromkeys((of.cell.shape.network, len(tasks_of(of.cell))) for of in requests):
            with contextlib.suppress(NetworkError):  # which the trials will be told
                if network:
                    grounds = self._of(zygote)
                    grounds.give_back(grounds.network(network, hosts))

    def place(self, request: Request, zygote: Zygote) -> Placement:
        """A fork and an address for each process. A second trial on a network at once waits for one of its own.

        NotNow where the kernel gives none.
        """
        if request.cell.shape.network:
            return self._on_network(request, zygote)
        if not request.isolate:
            return _on_own_loopback(request, zygote)
        try:
            ground = self._of(zygote).loopback()
        except TooSlow as error:
            raise NotNow(f"launcher 'local': {error}; --no-isolate does without namespaces") from None
        except NotAvailable as error:
            self._say_once(zygote, f"{error}: {EXPOSED}")
            return _on_own_loopback(request, zygote)
        return self._on(ground, request, zygote)

    def _say_once(self, zygote: Zygote, text: str) -> None:
        if zygote not in self._warned:
            self._warned.add(zygote)
            tell(self.name, text)

    def _on_network(self, request: Request, zygote: Zygote) -> Placement:
        """A host for each process."""
        try:
            ground = self._of(zygote).network(request.cell.shape.network, len(tasks_of(request.cell)))
        except NetworkError as error:
            kind = NotNow if error.may_pass else CannotPlace
            raise kind(f"network '{request.cell.shape.network}': {error}") from None
        return self._on(ground, request, zygote)

    def _on(self, ground: Ground, request: Request, zygote: Zygote) -> Placement:
        tasks = tasks_of(request.cell)
        places = dict(zip(tasks, ground.addresses(len(tasks)), strict=True))
        seats = []
        for member in memberships_of(request, {task: address for task, (_, address) in places.items()}):
            host = places[member.task, member.index][0]
            entered = {"namespace": host.namespace, "user_namespace": host.user_namespace or ""}
            seats.append(Seat(_with_devices(request.cell, member.model_copy(update=entered)), zygote))
        measured, made, grounds = ground.measured, ground.made, self._of(zygote)
        return Placement(
            seats,
            release=lambda: grounds.give_back(ground),
            isolated=True,
            network=None if measured is None else NetworkRecord(**measured.model_dump()),
            links=None if ground.cables is None else HostLinks(ground.cables, tasks),
            trouble=lambda: None if made.there else "the process that holds its network is gone",
        )

    def _of(self, zygote: Zygote) -> Grounds:
        """The grounds of a run; given up when it is over."""
        if zygote not in self._grounds:
            self._grounds[zygote] = Grounds()
            zygote.closing.callback(lambda: self._grounds.pop(zygote).close())
        return self._grounds[zygote]


class HostLinks:
    """The cable of each process's host; see `harness.run.launchers.base.Links`."""

    def __init__(self, network: EmulatedNetwork, tasks: list[tuple[str, int]]) -> None:
        self._network = network
        self._hosts = {task: host for host, task in enumerate(tasks)}

    def cut(self, task: str, index: int) -> None:
        """Pull the cable of a process."""
        self._network.cut(self._hosts[task, index])

    def restore(self, task: str, index: int) -> None:
        """Plug it in again."""
        self._network.restore(self._hosts[task, index])


def _on_own_loopback(request: Request, zygote: Zygote) -> Placement:
    """On the machine's own loopback: a port and a fork for each process."""
    sockets: list[socket.socket] = []
    addresses = {}
    try:
        for task in tasks_of(request.cell):
            sockets.append(_port())
            addresses[task] = f"{LOOPBACK}:{sockets[-1].getsockname()[1]}"
    except OSError as error:
        _close(sockets)
        raise NotNow(f"launcher 'local': no port could be taken on {LOOPBACK}: {error.strerror}") from None
    seats = [Seat(_with_devices(request.cell, member), zygote) for member in memberships_of(request, addresses)]
    return Placement(seats, release=lambda: _close(sockets))


def _with_devices(cell: Cell, member: Membership) -> Membership:
    """Workers on one machine share out its accelerators."""
    first = member.index * cell.shape.replicas if member.task == "worker" else 0
    return member.model_copy(update={"first_device": first})


def _port() -> socket.socket:
    """A socket bound to a free port; it never listens. TensorFlow's server binds the port besides (SO_REUSEPORT)."""
    port = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port.bind((LOOPBACK, 0))
    return port


def _close(sockets: list[socket.socket]) -> None:
    for taken in sockets:
        taken.close()


LAUNCHER = Local()
