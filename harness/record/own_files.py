"""Which files are a run's own: nothing else may take their place."""

import os
from pathlib import Path

from harness.record.faults import FAULTS_NAME
from harness.record.files import LOCK_NAME, behind_links
from harness.record.kind import RECORDS_NAME, TRIALS_NAME
from harness.record.packed import PACKED
from harness.record.reading import MANIFEST_NAME
from harness.record.validation import VALIDATION_NAME

_LOGS = (TRIALS_NAME, RECORDS_NAME, FAULTS_NAME)
OWN_FILES = frozenset((MANIFEST_NAME, VALIDATION_NAME, LOCK_NAME, *_LOGS, *(name + PACKED for name in _LOGS)))
"""Names within a run's folder, of runs of every kind."""
TRACES = "traces"
"""The folder of a run that holds its traces."""


def is_own_file(path: Path) -> bool:
    """Whether `path`, which need not exist, is where a run keeps a file of its own. OSError for links in a circle."""
    path = behind_links(path)
    folder = Path(os.path.realpath(path.parent))  # `resolve` of a circle is no OSError
    if path.name in OWN_FILES and (folder / MANIFEST_NAME).exists():
        return True
    return any(at.name == TRACES and (at.parent / MANIFEST_NAME).exists() for at in (folder, *folder.parents))
