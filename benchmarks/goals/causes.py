"""Causes planted are causes found: what `explain` says of a step that is slow for a known reason.

In each block of a case the cell's step and its instruments are alive together with the same of a cell in which something
is planted: time that the input makes the steps wait, Python beside the steps, work on every device before the forward
pass, or a longer update. Promise: where 10 or 20 % of a step are planted the right part grows by what was planted, within
the 95 % interval of what it grew, in at least 90 % of the cases; another part is named in at most 5 %. What 5 % come to
is printed and promises nothing; where nothing is planted, so is how often an interval misses that.

    python benchmarks/goals/causes.py [--part I/N] [--only REGEX] [--show] [--results FILE]

Results are appended to a file, one line a case, and a case that is there is not run again. A case's key is
CAUSE/SHARE/REPLICAS/NUMBER. One takes one to three minutes.
"""

import argparse
import json
import math
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import cell, interval, scratch, table

from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.explain import part_weights
from harness.record.explain import (
    ALONE,
    EMPTY,
    FORWARD_BACKWARD,
    NO_INPUT,
    NO_REDUCTION,
    NO_UPDATE,
    WHOLE,
    ExplainPlan,
    FamilyRecord,
)
from harness.record.manifest import PlanRecord
from harness.record.packed import read_records
from harness.record.reading import load_run
from harness.record.trial import Plant, TrialRecord
from harness.run.kinds.arms import start_order
from harness.run.kinds.base import Arm
from harness.run.kinds.explain import ExplainRun, alone_of
from harness.run.progress.base import Quiet
from harness.run.runner import begin, new_manifest
from harness.spec import Sweep
from harness.spec.cell import trained

CAUSES = {
    "input_stall": "input",
    "host_delay": "dispatch",
    "device_work": "compute",
    "slow_update": "update",
}
"""Kinds of plants, and the part of a step that each is in."""
SECONDS = ("input_stall", "host_delay")
"""Of these what is planted is seconds; of the others it is work."""
NOTHING = "nothing"
SHARES = (0.10, 0.20, 0.05)
JUDGED = 0.10
"""From this share on there is a promise."""
REPLICAS = (1, 2)
NUMBERS = 3
BLOCKS = 5
BATCH_SIZE = 64
SWEEP = {"window": 0.05, "windows": 30, "max_warmup": 3}
PROBE = 400.0
"""Passes of work a step by which a pilot finds out what one takes."""
PILOT_BLOCKS = 3
PLANTED = "planted "
"""Before the name of an arm in which the cause is planted."""
RESULTS = Path("build/causes.jsonl")
Times = Mapping[str, float]
"""Seconds a step of each arm of a block."""


@dataclass(frozen=True)
class CauseCase:
    """Something that is planted, as a share of a step, at so many replicas; `number` counts those that are alike."""

    cause: str
    share: float
    replicas: int
    number: int

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.cause}/{self.share:g}/{self.replicas}/{self.number}"

    @property
    def part(self) -> str:
        """The part that is to grow; empty where nothing is planted."""
        return CAUSES.get(self.cause, "")

    @classmethod
    def of(cls, key: str) -> "CauseCase":
        """The case of a key."""
        cause, share, replicas, number = key.split("/")
        return cls(cause, float(share), int(replicas), int(number))


def cases() -> list[CauseCase]:
    """All of them, one of each kind after the other."""
    return [
        CauseCase(cause, share, replicas, number)
        for number in range(NUMBERS)
        for share in (*SHARES, 0.0)
        for replicas in REPLICAS
        for cause in (CAUSES if share else (NOTHING,))
        if share >= JUDGED or number == 0 or not share
    ]


