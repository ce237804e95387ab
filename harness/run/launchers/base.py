"""What a launcher must be able to do: give every process of a trial its place."""

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TextIO

from harness.errors import HarnessError
from harness.protocol.hosting import ForkServer
from harness.protocol.messages import Membership, Request
from harness.record.cluster import NetworkRecord
from harness.run.process.zygote import Zygote
from harness.spec.work import Cell
from harness.visible import printable

EXPOSED = (
    "trials of several processes are not isolated; TensorFlow's servers listen on every address of this machine while "
    "they run, and do what anybody who reaches them says"
)
"""What a person should know who wanted trials to be alone on their network."""


class CannotPlace(HarnessError):
    """The processes of a trial cannot be started here; the text is the reason."""

    may_pass: ClassVar[bool] = False
    """Whether a later trial may have more luck."""


class NotNow(CannotPlace):
    """They cannot be started at this moment: a host is not there, or did not answer in time. Later trials try again."""

    may_pass = True


@dataclass(frozen=True)
class Seat:
    """One process's place: its membership, and the preloaded process that it is forked from, here or elsewhere."""

    member: Membership
    fork_server: ForkServer


class Links(Protocol):
    """The cables of a trial's processes, to be pulled and plugged in from outside while the trial runs.

    `task` and `index` name the process as its membership does: `cut("worker", 1)`, `cut("ps", 0)`, `cut("chief", 0)`.
    What a process sends and is sent is lost while its cable is out, and nobody is told: no connection is closed.
    Both return when it is done, in hundredths of a second. NetworkError when the emulated network is gone, KeyError
    for a process that the trial does not have. Whoever cuts need not restore: a network that was cut is not used
    again.
    """

    def cut(self, task: str, index: int) -> None:
        """Pull the cable of a process."""

    def restore(self, task: str, index: int) -> None:
        """Plug it in again."""


@dataclass(frozen=True)
class Placement:
    """Every process of one trial. `release` gives back ports, namespaces and whatever else was taken."""

    seats: list[Seat]
    release: Callable[[], None] = field(default=lambda: None)
    isolated: bool = False
    """Whether nothing outside can reach the processes' ports."""
    network: NetworkRecord | None = None
    links: Links | None = None
    """The processes' cables where the network between them is emulated; None where nobody can pull any."""
    trouble: Callable[[], str | None] = field(default=lambda: None)
    """What is wrong with what the processes were placed on, as the cause of whatever they report; None is nothing."""


def tell(launcher: str, text: str, out: TextIO | None = None) -> None:
    """Tell the person what a launcher does, on standard error, whatever else is written to standard output."""
    stream = out or sys.stderr
    with contextlib.suppress(OSError, ValueError):  # a closed terminal must not cost the measurement
        stream.write(printable(f"launcher '{launcher}': {text}\n"))
        stream.flush()


class Launcher(ABC):
    """A launcher. One file, one registered object."""

    name: str
    summary: str
    elsewhere = False
    """Whether it has hosts of its own: a trial of one process then runs there too, on the hardware that its cluster
    is compared with."""

    def open(self, requests: Sequence[Request], zygote: Zygote) -> None:  # noqa: B027  most have nothing to open
        """Take, once, before anything is measured, what the trials of a run will share; it ends with `zygote`.

        What cannot be had is told by `place`, as every trial's reason.
        """

    def fork_server_for(self, request: Request, zygote: Zygote) -> ForkServer:
        """What a trial of one process is forked from, where `elsewhere`; raises what `place` does."""
        return zygote

    emulates_networks: bool = False
    """Whether it places cells that have a `network`."""

    @abstractmethod
    def available(self) -> str | None:
        """None when it can be used here, else the reason."""

    @abstractmethod
    def place(self, request: Request, zygote: Zygote) -> Placement:
        """Places for the processes of `request`; raises CannotPlace, with the reason, within a stated time."""


def tasks_of(cell: Cell) -> list[tuple[str, int]]:
    """The processes of a trial of `cell`, the one that leads first."""
    shape = cell.shape
    workers = [("worker", index) for index in range(shape.workers)]
    if not shape.servers:
        return workers
    return [("chief", 0), *workers, *(("ps", index) for index in range(shape.servers))]


def memberships_of(request: Request, addresses: Mapping[tuple[str, int], str], **more: object) -> list[Membership]:
    """A membership for every process of `request`, whose `host:port` is in `addresses`."""
    cluster: dict[str, list[str]] = {}
    for (task, _), address in addresses.items():
        cluster.setdefault(task, []).append(address)
    return [
        Membership.model_validate({"task": task, "index": index, "cluster": cluster, **more})
        for task, index in tasks_of(request.cell)
    ]
