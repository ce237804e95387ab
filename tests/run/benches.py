"""A run of each kind on stand-ins, begun and gone on with as its verb does, for what all kinds have in common."""

import contextlib
import itertools
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.errors import Interrupted
from harness.protocol.messages import Request
from harness.run.kinds.ab import decide
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.explain import ExplainSettings, explain
from harness.run.kinds.faults.progress import FaultLines
from harness.run.kinds.faults.run import measure_faults
from harness.run.kinds.measure import measure_matrix
from harness.run.kinds.sides import Side
from harness.run.kinds.validate import ValidateSettings, validate
from harness.run.network import NetworkError
from harness.run.progress import Quiet
from harness.spec import Sweep
from harness.spec.cell import TrainingCell, trained
from harness.spec.expand import Matrix
from harness.spec.faults import faults_from
from harness.spec.inputs import LeftOut
from tests.comparisons import FACTS
from tests.record.examples import cell
from tests.run.fakes import Actor, FakeZygote, Play

SETTINGS = {"trials": 4, "windows": 5, "max_warmup": 0, "timeout": 5.0, "window": 0.01}
GONE = "the process that holds a network namespace is gone"


class KindBench(ABC):
    """One run in a folder. What goes wrong in it is set before it begins."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, model: str = "mnist_cnn") -> None:
        self.results = folder / "results"
        self.model = model
        self.refuses: str | None = None
        """A task that comes to nothing: `prepare` or `preflight`."""
        self.no_process: Exception | None = None
        """What starting the preloaded process comes to, if it does not start."""
        self.stops_at: int | None = None
        """The trial or job, counted from 0, during which Ctrl-C is pressed."""
        self.zygote = FakeZygote(folder / "scratch", self._plays)
        self.settings = {**SETTINGS, "data_dir": str(folder / "data")}
        self._count = itertools.count()
        patch.setattr("harness.run.kinds.base.Zygote", self._alive)
        patch.setattr("harness.run.runner.facts", lambda: FACTS)

    @abstractmethod
    def begin(self) -> Path:
        """Measure from the beginning."""

    def listener(self) -> Any:
        """Who listens when the run is gone on with."""
        return Quiet()

    @property
    def path(self) -> Path:
        """The folder of the only run."""
        [path] = self.results.iterdir()
        return path

    @contextlib.contextmanager
    def _alive(self, *_: object, **__: object) -> Iterator[FakeZygote]:
        if self.no_process is not None:
            raise self.no_process
        yield self.zygote

    def _plays(self, request: Request) -> Play:
        if request.task == self.refuses:
            return Play(happens=lambda actor: actor.say("unsupported", "no room"))
        if request.task == "trial" and next(self._count) == self.stops_at:
            return Play(1, press_ctrl_c)
        return Play()


def press_ctrl_c(actor: Actor) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    actor.hang()


class SweepBench(KindBench):
    def begin(self) -> Path:
        two = cell(model=self.model)
        base = two.base
        matrix = Matrix((base, two), added_base=frozenset({base.cell_id}))
        return measure_matrix(Sweep(**self.settings), matrix, self.results, ["harness"], Quiet())


class AbSides(KindBench):
    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, model: str = "mnist_cnn") -> None:
        super().__init__(folder, patch, model)
        patch.setattr("harness.run.kinds.ab.side_zygotes", self._both)

    @contextlib.contextmanager
    def _both(self, *_: object) -> Iterator[dict[str, FakeZygote]]:
        with self._alive() as zygote:
            yield {"a": zygote, "b": zygote}

    def begin(self) -> Path:
        sweep = Sweep(**{**self.settings, "trials": 1})
        both: Any = tuple(Side(name, name, cell(model=self.model), sweep, {}, {}) for name in ("a", "b"))
        settings = AbSettings(Margins(), looks=(6,))
        return decide(both, settings, self.results, ["harness"]).path


class ValidationBench(KindBench):
    def begin(self) -> Path:
        settings = AbSettings(Margins(), looks=(3, 5))
        cells = [cell(model=self.model)]
        asked = ValidateSettings(Sweep(**{**self.settings, "trials": 1}), cells, settings, rounds=1)
        return validate(asked, self.results, ["harness"])


class ExplainBench(KindBench):
    blocks = 2
    left_out: Sequence[LeftOut] = ()

    def begin(self, *cells: TrainingCell) -> Path:
        sweep = Sweep(**{**self.settings, "trials": self.blocks})
        asked = ExplainSettings(sweep, cells or [trained(cell(model=self.model))], self.left_out)
        return explain(asked, self.results, ["harness"])


class FaultsBench(KindBench):
    """Every job that is tried fails, since its network breaks, unless `ground` is another one."""

    ground: Callable[..., Any] | None = None

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, model: str = "mnist_cnn") -> None:
        super().__init__(folder, patch, model)
        patch.setattr("harness.run.kinds.faults.run.hosts_for", self._ground)

    def begin(self) -> Path:
        planned = faults_from(
            {
                "repeats": 2,
                "fault": ["kill_worker", "kill_ps"],
                "model": self.model,
                "data_dir": self.settings["data_dir"],
            }
        )
        return measure_faults(planned, self.results, ["harness"], self.listener())

    def listener(self) -> Any:
        return FaultLines(quiet=True)

    @contextlib.contextmanager
    def _ground(self, *given: Any) -> Iterator[Any]:
        if next(self._count) == self.stops_at:
            raise Interrupted("interrupted")  # as a supervisor does once Ctrl-C was pressed
        if self.ground is not None:
            self.ground(*given)
        raise NetworkError(GONE)
        yield


BENCHES: dict[str, type[KindBench]] = {
    "sweep": SweepBench,
    "ab": AbSides,
    "validation": ValidationBench,
    "explain": ExplainBench,
    "faults": FaultsBench,
}
"""By the name of a kind, as `harness.run.kinds.run_kinds` has it; a kind without one fails its tests."""
