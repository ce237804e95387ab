"""How often a decision is wrong here, and what it can see: the goals of `harness validate`, printed.

`python benchmarks/goals/decisions.py` makes a new validation of two rounds, five minutes on two cores;
an argument sets the rounds (60 are the full validation). `python benchmarks/goals/decisions.py RUN` prints one
that was made before, such as `results/validation/avx512-window`.
"""

import subprocess
import sys
from pathlib import Path

from common import table
from other_tools import rules_of

from harness.analysis.validation.summary import validation_of
from harness.record.reading import load_run
from harness.report.tables.validation import validation_lines, validation_tables

ROUNDS = "2"


def main() -> None:
    """Measure, or read, and print."""
    argument = sys.argv[1] if len(sys.argv) > 1 else ROUNDS
    folder = _measured(argument) if argument.isdigit() else Path(argument)
    run = load_run(folder)
    record = validation_of(run).model_copy(update={"rules": rules_of(run)})
    for part in validation_tables(record):
        print(f"\n{part.title}\n")
        table([[column.name for column in part.columns], *part.rows])
        if part.note:
            print(part.note)
    print("", *validation_lines(record), sep="\n")


def _measured(rounds: str) -> Path:
    """The folder of a new validation, made by the command that a user would type."""
    command = [sys.executable, "-m", "harness", "validate", "--rounds", rounds, "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.rsplit("records: ", 1)[1].strip())


if __name__ == "__main__":
    main()
