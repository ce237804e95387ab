"""The index beside a page that was just written."""

import sys
from pathlib import Path

from harness.errors import StorageError


def list_in_index(page: Path) -> None:
    """Rewrite the index of the page's folder. A fault there is told and fails nothing: the page itself is written."""
    from harness.report.page.index import INDEX_NAME, update_index

    if page.name == INDEX_NAME:
        return  # asked for by name: it stays what it is
    try:
        index = update_index(page.parent)
    except StorageError as error:
        sys.stderr.write(f"harness: index: {error}\n")
        return
    if index is None:
        sys.stderr.write(f"harness: index: '{page.parent / INDEX_NAME}' is not of this harness and stays as it is\n")
