"""What `prepare` does with its target before any process writes into it."""

import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.record.files import _new_file_beside
from harness.run.preparing.plan import PLAN, check_target
from harness.run.preparing.prepare import _locked


def test_what_a_call_that_was_killed_has_left_of_its_first_file_is_removed_and_a_users_file_is_not(
    tmp_path: Path,
) -> None:
    _, descriptor = _new_file_beside(tmp_path / PLAN)
    os.close(descriptor)
    with _locked(tmp_path):
        check_target(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".theirs.tmp").touch()
    with _locked(tmp_path), pytest.raises(UsageError, match=r"has files that prepare has not made, .*'\.theirs\.tmp'"):
        check_target(tmp_path)
    assert (tmp_path / ".theirs.tmp").exists()
