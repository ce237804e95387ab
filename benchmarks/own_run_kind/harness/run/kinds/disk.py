"""How long a write takes that waits until it is on disk, in the folder of results."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.record.disk import DiskWrite
from harness.record.log import RecordLog, load_records
from harness.record.manifest import ExtensionPlan, PlanRecord
from harness.record.store import RunStore
from harness.run.kinds.base import LiveRun
from harness.run.process.zygote import Zygote
from harness.run.progress import say_line
from harness.run.runner import begin, new_manifest
from harness.spec.sweep import Sweep

BYTES = 1 << 20


class DiskLines:
    """A line on standard error for each write."""

    def say(self, text: str) -> None:
        """One line."""
        say_line(text, sys.stderr)

    def finished(self) -> None:
        """The last write's line says it."""


class DiskRun(LiveRun[DiskLines]):
    """Writes what is missing of the plan, and appends a record of each write."""

    name = "disk"

    def __init__(self, store: RunStore, listener: DiskLines) -> None:
        super().__init__(store, listener)
        self.writes = load_records(DiskWrite, store.path)
        self._planned = len(store.manifest.plans[0].blocks)

    @property
    def recorded(self) -> int:
        return len(self.writes)

    @contextlib.contextmanager
    def environments(self) -> Iterator[Mapping[str, Zygote]]:
        with RecordLog(self.store.path) as self._log:
            yield {}

    def announce(self) -> None:
        self.progress.say(f"run {self.store.manifest.run_id}: {self._planned - self.recorded} writes")

    def execute(self) -> None:
        for number in range(self.recorded, self._planned):
            self.interrupts.check()
            record = DiskWrite(number=number, seconds=seconds_of_a_write(self.store.path / "scratch"))
            self._log.append(record)
            self.writes.append(record)
            self.progress.say(f"write {number + 1}: {1e3 * record.seconds:.1f} ms")


def seconds_of_a_write(path: Path) -> float:
    """Write a file of BYTES, wait for the disk, remove it."""
    began = time.perf_counter()
    with path.open("wb") as file:
        file.write(bytes(BYTES))
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - began
    path.unlink()
    return seconds


def measure_disk(writes: int, results: Path, command: Sequence[str], lines: DiskLines) -> Path:
    """Measure a new run; its folder."""
    manifest = new_manifest(
        "disk",
        command,
        sweep=Sweep(name="disk"),
        cells=[],
        plans=[PlanRecord.sealed(1, 1, [[["write"]]] * writes)],
        extension=ExtensionPlan(name="disk", unit="writes", plan={"bytes": BYTES}),
    )
    return begin(DiskRun, results, manifest, lines)


KIND = DiskRun
