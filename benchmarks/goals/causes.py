"""Causes planted are causes found: what `explain` says of a step that is slow for a known reason.

In each block of a case the cell's step and its instruments are alive together with the same of a cell in which
something is planted: time that the input makes the steps wait, Python beside the steps, work on every device before the
forward pass, a longer update, between two workers a longer way over the network or workers that are slow by turns, or,
with a parameter server, weights that come later or gradients that leave later. Promise: where 10 or 20 % of a step are
planted, the right part grows beyond doubt and by what was planted, within the 95 % interval, in at least 90 % of the
cases, and another part is named in at most 5 %. What was planted is said in two ways: what was put in, and how much
longer the whole step became. They differ, since a cause may cost more than itself or run behind other work; it is found
by the first where an input makes steps wait, else by the second, and both are printed. So is what 5 % come to, what
`explain` says that the step is bound by without and with the cause, and how often an interval misses 0 where nothing
is planted.

    python benchmarks/goals/causes.py [--part I/N] [--only REGEX] [--show] [--results FILE]

Results are appended to a file, one line a case, and a case that is there is not run again. A case's key is
CAUSE/SHARE/REPLICAS/NUMBER, with a w behind the replicas where each is a worker of its own, and an s where those have a
parameter server. One takes one to two minutes on two idle cores, and one of two workers five.
"""

import argparse
import functools
import json
import math
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cause_cases import (
    HOLDS,
    JUDGED,
    LINK_DELAY,
    NOTHING,
    PLANTED,
    SECONDS,
    SLOW_WORKER,
    CauseCase,
    CauseResult,
    Times,
    cases,
    result_of,
    shares_of,
)
from common import cell, commit, read, table, trials_of_arms

from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.explain import Explanation
from harness.analysis.network import ring_round_trips
from harness.record.explain import ALONE, WHOLE, FamilyRecord
from harness.record.store import RunStore
from harness.record.trial import Plant, TrialRecord
from harness.run.kinds.base import Arm
from harness.run.kinds.explain import ExplainRun
from harness.run.progress import Progress
from harness.spec.cell import TrainingCell, trained
from harness.spec.network import Network

BLOCKS = 5
BATCH_SIZE = 64
SWEEP: dict[str, Any] = {"window": 0.05, "windows": 30, "max_warmup": 3}
OF_SLOW_WORKERS: dict[str, Any] = {"window": 0.2}
"""Windows in which each worker has several turns of being slow."""
PROBE = 400.0
"""Passes of work a step by which a pilot finds out what one takes."""
PILOT_BLOCKS = 3
ONE_PACK = 2**30
"""Bytes a pack: all gradients in one."""
LINK_S = 0.0005
"""Seconds that the plain arms' workers have between them where a longer way is planted, so that both have a relay."""
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
        kept = _measured_and_kept(case, each, BLOCKS, case.arms, _plants(case, each), results)
        found = result_of(case, kept["blocks"], each)
        words = "too few blocks" if found is None else ", ".join(f"{name} {of}" for name, of in found.parts.items())
        print(f"{place}/{len(wanted)} {time.monotonic() - begun:.0f} s  {case.key}  {words}", flush=True)


def _plants(case: CauseCase, each: float) -> tuple[Plant, Plant] | None:
    """All that the plant does anyway and nothing more, for the plain arms, and the plant; None of what is no plant."""
    if case.cause in (NOTHING, LINK_DELAY):
        return None
    if case.cause == SLOW_WORKER:  # a step of two workers takes as much longer as each of them sleeps in the mean
        return Plant(kind="worker_delay", share=0.0, each=each), Plant(kind=SLOW_WORKER, share=0.0, each=each)
    return Plant(kind=case.cause, share=0.0, each=0.0), Plant(kind=case.cause, share=0.0, each=each)


