"""The processes of one job, and what arrives from them."""

import contextlib
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.protocol.hosting import EXIT_LIMIT_S, Child, ChildChannel, ForkServer
from harness.protocol.messages import Membership, Outcome, Report, Request, Turn
from harness.run.launchers.base import Seat
from harness.run.process.zygote import Zygote


@dataclass
class Hand:
    """One process of the job; after a restart it has another `child`."""

    name: str
    member: Membership | None
    fork_server: ForkServer
    request: Request
    child: Child | None = None
    outcome: Outcome | None = None
    gone: bool = False
    """Its channel is closed: the process has ended, or is about to."""
    preempted: bool = False
    """It has saved and leaves, as it was asked to."""
    ready_at_s: float | None = None
    """When it trained, or served, for the first time since it was started."""
    asked_at_s: float | None = None
    """When it was asked for a sign of life that it has not given yet."""
    heard_at_s: float = 0.0
    """When it last gave one."""

    @property
    def serves(self) -> bool:
        """Whether it only carries out what a coordinator sends."""
        return self.member is not None and self.member.serves

    @property
    def leads(self) -> bool:
        """Whether the job is as far as it says."""
        return self.member is None or self.member.leads


@dataclass(frozen=True)
class Event:
    """A report of a process, or with None the end of its channel."""

    at_s: float
    hand: Hand
    report: Report | None


@dataclass
class Crew:
    """Starts, signals, hears and ends the processes of a job."""

    hands: list[Hand] = field(default_factory=list)

    @classmethod
    def of(cls, request: Request, seats: Sequence[Seat], zygote: Zygote) -> "Crew":
        """A process for each seat; without seats, the one process of a strategy that has no others."""
        if not seats:
            return cls([Hand("the process", None, zygote, request)])
        return cls(
            [
                Hand(
                    seat.member.name,
                    seat.member,
                    seat.fork_server,
                    request.model_copy(update={"member": seat.member}),
                )
                for seat in seats
            ]
        )

    def named(self, name: str) -> Hand:
        """The process of that name."""
        return next(hand for hand in self.hands if hand.name == name)

    def start(self, hand: Hand) -> None:
        """Start a process, or start it again once it has ended."""
        hand.outcome, hand.gone, hand.preempted = None, False, False
        hand.ready_at_s = hand.asked_at_s = None
        hand.child = hand.fork_server.spawn(hand.request)

    def signal(self, hand: Hand, number: int) -> None:
        """Send a signal to a process."""
        if hand.child is not None:
            hand.child.signal(number)

    def ask(self, hand: Hand) -> None:
        """Ask a server for a sign of life."""
        hand.asked_at_s = time.monotonic()
        self._tell(hand, Turn(do="usage"))

    def leave(self) -> None:
        """Tell all that they may go, now that the job is done."""
        for hand in self.hands:
            self._tell(hand, Turn(do="leave"))

    def _tell(self, hand: Hand, turn: Turn) -> None:
        if hand.child is not None:
            with contextlib.suppress(OSError):  # its end is heard by itself
                hand.child.channel.send(turn)

    def status(self, hand: Hand) -> int | None:
        """The exit status of a process whose channel is closed."""
        return None if hand.child is None else hand.child.wait(1.0)

    def end(self, hands: Sequence[Hand]) -> list[str]:
        """End processes at once; the names of those that did not end within EXIT_LIMIT_S."""
        there = [(hand, hand.child) for hand in hands if hand.child is not None]
        for _, child in there:
            child.signal(signal.SIGKILL)
        left = [hand.name for hand, child in there if child.wait(EXIT_LIMIT_S) is None and hand.fork_server.alive]
        for hand, child in there:
            child.release()
            hand.child = None
        return left

    def words(self, characters: int = 1500) -> str:
        """The end of what each process wrote to standard error."""
        parts = [(h.name, h.child.stderr_tail(characters).strip()) for h in self.hands if h.child is not None]
        return "\n\n".join(f"{name}:\n{text}" for name, text in parts if text)

    def hear(self, limit_s: float) -> list[Event]:
        """What has arrived, waiting at most `limit_s` for the first of it."""
        speaking = [(h, h.child.channel) for h in self.hands if h.child is not None and not h.gone]
        if not any(channel.holds_line for _, channel in speaking):
            waited_for = [connection for _, channel in speaking for connection in channel.connections]
            select.select(waited_for, [], [], limit_s)
        events = []
        for hand, channel in speaking:
            events += _all_of(hand, channel)
        return events


def _all_of(hand: Hand, channel: ChildChannel) -> list[Event]:
    events: list[Event] = []
    while True:
        try:
            line = channel.receive_line(0.0)
        except EOFError:
            hand.gone = True
            return [*events, Event(time.monotonic(), hand, None)]
        if line is None:
            return events
        events.append(Event(time.monotonic(), hand, Report.model_validate_json(line)))
