"""A validation on a fake zygote, whose trials are as slow as what was planted in them and its placebo."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.protocol.messages import Request
from harness.record import Run, load_run
from harness.record.manifest import ValidationPlan
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.validate import ValidateSettings, validate
from harness.run.progress import Progress, Quiet
from harness.run.resume import resume
from harness.spec import Cell, Sweep
from harness.trial.delay import PLACEBO
from tests.comparisons import FACTS
from tests.run.fakes import FakeZygote, Play, Plays
from tests.run.sided import SHORT, TWO

ONE = TWO.base
NOISE = (0.0004, -0.0002, 0.0003, -0.0005, 0.0001, 0.0002, -0.0003)
WILD = tuple(30 * value for value in NOISE)


def as_planted(noise: Sequence[float] = NOISE, kind: Callable[[Request], Play] | None = None) -> Plays:
    """Trials that take as much longer as is planted in them, but for some noise; or what `kind` gives."""
    numbers = itertools.count()

    def plays(request: Request) -> Play:
        if request.task != "trial":
            return Play()
        share = request.plant.share if request.plant else 0.0
        placebo = PLACEBO if request.plant and request.plant.kind != "input_stall" else 0.0
        log = math.log1p(share) + math.log1p(placebo) + noise[next(numbers) % len(noise)]
        chosen = kind(request) if kind else Play()
        return Play(chosen.at, chosen.happens, lambda _: 0.1 * math.exp(log), chosen.outcome, chosen.steps)

    return plays


@dataclass
class Handed:
    """A preloaded process that is there from the beginning; how it would be started is noted."""

    zygote: FakeZygote
    starts: list[tuple[str, FakeZygote]]

    def launch(self) -> None:
        self.starts.append(("launched", self.zygote))

    def __enter__(self) -> FakeZygote:
        self.starts.append(("waited for", self.zygote))
        return self.zygote

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...


@dataclass
class ValidateBench:
    """A validation in a folder; `start` and `resume` do what the command line does."""

    folder: Path
    patch: pytest.MonkeyPatch
    plays: Plays = field(default_factory=as_planted)
    rounds: int = 2
    cells: Sequence[Cell] = (ONE, TWO)
    settings: AbSettings = field(default_factory=lambda: AbSettings(Margins(), looks=(3, 5)))
    sweep: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Quiet)
    diary: list[tuple[str, str]] = field(default_factory=list)
    starts: list[tuple[str, FakeZygote]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.zygote = FakeZygote(self.folder / "scratch", self.plays, diary=self.diary)
        self.apart = FakeZygote(self.folder / "other", self.plays, diary=self.diary)
        self.patch.setattr("harness.run.kinds.base.Zygote", self._zygote)
        self.patch.setattr("harness.run.runner.facts", lambda: FACTS)

    def _zygote(self, _: object) -> "Handed":
        return Handed(next(self._given), self.starts)

    @property
    def asked(self) -> ValidateSettings:
        return ValidateSettings(Sweep(**{**SHORT, **self.sweep}), self.cells, self.settings, self.rounds)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def path(self) -> Path:
        [path] = self.results.iterdir()
        return path

    @property
    def stored(self) -> Run:
        return load_run(self.path)

    @property
    def plan(self) -> ValidationPlan:
        """As it stands on disk."""
        plan = self.stored.manifest.validation
        assert plan is not None
        return plan

    def _given_anew(self) -> None:
        """The preloaded processes of the next sitting: the second is for those that ask for two."""
        self._given = iter([self.zygote, self.apart])

    def start(self) -> Run:
        self._given_anew()
        return load_run(validate(self.asked, self.results, ["harness", "validate"], self.progress))

    def resume(self, plays: Plays | None = None) -> Run:
        """Measure what is missing; from now on trials do what `plays` says."""
        self._given_anew()
        self.zygote.spawned.clear()
        self.zygote.plays = plays or as_planted()
        resume("validation", self.path, self.progress)
        return self.stored

    def spawned(self) -> list[Request]:
        """What the recorded trials were asked: rehearsals, which come first, left out."""
        trials = [request for request in self.zygote.spawned if request.task == "trial"]
        plan = self.plan
        kinds = {(of.cell_id, arm.slowed.kind) for of in plan.rounds for arm in of.arms if arm.slowed}
        return trials[len(kinds) :]
