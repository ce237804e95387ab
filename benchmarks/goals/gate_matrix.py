"""How often the gate calls a right model wrong, and a wrong step ok: right models and faults, under every strategy.

Promise: no right model is called wrong, and no gross fault ok, whether it is there from the first update or
begins after the gate's first two. Of slight faults the size is printed from which they are found. A cell is a
trial as a sweep has it, with three windows of one step; a gross fault that it calls ok is tried in up to five
more blocks, as many as it may take to meet one that comes in every sixth update.

    python benchmarks/goals/gate_matrix.py [--part I/N] [--only REGEX] [--again STATUS ...] [--everything] [--show]

Results are appended to a file, one line a cell, and a cell that is there is not run again but where its status is named
by --again. A cell's key is MODEL__OPTIMIZER[__FAULT__early|late]/STRATEGY/MODE.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import cell, commit, live, markdown, prepared_zygote, read, table
from gate_cells import ENDS, MODES, ROW, STRATEGIES, Case, everything, found_from, grouped, sample, tally
from gate_faults import LADDERS
from gate_own import DATA

from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended
from harness.spec.work import Cell

HERE = Path(__file__).parent
WINDOWS = 3
BATCH_SIZE = 16
FIRST_BLOCK = 9
"""Workers no longer time what each computes alone."""
BLOCKS = 6
"""In so many at most a gross fault is to be found: one that comes in every nth update takes up to n."""
RESULTS = Path("build/gate_matrix.jsonl")
SHOWN = ("update_error", "sight", "late", "loss", "detail")
"""Of a trial's checks, what is kept."""


def main() -> None:
    """Run what is missing, then print."""
    given = _arguments()
    cases = everything() if given.everything else sample()
    cases = [case for case in cases if re.search(given.only, case.key)]
    number, of = map(int, given.part.split("/"))
    part = cases[number - 1 :: of]
    done = read(given.results)
    if not given.show:
        wanted = [c for c in part if c.key not in done or done[c.key]["status"] in given.again]
        run(wanted, given.results)
        done = read(given.results)
    keys = {case.key for case in cases}
    mine = {key: result for key, result in done.items() if key in keys}
    commits = Counter(result["commit"] for result in mine.values()).most_common()
    print(f"\n{len(mine)} of {len(keys)} cells, by commit:", ", ".join(f"{commit} {n}" for commit, n in commits))
    show({key: result["status"] for key, result in mine.items()})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth cell, from the Ith on")
    parser.add_argument("--only", default="", metavar="REGEX", help="cells whose key has this")
    parser.add_argument("--again", nargs="*", default=[], metavar="STATUS", help="run cells that ended so again")
    parser.add_argument("--everything", action="store_true", help="the whole product instead of the sample")
    parser.add_argument("--show", action="store_true", help="run nothing, print what there is")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results (default: %(default)s)")
    return parser.parse_args()


def run(cases: list[Case], results: Path) -> None:
    """One trial each, forked from one process that has TensorFlow, and its result at the end of the file."""
    if not cases:
        return
    results.parent.mkdir(parents=True, exist_ok=True)
    begun, here = time.monotonic(), commit()
    with prepared_zygote(HERE) as zygote, results.open("a", encoding="utf-8") as file:
        for i, case in enumerate(cases, start=1):
            result = {"key": case.key, "commit": here, **ended(zygote, case)}
            file.write(json.dumps(result) + "\n")
            file.flush()
            told = result["reason"][:120] if result["status"] != "ok" or case.plan else ""
            print(
                f"{i}/{len(cases)} {time.monotonic() - begun:.0f} s  {case.key}  {result['status']}  {told}", flush=True
            )


def ended(zygote: Zygote, case: Case) -> dict[str, Any]:
    """How one cell ended: status, reason, what its checks say, and after how many blocks."""
    most = BLOCKS if case.kind == "gross" else 1
    for block in range(most):
        result = trial(zygote, case, block)
        if result["status"] != "ok":
            break
    return {**result, "blocks": block + 1}


