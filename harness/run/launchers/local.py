"""Processes on this machine, forked from one preloaded process, on loopback."""

import socket

from harness.run.launchers.base import CannotPlace, Launcher, Placement, Seat, seated, tasks_of
from harness.run.zygote import Zygote
from harness.trial.protocol import Request

LOOPBACK = "127.0.0.1"


class Local(Launcher):
    """Takes a free port a process and holds it bound, but deaf, until the trial is over: nobody else is given it."""

    name = "local"
    summary = "processes on this machine, on loopback"

    def available(self) -> str | None:
        """Always available."""
        return None

    def place(self, request: Request, zygote: Zygote) -> Placement:
        """A port and a fork for each process."""
        held: list[socket.socket] = []
        addresses = {}
        try:
            for task in tasks_of(request.cell):
                held.append(_port())
                addresses[task] = f"{LOOPBACK}:{held[-1].getsockname()[1]}"
        except OSError as error:
            _close(held)
            raise CannotPlace(f"launcher 'local': no port could be taken on {LOOPBACK}: {error.strerror}") from None
        seats = [
            Seat(member.model_copy(update={"first_device": _first_device(request, member.task, member.index)}), zygote)
            for member in seated(request, addresses)
        ]
        return Placement(seats, release=lambda: _close(held))


def _first_device(request: Request, task: str, index: int) -> int:
    """Workers on one machine share out its accelerators."""
    return index * request.cell.replicas if task == "worker" else 0


def _port() -> socket.socket:
    """A socket bound to a free port; it never listens. TensorFlow's server binds the port besides (SO_REUSEPORT)."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((LOOPBACK, 0))
    return held


def _close(held: list[socket.socket]) -> None:
    for taken in held:
        taken.close()


LAUNCHER = Local()