def main() -> None:
    """Run what is missing, then print."""
    given = _arguments()
    number, of = map(int, given.part.split("/"))
    chosen = [case for case in cases()[number - 1 :: of] if re.search(given.only, case.key)]
    if not given.show:
        run([case for case in chosen if case.key not in read(given.results)], given.results)
    show(read(given.results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth case, from the Ith on")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose key has this")
    parser.add_argument("--show", action="store_true", help="run nothing, print what there is")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results (default: %(default)s)")
    return parser.parse_args()


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The last result of each key; a line that was cut off is none."""
    found: dict[str, dict[str, Any]] = {}
    for line in read_records(path).splitlines() if path.exists() else ():
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[result["key"]] = result
    return found


def run(wanted: Sequence[CauseCase], results: Path) -> None:
    """Each case, and its result at the end of the file."""
    results.parent.mkdir(parents=True, exist_ok=True)
    for place, case in enumerate(wanted, start=1):
        begun = time.monotonic()
        each = _amount(case, results)
        plants = None if case.cause == NOTHING else (_placebo(case.cause), Plant(kind=case.cause, share=0.0, each=each))
        blocks, lacking = measured(case, BLOCKS, _arms(case.replicas), plants)
        _keep(results, {"key": case.key, "each": each, "blocks": blocks, "lacking": lacking})
        print(f"{place}/{len(wanted)} {time.monotonic() - begun:.0f} s  {case.key}  {_told(case, blocks)}", flush=True)


def _keep(results: Path, result: dict[str, Any]) -> None:
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result | {"commit": said.stdout.strip()}) + "\n")


def _placebo(cause: str) -> Plant:
    """All that the plant does anyway, and nothing more."""
    return Plant(kind=cause, share=0.0, each=0.0)


def _amount(case: CauseCase, results: Path) -> float:
    """What is to be planted in each step: seconds, or passes of work by what one took in a pilot."""
    if case.cause == NOTHING:
        return 0.0
    pilots = {cause: _pilot(CauseCase(cause, 0.0, case.replicas, -1), results) for cause in {case.cause, "device_work"}}
    if case.cause in SECONDS:
        return case.share * pilots["device_work"][WHOLE]
    plain, probed = pilots[case.cause][WHOLE], pilots[case.cause][PLANTED + WHOLE]
    return case.share * plain * PROBE / max(probed - plain, 1e-9)


def _pilot(case: CauseCase, results: Path) -> Times:
    """Mean seconds of the whole step with and without `PROBE` passes of work, kept as a case is."""
    if case.cause in SECONDS:
        return {}
    kept = read(results).get(case.key)
    if kept is None:
        plants = _placebo(case.cause), Plant(kind=case.cause, share=0.0, each=PROBE)
        blocks, lacking = measured(case, PILOT_BLOCKS, [WHOLE], plants)
        kept = {"key": case.key, "each": PROBE, "blocks": blocks, "lacking": lacking}
        _keep(results, kept)
    blocks = kept["blocks"]
    return {name: math.fsum(block[name] for block in blocks) / len(blocks) for name in (WHOLE, PLANTED + WHOLE)}


def _arms(replicas: int) -> list[str]:
    """Those that parts are made of."""
    plain = [WHOLE, NO_INPUT, NO_UPDATE, FORWARD_BACKWARD, EMPTY]
    return plain if replicas == 1 else [*plain, NO_REDUCTION, ALONE]


def measured(
    case: CauseCase, blocks: int, arms: Sequence[str], plants: tuple[Plant, Plant] | None
) -> tuple[list[Times], dict[str, str]]:
    """(seconds a step of each arm in each block that is complete, why others were not), of a run that is not kept.

    `plants` are what the plain arms have and what the planted ones have; None is nothing in both.
    """
    asked = trained(cell("none" if case.replicas == 1 else "mirrored", case.replicas, BATCH_SIZE))
    alone = alone_of(asked)
    family = FamilyRecord(
        cell_id=asked.cell_id,
        arms=[*arms, *(PLANTED + name for name in arms)],
        alone=alone.cell_id if ALONE in arms else None,
    )
    seed = 1 + hash_of(case.key)
    manifest = new_manifest(
        "explain",
        ["benchmarks/goals/causes.py"],
        sweep=Sweep(seed=seed, trials=max(2, blocks), **SWEEP),  # type: ignore[arg-type]
        cells=list({one.cell_id: one for one in (asked, alone)}.values()),
        plans=[PlanRecord.sealed(seed, 1, [[start_order(seed, block, family.arms)] for block in range(blocks)])],
        explain=ExplainPlan(families=[family], blocks=blocks),
    )
    with scratch() as folder:
        path = begin(lambda store, listener: PlantedRun(store, listener, plants), Path(folder), manifest, Quiet())
        trials = load_run(path).trials
    times = _times(trials, family.arms)
    return times, {str(t.side): f"{t.status}: {t.reason}" for t in trials if not t.measured}


class PlantedRun(ExplainRun):
    """A run whose family has each arm twice, with and without a cause in it."""

    def __init__(self, store: Any, listener: Any, plants: tuple[Plant, Plant] | None) -> None:
        super().__init__(store, listener)
        self._plants = plants or (None, None)

    def _arm(self, family: FamilyRecord, name: str) -> Arm:
        bare = name.removeprefix(PLANTED)
        arm = super()._arm(family, bare)
        return replace(arm, name=name, request=arm.request.model_copy(update={"plant": self._plants[bare != name]}))


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    return sum((place + 1) * ord(letter) for place, letter in enumerate(text))


def _times(trials: Sequence[TrialRecord], arms: Sequence[str]) -> list[Times]:
    found: dict[int, dict[str, float]] = {}
    for trial in trials:
        if trial.measured and trial.step_time_s and trial.side:
            found.setdefault(trial.block, {})[trial.side] = trial.step_time_s
    return [times for times in found.values() if set(arms) <= times.keys()]


@dataclass(frozen=True)
class PartGrowth:
    """By how much of the plain step a part became longer, in the mean over blocks, with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "PartGrowth":
        """Of one value a block, by Student's t."""
        return cls(*interval(values)[:3])

    def holds(self, value: float) -> bool:
        """Whether the interval holds it."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{100 * self.value:+.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class CauseResult:
    """What became of one case."""

    case: CauseCase
    planted: PartGrowth
    """What was planted, as a share of the plain step of each block: of work, by how much the whole step became longer."""
    parts: Mapping[str, PartGrowth]
    missed: PartGrowth
    """Growth of the right part less what was planted."""

    @property
    def found(self) -> bool:
        """Whether the right part grew by what was planted, within its interval."""
        return self.missed.holds(0.0)

    @property
    def seen(self) -> bool:
        """Whether the right part grew beyond doubt."""
        return self.parts[self.case.part].low > 0

    @property
    def wrong(self) -> list[str]:
        """Other parts that are named: which grew beyond doubt, and by half of what was planted at least."""
        named = (name for name, of in self.parts.items() if of.low > 0 and of.value >= self.planted.value / 2)
        return [name for name in named if name not in (self.case.part, "unexplained")]


def result_of(case: CauseCase, blocks: Sequence[Times], each: float) -> CauseResult | None:
    """None of fewer than two complete blocks."""
    if len(blocks) < 2:
        return None
    several = case.replicas > 1
    family = FamilyRecord(cell_id="", arms=_arms(case.replicas), alone="" if several else None)
    weights = {n: w for n, w in part_weights(family).items() if set(w) <= set(_arms(case.replicas))}
    grew = {name: [_growth(of, block) for block in blocks] for name, of in weights.items()}
    longer = [_growth({WHOLE: 1.0}, block) for block in blocks]
    planted = [each / block[WHOLE] for block in blocks] if case.cause in SECONDS else longer
    right = grew.get(case.part, longer)
    missed = [a - b for a, b in zip(right, planted, strict=True)]
    parts = {name: PartGrowth.of(values) for name, values in grew.items()}
    return CauseResult(case, PartGrowth.of(planted), parts, PartGrowth.of(missed))


def _growth(weights: Mapping[str, float], block: Times) -> float:
    """Of a part, as a share of the plain step."""
    return sum(w * (block[PLANTED + arm] - block[arm]) for arm, w in weights.items()) / block[WHOLE]


def _told(case: CauseCase, blocks: Sequence[Times]) -> str:
    found = result_of(case, blocks, 0.0)
    if found is None:
        return f"{len(blocks)} complete blocks"
    return ", ".join(f"{name} {of}" for name, of in found.parts.items())


def show(kept: Mapping[str, dict[str, Any]]) -> None:
    """Every case, then how many were found, how often another part was named, and what nothing came to."""
    results = list(_results(kept))
    rows = [
        (
            "case",
            "blocks",
            "planted",
            "the right part",
            "less what was planted",
            "unexplained",
            "found",
            "wrongly named",
        )
    ]
    for one in (one for one in results if one.case.part):
        right, blocks = one.parts[one.case.part], len(kept[one.case.key]["blocks"])
        found, wrong = "yes" if one.found else "NO", ", ".join(one.wrong)
        growths = map(str, (one.planted, right, one.missed, one.parts["unexplained"]))
        rows.append((one.case.key, str(blocks), *growths, found, wrong))
    table(rows)
    judged = [one for one in results if one.case.share >= JUDGED]
    slight = [one for one in results if 0 < one.case.share < JUDGED]
    rows = [("", "cases", "share", "95 %", "promised")]
    rows.append(_rate("found within its interval", [one.found for one in judged], "at least 90 %"))
    rows.append(_rate("grew beyond doubt", [one.seen for one in judged], ""))
    rows.append(_rate("another part is named", [bool(one.wrong) for one in judged], "at most 5 %"))
    rows.append(_rate("of 5 %: found within its interval", [one.found for one in slight], ""))
    rows.append(_rate("of 5 %: grew beyond doubt", [one.seen for one in slight], ""))
    nothing = [of for one in results if one.case.cause == NOTHING for of in one.parts.values()]
    rows.append(
        _rate("nothing planted: a part's interval misses 0", [not of.holds(0.0) for of in nothing], "about 5 %")
    )
    print()
    table(rows)
    for key, result in kept.items():
        for arm, reason in result["lacking"].items():
            print(f"{key}, {arm}: {reason}")


def _results(kept: Mapping[str, dict[str, Any]]) -> Iterator[CauseResult]:
    for key, result in kept.items():
        case = CauseCase.of(key)
        found = None if case.number < 0 else result_of(case, result["blocks"], result["each"])
        if found is not None:
            yield found


def _rate(what: str, outcomes: Sequence[bool], promised: str) -> tuple[str, ...]:
    count, of = sum(outcomes), len(outcomes)
    if not of:
        return what, "0", "", "", promised
    rate = clopper_pearson(count, of)
    return what, f"{count} of {of}", f"{count / of:.0%}", f"{rate.low:.0%} – {rate.high:.0%}", promised


if __name__ == "__main__":
    main()
