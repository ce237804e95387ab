"""What the parent adds to a cell before a trial of it is asked for."""

from pathlib import Path

import pytest

from harness.run.request import data_dir_of
from harness.spec.sweep import Sweep


def test_the_folder_of_data_follows_the_xdg_convention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_dir_of(Sweep()) == tmp_path / "tf-distribute-harness"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_dir_of(Sweep()) == tmp_path / ".cache" / "tf-distribute-harness"
