"""The fixed cost of a cluster's trial, alone on the machine, beside what an import a process would cost.

Promises: a median of at most 2.5 s for two workers in lock-step, of at most 3 s for two workers and a parameter server.
"""

import statistics
import subprocess
import sys
import time

import psutil
from common import CLUSTERS, live, prepared_zygote, table

from harness.record import TrialRecord
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended
from harness.spec import Cell

GOALS_S = {"multi_worker_mirrored": 2.5, "parameter_server": 3.0}
TRIALS = 10
WINDOWS = 3
IMPORTS = 3
PHASES = ("start_s", "build_s", "first_step_s", "check_s", "exit_s", "alone_s")


def main() -> None:
    """Measure and print; an argument sets the number of trials of each kind."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    head = ("cell", "ok", *(name.removesuffix("_s") for name in PHASES), "fixed (median)", "min – max")
    rows = [(*head, "promised", "CPU of the busiest process")]
    with prepared_zygote() as zygote:
        for of in CLUSTERS:
            measured = [_trial(zygote, of, number) for number in range(count)]
            trials = [record for record, _ in measured if record.measured]
            for record, _ in measured:
                if not record.measured:
                    print(f"{of.label}: {record.status}: {record.reason}")
            if trials:
                rows.append(_row(of, trials, [used for record, used in measured if record.measured]))
    table(rows)
    alone = statistics.median(_import_s() for _ in range(IMPORTS))
    print(
        f"\na fresh import of tensorflow and keras: {alone:.1f} s; side by side in two processes {_imports_s(2):.1f} s,"
    )
    print(
        f"in four (coordinator, two workers, server) {_imports_s(4):.1f} s: what each trial would pay without a zygote"
    )
    load = psutil.getloadavg()[0] / (psutil.cpu_count() or 1)
    print("the first trial of a kind also computes the reference that later ones share")
    print(f"load average a core at the end: {load:.1f}; above 1, wall times are those of a busy machine")


def _trial(zygote: Zygote, of: Cell, number: int) -> tuple[TrialRecord, float]:
    """A trial's record, and the processor seconds of its busiest process until it was set up."""
    trial, used = live(zygote, of, number, 0, window_s=0.02), 0.0
    try:
        trial.start()
        trial.set_up()
        zygote.drain()
        used = max(_used(process.child.pid) for process in trial.child.merged.processes)
        trial.measure_from(0)
        for window in range(WINDOWS):
            trial.take_turn(window)
        trial.finish()
    except Ended:
        pass
    return trial.record(), used


def _used(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _row(of: Cell, trials: list[TrialRecord], used: list[float]) -> tuple[str, ...]:
    fixed = [record.phases.fixed_s for record in trials]
    parts = [f"{statistics.median(getattr(record.phases, name) or 0.0 for record in trials):.2f}" for name in PHASES]
    return (
        of.label,
        str(len(trials)),
        *parts,
        f"{statistics.median(fixed):.2f} s",
        f"{min(fixed):.2f} – {max(fixed):.2f} s",
        f"≤ {GOALS_S[of.strategy]:g} s",
        f"{statistics.median(used):.2f} s",
    )


def _import_s() -> float:
    return _imports_s(1)


def _imports_s(processes: int) -> float:
    """Seconds until so many processes, started together, have all imported TensorFlow and Keras."""
    start = time.perf_counter()
    code = [sys.executable, "-c", "import tensorflow, keras"]
    started = [subprocess.Popen(code, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(processes)]
    assert all(process.wait() == 0 for process in started), "TensorFlow cannot be imported"
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
