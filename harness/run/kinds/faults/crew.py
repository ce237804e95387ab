"""The processes of one job, and what arrives from them."""

import contextlib
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.messages import Membership, Outcome, Report, Request, Turn
from harness.run.launchers.base import Seat
from harness.run.process.zygote import EXIT_LIMIT_S, Zygote


@dataclass
class Hand:
    """One process of the job; after a restart it has another `spawned`."""

    name: str
    member: Membership | None
    zygote: Zygote
    request: Request
    spawned: Any = None
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
            return cls([Hand("the process", None, zygote, request.model_copy(update={"scratch": zygote.scratch}))])
        return cls(
            [
                Hand(
                    seat.member.name, seat.member, seat.zygote,
                    request.model_copy(update={"member": seat.member, "scratch": seat.zygote.scratch}),
                )
                for seat in seats
            ]
        )  # fmt: skip

    def named(self, name: str) -> Hand:
        """The process of that name."""
        return next(hand for hand in self.hands if hand.name == name)

    def start(self, hand: Hand) -> None:
        """Start a process, or start it again once it has ended."""
        hand.outcome, hand.gone, hand.preempted = None, False, False
        hand.ready_at_s = hand.asked_at_s = None
        hand.spawned = hand.zygote.spawn(hand.request)

    def signal(self, hand: Hand, number: int) -> None:
        """Send a signal to a process."""
        hand.zygote.signal(hand.spawned, number)

    def ask(self, hand: Hand) -> None:
        """Ask a server for a sign of life."""
        hand.asked_at_s = time.monotonic()
        with contextlib.suppress(OSError):  # its end is heard by itself
            hand.spawned.channel.send(Turn(do="usage"))

    def leave(self) -> None:
        """Tell all that they may go, now that the job is done."""
        for hand in self.hands:
            with contextlib.suppress(OSError):
                hand.spawned.channel.send(Turn(do="leave"))

    def status(self, hand: Hand) -> int | None:
        """The exit status of a process whose channel is closed."""
        found: int | None = hand.zygote.wait(hand.spawned, 1.0)
        return found

    def end(self, hands: Sequence[Hand]) -> list[str]:
        """End processes at once; the names of those that did not end within EXIT_LIMIT_S."""
        there = [hand for hand in hands if hand.spawned is not None]
        for hand in there:
            hand.zygote.signal(hand.spawned, 9)
        left = [h.name for h in there if h.zygote.wait(h.spawned, EXIT_LIMIT_S) is None and h.zygote.alive]
        for hand in there:
            hand.zygote.release(hand.spawned)
            hand.spawned = None
        return left

    def words(self, characters: int = 1500) -> str:
        """The end of what each process wrote to standard error."""
        there = [hand for hand in self.hands if hand.spawned is not None]
        parts = [(hand.name, hand.spawned.stderr_tail(characters).strip()) for hand in there]
        return "\n\n".join(f"{name}:\n{text}" for name, text in parts if text)

    def hear(self, limit_s: float) -> list[Event]:
        """What has arrived, waiting at most `limit_s` for the first of it."""
        speaking = [hand for hand in self.hands if hand.spawned is not None and not hand.gone]
        if not any(hand.spawned.channel.holds_line for hand in speaking):
            select.select([hand.spawned.channel.connection for hand in speaking], [], [], limit_s)
        events = []
        for hand in speaking:
            events += self._all_of(hand)
        return events

    def _all_of(self, hand: Hand) -> list[Event]:
        events: list[Event] = []
        while True:
            try:
                line = hand.spawned.channel.receive_line(0.0)
            except EOFError:
                hand.gone = True
                return [*events, Event(time.monotonic(), hand, None)]
            if line is None:
                return events
            events.append(Event(time.monotonic(), hand, Report.model_validate_json(line)))
