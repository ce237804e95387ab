"""How long the answers take that are promised within minutes, each command once, in a results folder of its own.

Promise: `explain` of two cells in under 4 minutes, a sweep of collectives in under 2, `doctor --limits` in under 30 s.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import table

PROMISES = (
    (["explain", "--strategy", "mirrored", "--replicas", "1,2"], 240.0),
    (["sweep", "--work", "collective"], 120.0),
    (["doctor", "--limits"], 30.0),
)
"""Arguments, and seconds."""


def main() -> None:
    """Measure and print."""
    rows = [("command", "took", "promised", "")]
    for arguments, promised in PROMISES:
        with tempfile.TemporaryDirectory() as folder:
            took = _time(arguments, Path(folder))
        kept = "kept" if took < promised else "MISSED"
        rows.append((" ".join(arguments), f"{took:.0f} s", f"under {promised:.0f} s", kept))
    table(rows)


def _time(arguments: list[str], folder: Path) -> float:
    command = [sys.executable, "-m", "harness", *arguments, "--results", str(folder)]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
