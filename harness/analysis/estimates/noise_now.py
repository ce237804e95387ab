"""How noisy the machine is at this moment, and usually: the scatter of a trial's windows, slow drift left out."""

import contextlib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.errors import HarnessError
from harness.record.kind import TRIALS_NAME
from harness.record.manifest import RunManifest
from harness.record.packed import records_file, records_size
from harness.record.reading import has_whole_records, list_manifests, load_manifest, load_trials
from harness.record.trial import TrialRecord

MOST_BYTES = 50_000_000
"""Of records, unpacked, as many as are read for a figure on a screen, whatever runs they are of."""


def window_noise(seconds: Sequence[float]) -> float | None:
    """Relative standard deviation of window times by successive differences; None below three windows.

    sqrt(Σ (ln s_{i+1} − ln s_i)² / (2(n − 1))): von Neumann, Kent, Bellinson & Hart 1941, *The mean square successive
    difference*. A drift that is slow against a window hardly enters, a straggler does. `seconds` are positive, and of
    windows with the same number of steps.
    """
    if len(seconds) < 3:
        return None
    logs = [math.log(value) for value in seconds]
    squares = ((later - earlier) ** 2 for earlier, later in itertools.pairwise(logs))
    return math.sqrt(math.fsum(squares) / (2 * (len(logs) - 1)))


def pooled_noise(values: Sequence[float]) -> float | None:
    """Root mean square; None of nothing."""
    return math.sqrt(math.fsum(value * value for value in values) / len(values)) if values else None


def noise_of(trials: Iterable[TrialRecord]) -> dict[str, float]:
    """Scatter of a window by cell id, of the cells whose trials tell."""
    noises: defaultdict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.measured and trial.windows is not None:
            found = window_noise(trial.windows.seconds[trial.windows.measured_from :])
            noises[trial.cell_id] += [found] if found is not None else []
    return {cell_id: usual for cell_id, values in noises.items() if (usual := pooled_noise(values)) is not None}


def usual_noise(results: Path, manifest: RunManifest) -> dict[str, float]:
    """The same of the newest other sweep on the machine whose trials tell it of any of the cells.

    Of what cannot be read, or is more than `MOST_BYTES` with what newer ones had, nothing is said: no sweep ends, or
    waits, for want of a figure on its screen.
    """
    left = MOST_BYTES
    wanted, machine = {cell.cell_id for cell in manifest.cells}, manifest.facts.get("machine.id")
    with contextlib.suppress(HarnessError):
        for row in reversed(list_manifests(results)):
            if row.problem is not None or row.run_id == manifest.run_id or machine is None:
                continue
            with contextlib.suppress(HarnessError, OSError):
                file, earlier = records_file(row.path / TRIALS_NAME), load_manifest(row.path)
                if earlier.facts.get("machine.id") != machine or earlier.what.kind.uncompared is not None:
                    continue
                if not wanted & {cell.cell_id for cell in earlier.cells} or not has_whole_records(row):
                    continue
                if (size := records_size(file)) > left:
                    continue
                left -= size
                trials, _ = load_trials(file, earlier.run_id)
                if noises := noise_of(trial for trial in trials if trial.cell_id in wanted):
                    return noises
    return {}
