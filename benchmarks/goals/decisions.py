"""How often a decision is wrong here, and what it can see: the goals of `harness validate`, printed.

`python benchmarks/goals/decisions.py` makes a new validation of two rounds, five minutes on two cores;
an argument sets the rounds (60 are the full validation). `python benchmarks/goals/decisions.py RUN` prints one
that was made before, such as `results/validation/avx512-window`. With several, it prints instead what looks would have
made of all their decisions together, beside what was decided then.
"""

import subprocess
import sys
from pathlib import Path

from by_looks import replayed
from common import table
from other_tools import rules_of

from harness.analysis.validation.summary import validation_of
from harness.record.reading import load_run
from harness.report.tables.table import Table
from harness.report.tables.validation import validation_lines, validation_tables

ROUNDS = "2"


def main() -> None:
    """Measure, or read, and print."""
    arguments = sys.argv[1:] or [ROUNDS]
    if len(arguments) > 1:
        _print(replayed([load_run(Path(argument)) for argument in arguments]))
        return
    folder = _measured(arguments[0]) if arguments[0].isdigit() else Path(arguments[0])
    run = load_run(folder)
    record = validation_of(run).model_copy(update={"rules": rules_of(run)})
    for part in validation_tables(record):
        _print(part)
    print("", *validation_lines(record), sep="\n")


def _print(part: Table) -> None:
    print(f"\n{part.title}\n")
    table([[column.name for column in part.columns], *part.rows])
    if part.note:
        print(part.note)


def _measured(rounds: str) -> Path:
    """The folder of a new validation, made by the command that a user would type."""
    command = [sys.executable, "-m", "harness", "validate", "--rounds", rounds, "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.rsplit("records: ", 1)[1].strip())


if __name__ == "__main__":
    main()
