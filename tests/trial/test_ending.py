"""How a trial that raised has ended where no framework has a meaning for it, and what is kept as evidence."""

import pytest

from harness.trial.ending import plain_ending, traceback_without_paths


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (MemoryError("no room"), "out_of_memory", "MemoryError: no room"),
        (NotImplementedError("later"), "unsupported", "NotImplementedError: later"),
        (ValueError("\n  so be it\nand more"), "crashed", "ValueError: so be it"),
        (KeyError(), "crashed", "KeyError: "),
    ],
)
def test_an_exception_is_a_status_and_its_first_line(error: Exception, status: str, reason: str) -> None:
    assert plain_ending(error) == (status, reason)


def test_evidence_names_no_folder_of_this_machine() -> None:
    import json

    try:
        json.loads("{")
    except ValueError:
        text = traceback_without_paths()
    assert "json/decoder.py" in text
    assert '"/' not in text
