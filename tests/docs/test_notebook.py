"""The notebook runs as it is committed, and prints what it shows."""

from typing import Any

import nbclient
import nbformat
import pytest

from tests.docs.printed import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
LARGEST_BYTES = 100_000


def printed(notebook: Any) -> list[str]:
    """What each cell printed, in order."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(out.text for out in cell.outputs if out.output_type == "stream") for cell in cells]


def test_it_runs_and_prints_what_is_committed() -> None:
    committed = nbformat.read(NOTEBOOK, as_version=4)
    again = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(again, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    client.execute()
    assert printed(again) == printed(committed)
    pictures = [out for cell in again.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) == 2


def test_it_is_small_and_valid_and_names_no_place_of_one_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    nbformat.validate(nbformat.reads(text, as_version=4))
    assert len(text) < LARGEST_BYTES
    for place in ("/home/", "/root/", "/tmp/", "localhost"):
        assert place not in text


@pytest.mark.parametrize("kind", ["error", "stderr"])
def test_no_committed_cell_failed_or_warned(kind: str) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert not [out for out in outputs if kind in (out.output_type, out.get("name"))]
