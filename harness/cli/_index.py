"""The index beside a page that was just written."""

import sys
from pathlib import Path

from harness.errors import StorageError

REPORTS = Path("reports")
"""Where pages go that nobody names a place for."""


def list_in_index(page: Path) -> None:
    """Rewrite the index of the page's folder, if that is one of reports: it is called so, or has an index of ours.

    A fault there is told and fails nothing: the page itself is written.
    """
    from harness.report.page.index import INDEX_NAME, has_index, update_index

    if page.name == INDEX_NAME or not page.is_file():
        return  # the index asked for by name stays what it is
    if page.parent.resolve().name != REPORTS.name and not has_index(page.parent):
        return
    try:
        index = update_index(page.parent)
    except StorageError as error:
        sys.stderr.write(f"harness: index: {error}\n")
        return
    if index is None:
        sys.stderr.write(f"harness: index: '{page.parent / INDEX_NAME}' is not of this harness and stays as it is\n")
