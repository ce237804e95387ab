"""Causes planted are causes found: what `explain` says of a step that is slow for a known reason.

In each block of a case the cell's step and its instruments are alive together with the same of a cell in which
something is planted: time that the input makes the steps wait, Python beside the steps, work on every device before the
forward pass, or a longer update. Promise: where 10 or 20 % of a step are planted, the right part grows by what was
planted, within the 95 % interval, in at least 90 % of the cases, and another part is named in at most 5 %. What 5 %
come to is printed, and how often an interval misses 0 where nothing is planted.

    python benchmarks/goals/causes.py [--part I/N] [--only REGEX] [--show] [--results FILE]

Results are appended to a file, one line a case, and a case that is there is not run again. A case's key is
CAUSE/SHARE/REPLICAS/NUMBER. One takes one to two minutes on two idle cores.
"""

import argparse
import json
import math
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cause_cases import JUDGED, NOTHING, PLANTED, SECONDS, CauseCase, CauseResult, Times, cases, result_of
from common import cell, commit, read, scratch, table

from harness.analysis.estimates.power import clopper_pearson
from harness.record.explain import ALONE, WHOLE, ExplainPlan, FamilyRecord
from harness.record.manifest import PlanRecord
from harness.record.reading import load_run
from harness.record.store import RunStore
from harness.record.trial import Plant, TrialRecord
from harness.run.kinds.arms import start_order
from harness.run.kinds.base import Arm
from harness.run.kinds.explain import ExplainRun, alone_of
from harness.run.progress.base import Progress, Quiet
from harness.run.runner import begin, new_manifest
from harness.spec import Sweep
from harness.spec.cell import trained

BLOCKS = 5
BATCH_SIZE = 64
SWEEP: dict[str, Any] = {"window": 0.05, "windows": 30, "max_warmup": 3}
PROBE = 400.0
"""Passes of work a step by which a pilot finds out what one takes."""
PILOT_BLOCKS = 3
RESULTS = Path("build/causes.jsonl")


def main() -> None:
    """Run what is missing, then print."""
    given = _arguments()
    number, of = map(int, given.part.split("/"))
    chosen = [case for case in cases()[number - 1 :: of] if re.search(given.only, case.key)]
    if not given.show:
        done = read(given.results)
        run([case for case in chosen if case.key not in done], given.results)
    show(read(given.results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth case, from the Ith on")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose key has this")
    parser.add_argument("--show", action="store_true", help="run nothing, print what there is")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results (default: %(default)s)")
    return parser.parse_args()


def run(wanted: Sequence[CauseCase], results: Path) -> None:
    """Each case, and its result at the end of the file."""
    results.parent.mkdir(parents=True, exist_ok=True)
    for place, case in enumerate(wanted, start=1):
        begun = time.monotonic()
        each = _amount(case, results)
        plants = None if case.cause == NOTHING else _beside_placebo(case.cause, each)
        kept = _measured_and_kept(case, each, BLOCKS, case.arms, plants, results)
        found = result_of(case, kept["blocks"], each)
        words = "too few blocks" if found is None else ", ".join(f"{name} {of}" for name, of in found.parts.items())
        print(f"{place}/{len(wanted)} {time.monotonic() - begun:.0f} s  {case.key}  {words}", flush=True)


def _beside_placebo(cause: str, each: float) -> tuple[Plant, Plant]:
    """All that the plant does anyway and nothing more, for the plain arms, and the plant."""
    return Plant(kind=cause, share=0.0, each=0.0), Plant(kind=cause, share=0.0, each=each)


def _amount(case: CauseCase, results: Path) -> float:
    """What is to be planted in each step: seconds, or passes of work by what one took in a pilot."""
    if case.cause == NOTHING:
        return 0.0
    pilot = _pilot("device_work" if case.cause in SECONDS else case.cause, case.replicas, results)
    plain, probed = pilot[WHOLE], pilot[PLANTED + WHOLE]
    return case.share * plain * (1.0 if case.cause in SECONDS else PROBE / max(probed - plain, 0.01 * plain))


def _pilot(cause: str, replicas: int, results: Path) -> Times:
    """Mean seconds of the whole step with and without `PROBE` passes of work, kept as a case is."""
    case = CauseCase(cause, 0.0, replicas, -1)
    kept = read(results).get(case.key)
    if kept is None:
        kept = _measured_and_kept(case, PROBE, PILOT_BLOCKS, [WHOLE], _beside_placebo(cause, PROBE), results)
    blocks = kept["blocks"]
    return {name: math.fsum(block[name] for block in blocks) / len(blocks) for name in (WHOLE, PLANTED + WHOLE)}


def _measured_and_kept(
    case: CauseCase, each: float, blocks: int, arms: Sequence[str], plants: tuple[Plant, Plant] | None, results: Path
) -> dict[str, Any]:
    times, lacking = measured(case, blocks, arms, plants)
    kept = {"key": case.key, "commit": commit(), "each": each, "blocks": times, "lacking": lacking}
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept) + "\n")
    return kept