def trial(zygote: Zygote, case: Case, block: int) -> dict[str, Any]:
    """How one trial of a cell ended."""
    measured = live(zygote, measured_cell(case), FIRST_BLOCK + block, 0, window_s=0.001)
    measured.start()
    try:
        measured.set_up()
        measured.steps = 1
        for number in range(WINDOWS):
            measured.take_turn(number)
        measured.measure_from(1)
        measured.finish()
    except Ended:
        pass
    record = measured.record()
    checks = {k: v for k, v in record.checks.model_dump(mode="json").items() if k in SHOWN and v not in (None, {}, [])}
    return {"status": record.status, "phase": record.phase, "reason": (record.reason or "")[:500], **checks}


def measured_cell(case: Case) -> Cell:
    """The harness' own cell for it."""
    strategy, replicas, workers = STRATEGIES[case.strategy]
    keys: dict[str, Any] = {"model": f"gate_case:{case.subject}", **MODES[case.mode]}
    if case.model in DATA:
        keys["data"] = f"gate_own:{DATA[case.model]}"
    if workers > 1:
        keys["workers"] = workers
    return cell(strategy, replicas, BATCH_SIZE, **keys)


def show(ends: Mapping[str, str]) -> None:
    """Print alarms, misses and what could not be judged, then the cells themselves."""
    for title, keys in (("", ("kind", "start")), ("mode", ("kind", "mode")), ("strategy", ("kind", "strategy"))):
        groups = grouped(ends, *keys)
        print()
        table([("cells", title or "fault begins", *ROW), *((*key, *tally(c).row) for key, c in sorted(groups.items()))])
    by_fault = {key: cases for key, cases in grouped(ends, "kind", "fault", "start").items() if key[0] == "gross"}
    print()
    table([("gross fault", "begins", *ROW), *((f, s, *tally(c).row) for (_, f, s), c in sorted(by_fault.items()))])
    _show_sizes(ends)
    print("\n" + markdown(_rows(ends)))
    _show_cells(ends)


def _rows(ends: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The table of `benchmarks/goals/README.md`: what was judged of right models, and of faults by start and mode."""
    rows = [("cells", *ROW)]
    for keys in (("kind", "start"), ("kind", "mode")):
        for (kind, what), cases in sorted(grouped(ends, *keys).items()):
            if keys[1] == "start" or kind == "gross":
                rows.append((f"{kind} {what}".strip(), *tally(cases).row))
    return rows


def _show_sizes(ends: Mapping[str, str]) -> None:
    rows = [("slight fault", "sizes", "mode", "begins", "cells", "always found from")]
    for (_, mode, start), cases in sorted(grouped(ends, "kind", "mode", "start").items()):
        for family, (_, sizes) in LADDERS.items():
            mine = [(case, status) for case, status in cases if case.plan is not None and case.plan.family == family]
            if mine:
                slightest = found_from(mine, family)
                size = "never" if slightest is None else f"{slightest:g}"
                rows.append((family, ", ".join(f"{s:g}" for s in sizes), mode, start, str(len(mine)), size))
    print()
    table(rows)


def _show_cells(ends: Mapping[str, str]) -> None:
    """Name every cell that is not as promised."""
    named = {"right": ("called wrong", "wrong_result"), "gross": ("called ok", "ok")}
    for (kind,), cases in grouped(ends, "kind").items():
        broken = [c.key for c, status in cases if status not in ENDS]
        print(f"\n{kind}, broken: {len(broken)}", *broken, sep="\n  ")
        if kind in named:
            words, wrong = named[kind]
            keys = [c.key for c, status in cases if status == wrong]
            print(f"\n{kind}, {words}: {len(keys)}", *keys, sep="\n  ")


if __name__ == "__main__":
    main()
