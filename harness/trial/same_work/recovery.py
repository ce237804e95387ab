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
        newest = max(self._written, default=0)
        if newest:
            self._read(self._place(newest))
        return newest

    def save(self, step: int) -> None:
        """In a folder that gets its name when all is in it: a process may be killed before."""
        if self._rank:
            return
        unfinished = self._folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        self._write(unfinished)
        unfinished.rename(self._place(step))
        for old in sorted(self._written)[:-KEPT]:
            shutil.rmtree(self._place(old))

    def checkpoint_bytes(self) -> int:
        """All files of the newest."""
        files = self._place(max(self._written)).iterdir() if self._written else ()
        return sum(file.stat().st_size for file in files)

    def listen(self, saved: Callable[[int], None]) -> None:
        """Refused, unless an engine has a way."""
        raise Unsupported(f"{self.title} has nothing that saves when a process is told to end; see kill_worker")

    @property
    def _folder(self) -> Path:
        assert self._request.job is not None
        return Path(self._request.job.folder) / "periodic"

    def _place(self, step: int) -> Path:
        return self._folder / f"step-{step}"

    @property
    def _written(self) -> list[int]:
        """The steps that checkpoints are of."""
        names = [STEP.fullmatch(path.name) for path in self._folder.glob("step-*")]
        return [int(name[1]) for name in names if name is not None]