def measured(
    case: CauseCase, blocks: int, arms: Sequence[str], plants: tuple[Plant, Plant] | None
) -> tuple[list[Times], dict[str, str]]:
    """(seconds a step of each arm in each block that is complete, why others were not), of a run that is not kept.

    `plants` are what the plain arms have and what the planted ones have; None is nothing in both.
    """
    asked = trained(cell("none" if case.replicas == 1 else "mirrored", case.replicas, BATCH_SIZE))
    alone, every = alone_of(asked), [*arms, *(PLANTED + name for name in arms)]
    family = FamilyRecord(cell_id=asked.cell_id, arms=every, alone=alone.cell_id if ALONE in arms else None)
    seed = zlib.crc32(case.key.encode()) % 2**31
    manifest = new_manifest(
        "explain",
        ["benchmarks/goals/causes.py"],
        sweep=Sweep(seed=seed, trials=blocks, **SWEEP),
        cells=list({one.cell_id: one for one in (asked, alone)}.values()),
        plans=[PlanRecord.sealed(seed, 1, [[start_order(seed, block, every)] for block in range(blocks)])],
        explain=ExplainPlan(families=[family], blocks=blocks),
    )
    with scratch() as folder:
        path = begin(lambda store, listener: PlantedRun(store, listener, plants), Path(folder), manifest, Quiet())
        trials = load_run(path).trials
    return _times(trials, every), {str(t.side): f"{t.status}: {t.reason}" for t in trials if not t.measured}


class PlantedRun(ExplainRun):
    """A run whose family has each arm twice, without and with a cause in it."""

    def __init__(self, store: RunStore, listener: Progress, plants: tuple[Plant, Plant] | None) -> None:
        super().__init__(store, listener)
        self._plants = plants or (None, None)

    def _arm(self, family: FamilyRecord, name: str) -> Arm:
        bare = name.removeprefix(PLANTED)
        arm = super()._arm(family, bare)
        return replace(arm, name=name, request=arm.request.model_copy(update={"plant": self._plants[bare != name]}))


def _times(trials: Sequence[TrialRecord], arms: Sequence[str]) -> list[Times]:
    found: dict[int, dict[str, float]] = {}
    for trial in trials:
        if trial.measured and trial.step_time_s and trial.side:
            found.setdefault(trial.block, {})[trial.side] = trial.step_time_s
    return [times for times in found.values() if set(arms) <= times.keys()]


def show(kept: Mapping[str, dict[str, Any]]) -> None:
    """Every case, then how many were found, how often another part was named, and what nothing came to."""
    results = list(_results(kept))
    rows = [("case", "blocks", "planted", "right part", "less what was planted", "unexplained", "found", "wrong")]
    for one in (one for one in results if one.case.part):
        growths = map(str, (one.planted, one.parts[one.case.part], one.missed, one.parts["unexplained"]))
        blocks = str(len(kept[one.case.key]["blocks"]))
        rows.append((one.case.key, blocks, *growths, "yes" if one.found else "NO", ", ".join(one.wrong)))
    table(rows)
    judged = [one for one in results if one.case.share >= JUDGED]
    slight = [one for one in results if 0 < one.case.share < JUDGED]
    nothing = [of for one in results if one.case.cause == NOTHING for of in one.parts.values()]
    print()
    table(
        [
            ("", "cases", "share", "95 %", "promised"),
            _rate("found within its interval", [one.found for one in judged], "at least 90 %"),
            _rate("grew beyond doubt", [one.seen for one in judged], ""),
            _rate("another part is named", [bool(one.wrong) for one in judged], "at most 5 %"),
            _rate("5 %: found within its interval", [one.found for one in slight], ""),
            _rate("5 %: grew beyond doubt", [one.seen for one in slight], ""),
            _rate("nothing planted: a part's interval misses 0", [not of.holds(0.0) for of in nothing], "5 %"),
        ]
    )
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
