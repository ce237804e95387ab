"""The processes of a trial as Horovod has them: told by variables, they meet at an HTTP server in the first one."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from harness.errors import Unsupported
from harness.protocol.messages import Membership
from harness.trial.namespace import call_host
from harness.trial.same_work import meeting

INTERFACE = "HOROVOD_GLOO_IFACE"
"""The variable that names the interface that Gloo exchanges over; see `enter`."""
FUSION = "HOROVOD_FUSION_THRESHOLD"
"""The variable with the bytes that Horovod joins at most, of all gradients that are ready in a cycle."""
CYCLE = "HOROVOD_CYCLE_TIME"
"""The variable with the milliseconds from one cycle to the next."""
_gloos: set[int] = set()
"""File descriptors of the connections that Horovod exchanges over."""


def enter(member: Membership) -> None:
    """Move to the network that the launcher gave; HarnessError as `meeting.enter`.

    Horovod 0.28 takes the interface for its first context alone. The one that gradients travel over listens where the
    host's name leads, which in a network of the launcher's must be this process's address.
    """
    meeting.enter(member, INTERFACE)
    if member.namespace:
        call_host(socket.gethostbyname(meeting.place(member, member.index)[0]))


def begin(member: Membership, limit_s: float) -> None:
    """Start Horovod; returns when every process has.

    HarnessError that names who is missing after `limit_s`: Horovod knows no names. Unsupported between addresses of
    IPv6.
    """
    import horovod.tensorflow as hvd

    host, port = meeting.place(member, 0)
    variables = _variables(member.index, len(member.cluster[member.task]))
    rendezvous = {"HOROVOD_GLOO_RENDEZVOUS_ADDR": _ipv4(host), "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port)}
    os.environ.update(variables | rendezvous)
    listening, before = meeting.meet(member, limit_s), _connections()
    with _serving(listening):
        hvd.init()
        mean(0.0)  # whoever is through no longer asks the first one
    _gloos.update(_connections() - before)


def _ipv4(host: str) -> str:
    """The host's address; Unsupported where it has none of IPv4, the only ones at which Horovod asks."""
    try:
        return socket.gethostbyname(host)
    except OSError:
        raise Unsupported(f"Horovod's processes meet over IPv4, and the host '{host}' has no such address") from None


def mean(value: float) -> float:
    """The mean over all processes of what each gives."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    return float(hvd.allreduce(tf.constant(value, tf.float64), op=hvd.Average, name="agreed"))


def broadcast(number: int, variables: Sequence[Any]) -> int:
    """The first process's number, and its values in all of TensorFlow's variables of every process."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.broadcast_variables(variables, root_rank=0)
    return int(hvd.broadcast(tf.constant(number, tf.int64), root_rank=0, name="number"))


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """While entered, what Horovod's threads tell each other in every cycle is held back, each time for up to 0.2 s.

    A process that waits would else take some 10 % of a core from the one whose turn it is. Nothing is lost: what is
    held back is sent as this ends, which it does in all processes at the same time, since a step that is timed would
    else wait for the last of them.
    """
    _hold_back(True)
    try:
        yield
    finally:
        _hold_back(False)
    if _gloos:
        mean(0.0)


def _hold_back(small: bool) -> None:
    """Whether the kernel keeps a `small` packet until it is full: TCP_CORK of tcp(7), which Linux alone has."""
    for descriptor in _gloos if hasattr(socket, "TCP_CORK") else ():
        with contextlib.suppress(OSError):  # of a connection that has broken a step tells
            connection = socket.socket(fileno=descriptor)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, small)
            connection.detach()  # it is Gloo's to close


def _connections() -> set[int]:
    """File descriptors of this process's TCP connections."""
    import psutil

    return {found.fd for found in psutil.Process().net_connections("tcp") if found.raddr}


def _variables(rank: int, size: int) -> dict[str, str]:
    """What `horovodrun` tells a process. Each is on a host of its own, as in a network of the launcher's: to Gloo a
    host with several processes is nothing else."""
    places = {"RANK": rank, "CROSS_RANK": rank, "LOCAL_RANK": 0, "SIZE": size, "CROSS_SIZE": size, "LOCAL_SIZE": 1}
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_HOSTNAME": f"worker{rank}",
        **{f"HOROVOD_{name}": str(value) for name, value in places.items()},
    }


@contextlib.contextmanager
def _serving(listening: socket.socket | None) -> Iterator[None]:
    """While entered, Horovod's rendezvous server answers on this socket; without one, another process's does."""
    if listening is None:
        yield
        return
    server = _server(listening)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _server(listening: socket.socket) -> Any:
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    class OnOurSocket(RendezvousHTTPServer):  # type: ignore[misc]  # Horovod is not there to be looked at
        """Horovod's own chooses a port, which nobody else would know."""

        def server_bind(self) -> None:
            self.socket.close()
            self.socket: socket.socket = listening

        def server_activate(self) -> None:
            """It listens."""

    return OnOurSocket(listening.getsockname(), RendezvousHandler, 0)
