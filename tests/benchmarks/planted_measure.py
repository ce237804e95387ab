"""A synthetic run instead of a measurement, for a suite under `benchmarks/`.

The suite gets a run of the cells it asked for, whose faults are those of a real machine without accelerators.
`PLANTED` in the environment plants an error instead, and what was asked for and answered is written to the folder
`PLANTED_LOG`.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.errors import Interrupted, StorageError
from harness.record.reading import Run
from harness.spec import Cell, Sweep
from tests.synthetic import failed, make_run


def planted(sweep: Sweep, cells: Sequence[Cell], results: Path, *_: Any) -> Run:
    """Stands in for `harness.run.kinds.measure.measure`."""
    fault = os.environ.get("PLANTED", "")
    if fault == "read-only":
        raise StorageError(f"cannot make the run folder '{results}': Permission denied")
    if fault == "interrupted":
        raise Interrupted("interrupted; 3 trials are kept in results/x; go on with: …")
    every = list(dict.fromkeys([*(cell.base for cell in cells), *cells]))

    def crash(record: Any) -> Any:
        crashes = fault == "crash" and record.cell.strategy == "mirrored" and record.block == 0
        return failed(record, "crashed", "ended by SIGSEGV during warmup", "warmup") if crashes else record

    manifest, trials = make_run(every, blocks=sweep.trials, windows=sweep.windows, change=crash)
    folder = Path(os.environ["PLANTED_LOG"])
    asked = {"cells": [cell.label for cell in cells], "trials": sweep.trials, "windows": sweep.windows}
    with (folder / "asked.jsonl").open("a") as log:
        log.write(json.dumps(asked) + "\n")
    (folder / "trials.jsonl").write_text("".join(trial.model_dump_json() + "\n" for trial in trials))
    return Run(results / manifest.run_id, manifest, trials, torn=False, live=False)
