"""Reading prepared data sets."""

import os
from pathlib import Path

import pytest

from harness.engines.tensorflow.data import store
from harness.engines.tensorflow.data.store import locked, opened, read
from harness.errors import HarnessError


@pytest.mark.usefixtures("tf")
def test_a_folder_without_a_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"^data: '.*' is no readable data set \(.*\); delete it and run again$"):
        opened(tmp_path)


def test_a_data_set_is_opened_once_for_all_who_read_it(digits_dir: Path) -> None:
    folder = digits_dir / "sklearn_digits" / "2.0.0"
    assert read(folder, "image", "label") is read(folder, "image", "label")


def test_other_features_can_be_read_than_those_it_recommends(digits_dir: Path) -> None:
    folder = digits_dir / "sklearn_digits" / "2.0.0"
    (label, image), *_ = read(folder, "label", "image").take(1)
    assert (label.shape, image.shape) == ((), (8, 8, 1))


def test_an_error_inside_the_lock_passes_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), locked(tmp_path, "x"):
        raise ConnectionError


@pytest.mark.parametrize("what", ["pipe", "link"])
def test_a_lock_that_is_no_file_is_neither_waited_for_nor_followed(tmp_path: Path, what: str) -> None:
    lock = tmp_path / ".x.lock"
    os.mkfifo(lock) if what == "pipe" else lock.symlink_to("elsewhere")
    with pytest.raises(HarnessError, match=r"^data_dir: cannot write to '.*/\.x\.lock': "), locked(tmp_path, "x"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".x.lock"]


def test_who_waits_for_a_lock_says_so_and_in_the_end_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "WAIT_LIMIT_S", 0.0)
    with locked(tmp_path, "x"), pytest.raises(HarnessError, match="another process has held"), locked(tmp_path, "x"):
        pass
    assert capsys.readouterr().err == f"waiting for another process, which holds '{tmp_path / '.x.lock'}'\n"
    with locked(tmp_path, "x"):
        assert capsys.readouterr().err == ""
