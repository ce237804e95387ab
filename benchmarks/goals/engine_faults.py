"""Faults planted in every engine, in two, three and four processes: each is found, and what is right passes.

Promise: of every engine all planted faults are a `wrong_result` with the evidence, and the same cells without any are
`ok`, whether two, three or four processes train. The faults are those of `tests/engines/ENGINE/faulty.py`, which says
what each does, and come in as cross-device ops of an engine that is named by `--engine package.module:class`.

    python benchmarks/goals/engine_faults.py [ENGINE ...]
"""

import importlib
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import markdown, scratch, table

from harness.errors import UsageError
from harness.record.trial import TrialRecord

RIGHT = "auto"
PROCESSES = (2, 3, 4)
SMALL = {
    "model": ["mlp"],
    "data": ["digits"],
    "batch_size": [8],
    "optimizer": ["sgd"],
    "intra_op_threads": [1],
    "trials": 1,
    "windows": 5,
    "window": 0.01,
    "max_warmup": 0,
}
WORDS = 60
"""Of the evidence so many characters are printed at most."""


@dataclass(frozen=True)
class FaultyEngine:
    """An engine with faults: the name of its class, and the ways to train in several processes that have them."""

    engine: str
    kind: str
    strategy: str
    loops: tuple[str, ...]

    @property
    def module(self) -> str:
        """Where the class is, with the names of its faults."""
        return f"tests.engines.{self.engine}.faulty"

    @property
    def faults(self) -> tuple[str, ...]:
        """By their names as cross-device ops."""
        found: tuple[str, ...] = importlib.import_module(self.module).FAULTS
        return found

    def trials(
        self, processes: Sequence[int] = PROCESSES, loops: Sequence[str] = (), faults: Sequence[str] = ()
    ) -> list[TrialRecord]:
        """One of each loop, fault and number of processes, and of what is right, in one sweep; all where none is
        named."""
        from tests.engines.sweeps import swept

        asked = {
            **SMALL,
            "engine": f"{self.module}:{self.kind}",
            "strategy": [self.strategy],
            "loop": list(loops or self.loops),
            "workers": list(processes),
            "replicas": [1],
            "cross_device_op": [RIGHT, *(faults or self.faults)],
        }
        with scratch() as folder:
            return list(swept(asked, Path(folder), forked=False).trials)


FAULTY = (
    FaultyEngine("tensorflow", "FaultyTensorFlow", "multi_worker_mirrored", ("custom",)),
    FaultyEngine("horovod", "FaultyHorovod", "data_parallel", ("tape",)),
    FaultyEngine("torch", "FaultyTorch", "data_parallel", ("ddp", "all_reduce")),
    FaultyEngine("jax", "FaultyJax", "multi_process", ("jit", "shard_map")),
    FaultyEngine("keras_distribution", "FaultyKeras", "multi_process", ("data_parallel",)),
)


@dataclass(frozen=True)
class Tried:
    """A fault, or what is right, in one loop of an engine, with a trial of each number of processes."""

    engine: str
    loop: str
    fault: str
    trials: tuple[TrialRecord, ...]

    @property
    def ends(self) -> dict[int, str]:
        """By the number of processes: `found` or `missed`, of what is right `ok` or `called wrong`, or another end."""
        names = {"ok": "ok", "wrong_result": "called wrong"}
        if self.fault != RIGHT:
            names = {"ok": "missed", "wrong_result": "found"}
        return {trial.cell.workers: names.get(trial.status, trial.status) for trial in self.trials}

    @property
    def as_promised(self) -> bool:
        """Whether all ended as they are to."""
        wanted = "ok" if self.fault == RIGHT else "found"
        return self.ends == dict.fromkeys(PROCESSES, wanted)

    @property
    def row(self) -> tuple[str, ...]:
        """For the table, with what the first of them ended by."""
        reason = next((trial.reason for trial in self.trials if trial.reason), "")
        name = "none: right" if self.fault == RIGHT else self.fault
        return (
            self.engine,
            self.loop,
            name,
            *(self.ends.get(n, "not run") for n in PROCESSES),
            textwrap.shorten(reason, WORDS, placeholder=" …"),
        )


def main() -> None:
    """Run and print; exit code 1 unless every fault was found, everywhere, and nothing right was called wrong."""
    wanted = [one for one in FAULTY if one.engine in sys.argv[1:] or not sys.argv[1:]]
    tried = [each for one in wanted for each in _tried(one)]
    table([("engine", "loop", "fault", *(f"{n} processes" for n in PROCESSES), "evidence"), *(t.row for t in tried)])
    print("\n" + markdown(by_fault(tried)))
    rights = [one for one in tried if one.fault == RIGHT]
    missed = [one for one in tried if one.fault != RIGHT and not one.as_promised]
    wrong = [one for one in rights if not one.as_promised]
    print(f"\n{len(tried) - len(rights)} faults, each in {PROCESSES} processes: {len(missed)} not found everywhere")
    print(f"{len(rights)} right ways: {len(wrong)} not ok everywhere")
    sys.exit(bool(missed or wrong) or {one.engine for one in tried} != {one.engine for one in wanted})


def _tried(of: FaultyEngine) -> Iterator[Tried]:
    """Nothing, and why, where the engine is not installed."""
    try:
        trials = of.trials()
    except UsageError as error:
        print(f"{of.engine}: not tried: {error}")
        return
    for loop in of.loops:
        for fault in (RIGHT, *of.faults):
            mine = (t for t in trials if (t.cell.loop, t.cell.cross_device_op) == (loop, fault))
            yield Tried(of.engine, loop, fault, tuple(sorted(mine, key=lambda trial: trial.cell.workers)))


def by_fault(tried: Sequence[Tried]) -> list[tuple[str, ...]]:
    """Of each fault and engine the processes at which every loop's end was as promised."""
    engines = list(dict.fromkeys(one.engine for one in tried))
    rows = [("fault", *engines)]
    for fault in dict.fromkeys(one.fault for one in tried):
        cells = ([one for one in tried if (one.engine, one.fault) == (engine, fault)] for engine in engines)
        rows.append((f"`{fault}`", *map(_promised_at, cells)))
    return rows


def _promised_at(tried: Sequence[Tried]) -> str:
    good = [str(n) for n in PROCESSES if all(one.ends.get(n) in ("ok", "found") for one in tried)]
    return ", ".join(good) or "none" if tried else "–"


if __name__ == "__main__":
    main()