def _amount(case: CauseCase, results: Path) -> float:
    """What is to be planted in each step: seconds, or passes of work by what one took in a pilot."""
    if case.cause == NOTHING:
        return 0.0
    if case.served:  # so many updates are made at once, and each is to take longer
        return case.share * case.workers * _pilot(replace(case, cause=NOTHING, share=0.0, number=-1), results)[WHOLE]
    in_seconds = case.cause in (*SECONDS, LINK_DELAY, SLOW_WORKER)
    pilot = _pilot(replace(case, cause="device_work" if in_seconds else case.cause, share=0.0, number=-1), results)
    plain, probed = pilot[WHOLE], pilot[PLANTED + WHOLE]
    return case.share * plain * (1.0 if in_seconds else PROBE / max(probed - plain, 0.01 * plain))


def _pilot(case: CauseCase, results: Path) -> Times:
    """Mean seconds of the whole step with and without `PROBE` passes of work, kept as a case is."""
    kept = read(results).get(case.key)
    if kept is None:
        kept = _measured_and_kept(case, PROBE, PILOT_BLOCKS, [WHOLE], _plants(case, PROBE), results)
    blocks = kept["blocks"]
    return {name: math.fsum(block[name] for block in blocks) / len(blocks) for name in (WHOLE, PLANTED + WHOLE)}


def _measured_and_kept(
    case: CauseCase, each: float, blocks: int, arms: Sequence[str], plants: tuple[Plant, Plant] | None, results: Path
) -> dict[str, Any]:
    times, lacking = measured(case, blocks, arms, plants, each)
    kept = {"key": case.key, "commit": commit(), "each": each, "blocks": times, "lacking": lacking}
    if arms == case.arms:
        kept["bound_by"] = verdicts(case, times)
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept) + "\n")
    return kept


def measured(
    case: CauseCase, blocks: int, arms: Sequence[str], plants: tuple[Plant, Plant] | None, each: float = 0.0
) -> tuple[list[Times], dict[str, str]]:
    """(seconds a step of each arm in each block that is complete, why others were not), of a run that is not kept.

    `plants` are what the plain arms have and what the planted ones have; None is nothing in both. With a longer way
    over the network the step is to be longer by `each` seconds.
    """
    asked = _cell_of(case)
    planted = _on_longer_link(asked, each) if case.cause == LINK_DELAY else asked
    every = [*arms, *(PLANTED + name for name in arms)]
    seed = zlib.crc32(case.key.encode()) % 2**31
    driver = functools.partial(PlantedRun, plants=plants, planted=planted)
    settings = SWEEP | (OF_SLOW_WORKERS if case.cause == SLOW_WORKER else {})
    trials = trials_of_arms(asked, every, blocks, seed, settings, driver, [planted])
    return _times(trials, every), {str(t.side): f"{t.status}: {t.reason}" for t in trials if not t.measured}


def _cell_of(case: CauseCase) -> TrainingCell:
    """What is explained. Workers' gradients are one buffer, so that a link is crossed twice a step."""
    if case.served:
        return trained(cell("parameter_server", 1, BATCH_SIZE, workers=case.workers, ps=1))
    if case.workers == 1:
        return trained(cell("none" if case.replicas == 1 else "mirrored", case.replicas, BATCH_SIZE))
    over = {"network": Network(delay=LINK_S).text} if case.cause == LINK_DELAY else {}
    return trained(cell("multi_worker_mirrored", 1, BATCH_SIZE, workers=case.workers, bytes_per_pack=ONE_PACK, **over))


def _on_longer_link(asked: TrainingCell, each: float) -> TrainingCell:
    """The cell on a network over which a ring's round trips take `each` seconds longer together."""
    longer = each / ring_round_trips(asked.workers) / 2
    return asked.model_copy(update={"network": Network(delay=round(LINK_S + longer, 6)).text})


