"""Published tables (CSV) as runs without trials."""

import datetime
import hashlib
import re
from pathlib import Path

from harness.environment.commits import telling_unignored
from harness.errors import UsageError
from harness.files import read_whole
from harness.record.imported import ImportedRecord
from harness.record.manifest import Machine, RunManifest
from harness.record.published import read_figures
from harness.record.store import RunStore, new_run_id
from harness.spec.reading import PATTERNS
from harness.spec.sweep import NAME, Sweep
from harness.version import __version__
from harness.visible import quoted

LARGEST_BYTES = 16 * 2**20
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def import_table(path: Path, results: Path, name: str | None = None, source: str | None = None) -> tuple[Path, int]:
    """Keep the table at `path` as a run in `results`; returns its folder and how many figures it holds.

    `source` says where rows come from that do not say so themselves. Raises UsageError that names the row and the
    column, StorageError when `results` cannot be used.
    """
    data = _data(path)
    figures, left_out = read_figures(data.decode("utf-8-sig", "strict"), path.name, source)
    record = ImportedRecord(file=path.name, sha256=hashlib.sha256(data).hexdigest(), figures=figures, left_out=left_out)
    if name is not None and not re.fullmatch(NAME, name):
        raise UsageError(f"--name: given {quoted(name)}, expected {PATTERNS['name']}")
    called = name or (_NAME.sub("-", path.stem).strip("-._") or "table")[:64]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    manifest = RunManifest(
        run_id=new_run_id(called),
        created_utc=now,
        finished_utc=now,
        status="finished",
        command=["harness", "import", path.name],
        harness_version=__version__,
        sweep=Sweep(name=called),
        cells=[],
        plans=[],
        machine=Machine(facts={}),
        imported=record,
    )
    with telling_unignored(results), RunStore.create(results, manifest) as store:
        return store.path, len(figures)


def _data(path: Path) -> bytes:
    try:
        data = read_whole(path, LARGEST_BYTES)
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name}: row {row}: is not UTF-8; save the table as UTF-8") from None
    except OSError as error:
        raise UsageError(
            f"FILE: cannot read '{path}': {error.strerror or error}; name a CSV file, a large one in parts"
        ) from None
    return data
