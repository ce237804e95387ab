"""Cluster trials in a row: two workers in lock-step and two workers with a server, in a network namespace and on the
machine's own loopback, by turns. In a namespace every port is free; on the loopback each is taken from the kernel.

Promise: of 200 none hangs, and none fails for a port. An argument sets another number. The first trial is a control:
somebody else has its ports, and it must be seen to fail for them.
"""

import re
import socket
import statistics
import sys
import time
from collections import Counter
from unittest import mock

from common import CLUSTERS, live, prepared_zygote, table

from harness.record import TrialRecord
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended
from harness.spec import Cell

TRIALS = 200
WINDOWS = 2
SAID_EVERY = 20
OF_A_PORT = re.compile(r"address already in use|no port could be taken|could not start gRPC server", re.IGNORECASE)
PLACES = {True: "namespace", False: "own loopback"}


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    kinds = [(of, isolate) for isolate in PLACES for of in CLUSTERS]
    seen: dict[tuple[Cell, bool], list[TrialRecord]] = {kind: [] for kind in kinds}
    began = time.monotonic()
    with prepared_zygote() as zygote:
        with mock.patch("harness.run.launchers.local._port", _taken):
            control = _trial(zygote, CLUSTERS[0], 0, False)
        print(f"control: {_words(control)}")
        for number in range(count):
            of, isolate = kinds[number % len(kinds)]
            record = _trial(zygote, of, number, isolate)
            seen[of, isolate].append(record)
            if not record.measured or _placed(record) != isolate:
                print(f"trial {number}, {of.label}, {PLACES[isolate]}: {_words(record)}", flush=True)
            if (number + 1) % SAID_EVERY == 0:
                print(f"{number + 1} of {count} after {time.monotonic() - began:.0f} s", flush=True)
    rows = [
        (
            "cell",
            "in a",
            "trials",
            "ok",
            "hung",
            "failed for a port",
            "failed otherwise",
            "fixed cost (median)",
            "longest",
        )
    ]
    rows += [_row(of, isolate, trials) for (of, isolate), trials in seen.items() if trials]
    table(rows)
    print(f"\npromised: of {TRIALS} trials none hung and none failed for a port")
    if not _of_a_port(control):
        sys.exit("the control, whose ports were in use, was not seen to fail for one: the column says nothing")


def _taken() -> socket.socket:
    """A port that somebody listens on, and does not share."""
    return socket.create_server(("127.0.0.1", 0))


def _trial(zygote: Zygote, of: Cell, number: int, isolate: bool) -> TrialRecord:
    trial = live(zygote, of, number, 0, window_s=0.02, isolate=isolate)
    try:
        trial.start()
        trial.set_up()
        trial.measure_from(0)
        for window in range(WINDOWS):
            trial.take_turn(window)
        trial.finish()
    except Ended:
        pass
    return trial.record()


def _placed(record: TrialRecord) -> bool:
    """Whether it really had a namespace, where it got far enough to say so."""
    return record.cluster is not None and record.cluster.isolated


def _of_a_port(record: TrialRecord) -> bool:
    return bool(OF_A_PORT.search(f"{record.reason}\n{record.evidence}"))


def _words(record: TrialRecord) -> str:
    reason = "" if record.measured else f" during {record.phase}: {record.reason}"
    of = " (for a port)" if not record.measured and _of_a_port(record) else ""
    return f"{record.status}{reason}{of}"


def _row(of: Cell, isolate: bool, trials: list[TrialRecord]) -> tuple[str, ...]:
    ends = Counter(record.status for record in trials)
    failed = [record for record in trials if not record.measured and record.status != "timeout"]
    of_ports = sum(_of_a_port(record) for record in failed)
    fixed = [record.phases.fixed_s for record in trials if record.measured] or [float("nan")]
    return (
        of.label,
        PLACES[isolate],
        str(len(trials)),
        str(sum(record.measured for record in trials)),
        str(ends["timeout"]),
        str(of_ports),
        str(len(failed) - of_ports),
        f"{statistics.median(fixed):.2f} s",
        f"{max(fixed):.2f} s",
    )


if __name__ == "__main__":
    main()