class PlantedRun(ExplainRun):
    """A run whose family has each arm twice, without and with a cause in it."""

    def __init__(
        self, store: RunStore, listener: Progress, plants: tuple[Plant, Plant] | None, planted: TrainingCell
    ) -> None:
        super().__init__(store, listener)
        self._plants = plants or (None, None)
        self._planted = planted

    def _arm(self, family: FamilyRecord, name: str) -> Arm:
        bare = name.removeprefix(PLANTED)
        arm = super()._arm(family, bare)
        update: dict[str, Any] = {"plant": self._plants[bare != name]}
        if bare not in (name, ALONE):
            update["cell"] = self._planted
        return replace(arm, name=name, request=arm.request.model_copy(update=update))


def _times(trials: Sequence[TrialRecord], arms: Sequence[str]) -> list[Times]:
    found: dict[int, dict[str, float]] = {}
    for trial in trials:
        if trial.measured and trial.step_time_s and trial.side:
            found.setdefault(trial.block, {})[trial.side] = trial.step_time_s
    return [times for times in found.values() if set(arms) <= times.keys()]


def verdicts(case: CauseCase, blocks: Sequence[Times]) -> tuple[str, str]:
    """What `explain` says that the step is bound by, without the cause and with it."""

    def bound_by(prefix: str) -> str:
        seconds = math.fsum(block[prefix + WHOLE] for block in blocks) / len(blocks) if blocks else None
        shares, count = shares_of(case, blocks, prefix), len(blocks)
        return Explanation(_cell_of(case), count, count, seconds, shares, (), lacking={}, untold={}).bound_by

    return bound_by(""), bound_by(PLANTED)


HEADS = (
    *("case", "blocks", "planted", "step longer", "right part", "less what was planted", "less step longer"),
    *("unexplained", "bound by, without the cause", "with it", "found", "wrong"),
)


def show(kept: Mapping[str, dict[str, Any]]) -> None:
    """Every case, then how many were found, how often another part was named, and what nothing came to."""
    results = list(_results(kept))
    said = {one.case.key: verdicts(one.case, kept[one.case.key]["blocks"]) for one in results}
    rows = [HEADS]
    for one in (one for one in results if one.case.part):
        right = one.parts[one.case.part]
        growths = (one.planted, one.longer, right, one.off_planted, one.off_longer, one.parts["unexplained"])
        blocks, found = str(len(kept[one.case.key]["blocks"])), "yes" if one.found else "NO"
        rows.append((one.case.key, blocks, *map(str, growths), *said[one.case.key], found, ", ".join(one.wrong)))
    table(rows)
    judged = [one for one in results if one.case.share >= JUDGED]
    slight = [one for one in results if 0 < one.case.share < JUDGED]
    nothing = [of for one in results if one.case.cause == NOTHING for of in one.parts.values()]
    print()
    table(
        [
            ("", "cases", "share", "95 %", "promised"),
            _rate("found: grew beyond doubt, and by what it is to", [one.found for one in judged], "at least 90 %"),
            _rate("grew beyond doubt", [one.seen for one in judged], ""),
            _rate("grew by what was planted", [one.off_planted.holds(0.0) for one in judged], ""),
            _rate("grew by how much longer the step became", [one.off_longer.holds(0.0) for one in judged], ""),
            _rate("another part is named", [bool(one.wrong) for one in judged], "at most 5 %"),
            _rate("the step is said to be bound by it", [_is_named(one, said[one.case.key][1]) for one in judged], ""),
            _rate("5 %: found", [one.found for one in slight], ""),
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


def _is_named(one: CauseResult, verdict: str) -> bool:
    return verdict == HOLDS.get(one.case.part, one.case.part)


def _rate(what: str, outcomes: Sequence[bool], promised: str) -> tuple[str, ...]:
    count, of = sum(outcomes), len(outcomes)
    if not of:
        return what, "0", "", "", promised
    rate = clopper_pearson(count, of)
    return what, f"{count} of {of}", f"{count / of:.0%}", f"{rate.low:.0%} – {rate.high:.0%}", promised


if __name__ == "__main__":
    main()
