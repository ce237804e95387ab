"""Default sweeps in a row, five if not told otherwise: what each takes, and whether they agree on what is fastest.

Promise: each takes 300 s at most, its report included, and its fastest cell is in the sets of all that may be the
fastest. Exit code 1 where that is missed. `--judge FOLDER` measures nothing and judges runs that were kept.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from common import table

from harness.analysis import RunSummary, summarise
from harness.record.reading import list_runs, load_run

SPEC = Path(__file__).parents[1] / "default.toml"
GOAL_S = 300.0
Noted = dict[str, tuple[float, int]]
TIMES = "five_sweeps.json"  # beside the runs: the seconds and the exit code of each


class Swept(NamedTuple):
    """A sweep as far as it is judged; what was not noted when it was measured is None."""

    summary: RunSummary
    seconds: float | None = None
    exit: int | None = None

    @property
    def may_be_fastest(self) -> tuple[str, ...]:
        """Ids of cells, the fastest first; empty of a sweep that did not finish, or measured nothing."""
        answer = self.summary.workloads[0].answer
        return (answer.best_id, *answer.tied_ids) if self.summary.judged and answer.best_id else ()

    @property
    def row(self) -> tuple[str, ...]:
        """What is printed of it."""
        ids, took = self.may_be_fastest, f"{self.seconds:.0f} s" if self.seconds else "–"
        best, of = self.summary.by_id[ids[0]].label if ids else "–", len(self.summary.workloads[0].ranking)
        return self.summary.run_id, took, "–" if self.exit is None else str(self.exit), best, f"{len(ids)} of {of}"


def missed(sweeps: list[Swept]) -> list[str]:
    """What of the promise is missed."""
    lines = [] if sweeps else ["there is no sweep"]
    for sweep in sweeps:
        name, fastest = sweep.summary.run_id, sweep.may_be_fastest[:1]
        without = [other.summary.run_id for other in sweeps if not {*fastest} & {*other.may_be_fastest}]
        lines += [f"{name} ended with {sweep.exit}"] if sweep.exit else []
        lines += [f"{name} took {sweep.seconds:.0f} s"] if sweep.seconds and sweep.seconds > GOAL_S else []
        lines += [f"the fastest cell of {name} is not in the set of {', '.join(without)}"] if without else []
    return lines


def measure(results: Path, noted: Noted) -> None:
    """One sweep and its report; notes what they took."""
    begun, before = time.monotonic(), {run.run_id for run in list_runs(results)}
    for words in (["sweep", str(SPEC)], ["report", "latest", f"--output={results / 'report.html'}"]):
        command = [sys.executable, "-m", "harness", *words, f"--results={results}"]
        if code := subprocess.run(command, stdout=sys.stderr).returncode:
            break
    noted |= {run.run_id: (time.monotonic() - begun, code) for run in list_runs(results) if run.run_id not in before}
    (results / TIMES).write_text(json.dumps(noted, indent=1), encoding="utf-8")


def kept(results: Path) -> list[Swept]:
    """The sweeps in a folder, the oldest first."""
    noted: Noted = json.loads((results / TIMES).read_text(encoding="utf-8")) if (results / TIMES).exists() else {}
    runs = [load_run(run.path) for run in list_runs(results)]
    return [Swept(summarise(run.manifest, run.trials), *noted.get(run.manifest.run_id, ())) for run in runs]


def main() -> None:
    """Measure, or not, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--results", type=Path, help="where runs are kept; without it a new temporary folder")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="results of sweeps that were kept")
    given = parser.parse_args()
    results, noted = given.judge or given.results or Path(tempfile.mkdtemp(prefix="harness-goals-")), Noted()
    for _ in range(0 if given.judge else given.sweeps):
        measure(results, noted)
    sweeps = kept(results)
    lacking = missed(sweeps) + ["a sweep recorded nothing"] * (not given.judge and len(noted) < given.sweeps)
    table([("run", "took", "exit", "fastest", "may be the fastest"), *(sweep.row for sweep in sweeps)])
    print(f"\nin {results}; promised: every fastest cell in all sets, {GOAL_S:.0f} s at most")
    print(f"missed: {'; '.join(lacking) or 'nothing'}")
    sys.exit(bool(lacking))


if __name__ == "__main__":
    main()
