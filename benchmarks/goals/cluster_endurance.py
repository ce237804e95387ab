"""Cluster trials in a row, two workers in lock-step and two workers with a server by turns.

Promise: of 200 none hangs, and none fails for a port. An argument sets another number.
"""

import statistics
import sys
import time
from collections import Counter

from common import CLUSTERS, live, prepared_zygote, table

from harness.record import TrialRecord
from harness.run.live import Ended
from harness.run.zygote import Zygote
from harness.spec import Cell

TRIALS = 200
WINDOWS = 2
SAID_EVERY = 20
PORT_WORDS = ("port", "bind", "address already in use")


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    seen: dict[str, list[TrialRecord]] = {of.label: [] for of in CLUSTERS}
    began = time.monotonic()
    with prepared_zygote() as zygote:
        for number in range(count):
            of = CLUSTERS[number % len(CLUSTERS)]
            record = _trial(zygote, of, number)
            seen[of.label].append(record)
            if record.status != "ok":
                print(f"trial {number}, {of.label}: {record.status} during {record.phase}: {record.reason}", flush=True)
            if (number + 1) % SAID_EVERY == 0:
                print(f"{number + 1} of {count} after {time.monotonic() - began:.0f} s", flush=True)
    rows = [("cell", "trials", "ok", "hung", "failed for a port", "failed otherwise", "fixed cost (median)", "longest")]
    rows += [_row(label, trials) for label, trials in seen.items() if trials]
    table(rows)
    print(f"\npromised: of {TRIALS} trials none hung and none failed for a port")


def _trial(zygote: Zygote, of: Cell, number: int) -> TrialRecord:
    trial = live(zygote, of, number, 0, window_s=0.02)
    try:
        trial.start()
        trial.set_up()
        trial.measured_from = 0
        for window in range(WINDOWS):
            trial.take_turn(window)
        trial.finish()
    except Ended:
        pass
    return trial.record()


def _row(label: str, trials: list[TrialRecord]) -> tuple[str, ...]:
    ends = Counter(record.status for record in trials)
    failed = [record for record in trials if record.status not in ("ok", "timeout")]
    of_ports = sum(any(word in (record.reason or "").lower() for word in PORT_WORDS) for record in failed)
    fixed = [record.phases.fixed_s for record in trials if record.status == "ok"] or [float("nan")]
    return (
        label, str(len(trials)), str(ends["ok"]), str(ends["timeout"]), str(of_ports), str(len(failed) - of_ports),
        f"{statistics.median(fixed):.2f} s", f"{max(fixed):.2f} s",
    )  # fmt: skip


if __name__ == "__main__":
    main()
