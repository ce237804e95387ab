"""What noise is usual here: that of the newest earlier sweep on this machine."""

from collections import defaultdict
from pathlib import Path

from harness.analysis.estimates.noise_now import pooled_noise, window_noise
from harness.errors import HarnessError
from harness.record.kind import TRIALS_NAME
from harness.record.manifest import RunManifest
from harness.record.packed import records_file
from harness.record.reading import RunListing, list_runs, load_manifest, load_trials

MOST_BYTES = 50_000_000
"""A file of records larger than this is not read for a figure on a screen."""


def usual_noise(results: Path, manifest: RunManifest) -> dict[str, float]:
    """Scatter of a window by cell id, from the newest sweep on the same machine that has any of the cells."""
    wanted = {cell.cell_id for cell in manifest.cells}
    machine = manifest.facts.get("machine.id")
    for row in reversed(_runs(results)):
        if row.problem is not None or row.run_id == manifest.run_id or machine is None:
            continue
        try:
            file = records_file(row.path / TRIALS_NAME)
            earlier = load_manifest(row.path)
            if earlier.facts.get("machine.id") != machine or earlier.what.kind.uncompared is not None:
                continue
            if not wanted & {cell.cell_id for cell in earlier.cells} or file.stat().st_size > MOST_BYTES:
                continue
            trials, _ = load_trials(file, earlier.run_id)
        except (HarnessError, OSError):
            continue
        noises: defaultdict[str, list[float]] = defaultdict(list)
        for trial in trials:
            if trial.measured and trial.windows is not None and trial.cell_id in wanted:
                found = window_noise(trial.windows.seconds[trial.windows.measured_from :])
                noises[trial.cell_id] += [found] if found is not None else []
        if noises:
            return {cell_id: usual for cell_id, values in noises.items() if (usual := pooled_noise(values)) is not None}
    return {}


def _runs(results: Path) -> list[RunListing]:
    """None where they cannot be listed: no sweep ends for want of a figure on its screen."""
    try:
        return list_runs(results)
    except HarnessError:
        return []
