"""How fast the command line answers, and that the parent never imports TensorFlow.

Promise: `--help`, `list` and `show --help` in under 0.5 s.
"""

import statistics
import subprocess
import sys
import time

from common import table

GOAL_S = 0.5
REPEATS = 7
COMMANDS = (["--help"], ["list"], ["show", "--help"], ["sweep", "--help"], ["sweep", "--dry-run"])
WATCHED = ("tensorflow", "keras", "tensorflow_datasets")


def main() -> None:
    """Measure and print."""
    rows = [("command", "median", "slowest", "imports TensorFlow")]
    for arguments in COMMANDS:
        times = [_time(arguments) for _ in range(REPEATS)]
        heavy = "yes: " + _imported(arguments) if _imported(arguments) else "no"
        rows.append((" ".join(arguments), f"{statistics.median(times):.2f} s", f"{max(times):.2f} s", heavy))
    table(rows)
    print(f"\npromised: under {GOAL_S} s for --help, list and show --help")


def _time(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "harness", *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def _imported(arguments: list[str]) -> str:
    """Which of the watched packages are loaded when the command has run."""
    code = (
        "import sys; from harness.cli import run; run(sys.argv[1:]);"
        f"sys.stderr.write(' '.join(m for m in {WATCHED!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stderr.strip()


if __name__ == "__main__":
    main()
