"""Trainings of the same work that can be taken up again: batches by their number, checkpoints that are there whole or
not at all."""

import functools
import re
import shutil
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from harness.errors import Unsupported
from harness.trial.job import BATCHES
from harness.trial.same_work.trainer import SameWorkTrainer

KEPT = 2
"""Checkpoints that stay, as `harness.engines.tensorflow.recovery.checkpoints` keeps them."""
STEP = re.compile(r"step-(\d+)")


class CheckpointFolders:
    """A folder a checkpoint, which gets its name when all is in it: a process may be killed before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def newest(self) -> int:
        """The step that it is of; 0 where there is none."""
        return max(self._steps, default=0)

    def place(self, step: int) -> Path:
        """The folder of a step's."""
        return self._folder / f"step-{step}"

    def save(self, step: int, write: Callable[[Path], None]) -> None:
        """`write` it into an empty folder; those before the newest KEPT go."""
        unfinished = self._folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(unfinished)
        unfinished.rename(self.place(step))
        for old in sorted(self._steps)[:-KEPT]:
            shutil.rmtree(self.place(old))

    @property
    def bytes(self) -> int:
        """Of all files of the newest."""
        return sum(file.stat().st_size for file in self.place(self.newest).glob("*"))

    @property
    def _steps(self) -> list[int]:
        names = (STEP.fullmatch(path.name) for path in self._folder.glob("step-*"))
        return [int(name[1]) for name in names if name is not None]


class Recovering(SameWorkTrainer):
    """A trainer that is a `harness.protocol.engine.Recoverable`, too; the first process writes for all."""

    title: ClassVar[str]
    """The engine's name for people."""

    @abstractmethod
    def _step(self, x: Any, y: Any) -> Any:
        """One update; the loss."""

    @abstractmethod
    def _placed(self, share: Any) -> tuple[Any, Any]:
        """This process's share of a batch as a step takes it."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Save weights, statistics, the optimizer's state and its count in a folder that is empty."""

    @abstractmethod
    def _read(self, folder: Path) -> None:
        """Go back to what `_write` has saved there."""

    @functools.cached_property
    def _by_number(self) -> list[tuple[Any, Any]]:
        return [self._placed(self._data.share_of(batch)) for batch in self._data.first(BATCHES)]

    def step(self, number: int) -> None:
        """One update, waited for."""
        float(self._step(*self._by_number[number % BATCHES]))

    def restore(self) -> int:
        """Every process reads what the first one wrote."""
        newest = self._checkpoints.newest
        if newest:
            self._read(self._checkpoints.place(newest))
        return newest

    def save(self, step: int) -> None:
        """The first process alone."""
        if self._rank == 0:
            self._checkpoints.save(step, self._write)

    def checkpoint_bytes(self) -> int:
        """Of the newest."""
        return self._checkpoints.bytes

    def listen(self, saved: Callable[[int], None]) -> None:
        """Refused, unless an engine has a way."""
        raise Unsupported(f"{self.title} has nothing that saves when a process is told to end; see kill_worker")

    @functools.cached_property
    def _checkpoints(self) -> CheckpointFolders:
        assert self._request.job is not None
        return CheckpointFolders(Path(self._request.job.folder) / "periodic")
