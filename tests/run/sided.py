"""An `ab` run on fake zygotes, one a side, so that what each side does can be told apart."""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.protocol.messages import Request
from harness.record import Run, load_run
from harness.run.kinds.ab import decide
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import Side
from harness.run.progress import Progress, Quiet
from harness.run.resume import resume
from harness.spec import Cell, Sweep
from tests.comparisons import FACTS
from tests.record.examples import cell
from tests.run.fakes import Actor, FakeZygote, Play, Plays

TWO = cell()
OTHER_OP = cell(cross_device_op="hierarchical_copy")
SHORT: Mapping[str, Any] = {"windows": 5, "max_warmup": 0, "timeout": 5.0, "window": 0.01}


def in_turn(make: Callable[[int], Play]) -> Plays:
    """What the trials of a side do, by their number: the block's, as long as none runs twice."""
    numbers = itertools.count()
    return lambda request: make(next(numbers)) if request.task == "trial" else Play()


def lasting(logs: Sequence[float], **changes: Any) -> Plays:
    """Trials whose windows last 0.1 s times e to the power of their number's value."""
    return in_turn(lambda number: steady(logs[number % len(logs)], **changes))


def steady(log: float = 0.0, **changes: Any) -> Play:
    """A trial whose windows all last 0.1·e^log seconds."""
    return Play(seconds=lambda _: 0.1 * math.exp(log), **changes)


def at(numbers: Sequence[int], play: Play, plays: Plays | None = None) -> Plays:
    """`play` for the trials of these numbers, and `plays` for the rest."""
    count = itertools.count()

    def choose(request: Request) -> Play:
        usual = Play() if plays is None else plays(request)
        if request.task != "trial":
            return usual
        return play if next(count) in numbers else usual

    return choose


def dies(at_round: int | str = 2) -> Play:
    """A trial that ends by a signal."""
    return Play(at_round, lambda actor: actor.end(-11))


def says(status: str, reason: str) -> Play:
    """A trial that ends while it is built and says why."""
    return Play("build", lambda actor: actor.say(status, reason))


@dataclass
class AbBench:
    """Two sides in a folder; `start` and `resume` do what the command line does."""

    folder: Path
    patch: pytest.MonkeyPatch
    a: Plays = field(default_factory=lambda: lasting([0.0]))
    b: Plays = field(default_factory=lambda: lasting([0.0]))
    cells: tuple[Cell, Cell] = (TWO, TWO)
    one_environment: bool = False
    """Both sides in the process of side a, which does what `a` says."""
    sweep: Mapping[str, Any] = field(default_factory=dict)
    settings: AbSettings = field(default_factory=lambda: AbSettings(Margins(), looks=(6,)))
    progress: Progress = field(default_factory=Quiet)

    def __post_init__(self) -> None:
        self.diary: list[tuple[str, str]] = []
        """(side, what happened) in order; a trial is spawned, is ready, begins a window, is done with it."""
        self.zygotes = {
            name: FakeZygote(self.folder / name, plays, name, self.diary)
            for name, plays in (("a", self.a), ("b", self.b))
        }
        if self.one_environment:
            self.zygotes["b"] = self.zygotes["a"]
        self.patch.setattr("harness.run.kinds.ab.side_zygotes", self._alive)
        self.patch.setattr("harness.run.runner.facts", lambda: FACTS)

    @contextlib.contextmanager
    def _alive(self, sides: Sequence[Side], _: object) -> Iterator[Mapping[str, FakeZygote]]:
        yield {side.name: self.zygotes[side.name] for side in sides}

    @property
    def sides(self) -> tuple[Side, Side]:
        sweep = Sweep(**{**SHORT, **self.sweep})
        one, two = (
            Side(name=name, label=f"side {name}", cell=item, sweep=sweep, settings={}, environment={})  # type: ignore[arg-type]
            for name, item in zip("ab", self.cells, strict=True)
        )
        return one, two

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def path(self) -> Path:
        """The folder of the only run."""
        [path] = self.results.iterdir()
        return path

    @property
    def stored(self) -> Run:
        return load_run(self.path)

    def start(self) -> Run:
        """Measure from the beginning."""
        return decide(self.sides, self.settings, self.results, ["harness", "ab"], self.progress)

    def resume(self, a: Plays | None = None, b: Plays | None = None) -> Run:
        """Measure what is missing; from now on the trials do what `a` and `b` say."""
        self.diary.clear()
        for name, plays in (("a", a), ("b", b)):
            self.zygotes[name].spawned.clear()
            self.zygotes[name].plays = plays or lasting([0.0])
        resume("ab", self.path, self.progress)
        return self.stored

    def spawned(self) -> list[str]:
        """The sides of the trials that were started, in order."""
        return [name for name, what in self.diary if what == "trial is spawned"]


def hang_up(happens: Callable[[], None]) -> Callable[[Actor], None]:
    """What a trial does that calls `happens` and then does nothing until it is killed."""

    def act(actor: Actor) -> None:
        happens()
        actor.hang()

    return act
