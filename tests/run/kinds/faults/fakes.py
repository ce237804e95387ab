"""A crew whose processes are a script, in a time that passes only when somebody waits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.messages import JobReport, Membership, Outcome, Report, Usage
from harness.record.trial import Resources
from harness.run.kinds.faults.crew import Crew, Event, Hand

Says = Callable[["FakeCrew", float], None]


@dataclass
class FakeCrew(Crew):
    """`plays` says, by a process's name, what it does when it is started: it schedules events."""

    plays: dict[str, Says] = field(default_factory=dict)
    now: float = 100.0
    coming: list[tuple[float, str, int, Report | None]] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    signals: list[tuple[str, int]] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    """Servers that do not answer."""

    def clock(self) -> float:
        return self.now

    def say(self, name: str, after_s: float, report: Report | None) -> None:
        """A report of the process as it is now, lost if it is ended before."""
        life = self.starts.count(name)
        self.coming.append((self.now + after_s, name, life, report))

    def job(self, name: str, after_s: float, what: Any, step: int, **more: Any) -> None:
        report = JobReport(what=what, step=step, at_s=self.now + after_s, **more)
        self.say(name, after_s, Report(job=report))

    def steps(self, name: str, first: int, last: int, after_s: float = 0.0, each_s: float = 1.0) -> None:
        """Training from `first` on, a step a second."""
        self.job(name, after_s, "training", first)
        for number, step in enumerate(range(first + 1, last + 1), start=1):
            self.job(name, after_s + number * each_s, "step", step)

    def ends(self, name: str, after_s: float, status: Any = "ok", reason: str | None = None) -> None:
        self.say(name, after_s, Report(outcome=Outcome(status=status, reason=reason, resources=Resources())))

    def silence(self, name: str) -> None:
        """Nothing more comes from the process as it is now."""
        self.coming = [event for event in self.coming if event[1] != name]
        self.silent.add(name)

    def dies(self, name: str) -> None:
        """Nothing more comes but its end."""
        self.silence(name)
        self.say(name, 0.0, None)

    # what the supervisor calls

    def start(self, hand: Hand) -> None:
        hand.outcome, hand.gone, hand.preempted = None, False, False
        hand.ready_at_s = hand.asked_at_s = None
        hand.child = object()
        self.starts.append(hand.name)
        self.silent.discard(hand.name)
        self.plays[hand.name](self, self.starts.count(hand.name))

    def signal(self, hand: Hand, number: int) -> None:
        self.signals.append((hand.name, number))

    def ask(self, hand: Hand) -> None:
        hand.asked_at_s = self.now
        if hand.name not in self.silent:
            self.say(hand.name, 0.0, Report(usage=Usage()))

    def leave(self) -> None:
        self.starts.append("leave")

    def status(self, hand: Hand) -> int | None:
        return -9

    def end(self, hands: Any) -> list[str]:
        for hand in hands:
            hand.child = None
            self.coming = [event for event in self.coming if event[1] != hand.name]
        return []

    def words(self, characters: int = 1500) -> str:
        return "stacks"

    def hear(self, limit_s: float) -> list[Event]:
        self.coming.sort(key=lambda event: event[0])
        if not self.coming or self.coming[0][0] > self.now + limit_s:
            self.now += limit_s
            return []
        at, name, _, report = self.coming.pop(0)
        self.now = max(self.now, at)
        hand = self.named(name)
        if report is None:
            hand.gone = True
        return [Event(self.now, hand, report)]


def crew_of(plays: dict[str, Says]) -> FakeCrew:
    """Processes by name: `worker 0` and so on train together unless there is a `coordinator`."""
    served = "coordinator" in plays
    cluster = {"worker": ["a:1", "b:1"], **({"chief": ["c:1"], "ps": ["d:1"]} if served else {})}
    hands = []
    for name in plays:
        member = None
        if name != "the process":
            task, _, index = name.partition(" ")
            member = Membership(
                task="chief" if task == "coordinator" else task,  # type: ignore[arg-type]
                index=int(index or 0),
                cluster=cluster,
            )
        hands.append(Hand(name, member, None, None))  # type: ignore[arg-type]
    return FakeCrew(hands, plays)


def serves(name: str) -> Says:
    """A server: ready half a second after each start; it answers unless it is silenced."""
    return lambda crew, _: crew.say(name, 0.5, Report(ready=True))
