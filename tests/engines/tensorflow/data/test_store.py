"""Reading prepared data sets."""

from pathlib import Path

import pytest

from harness.engines.tensorflow.data.store import locked, opened, read
from harness.errors import HarnessError


@pytest.mark.usefixtures("tf")
def test_a_folder_without_a_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"^data: '.*' is no readable data set \(.*\); delete it and run again$"):
        opened(tmp_path)


def test_a_data_set_is_opened_once_for_all_who_read_it(digits_dir: Path) -> None:
    folder = digits_dir / "sklearn_digits" / "1.0.0"
    assert read(folder, "image", "label") is read(folder, "image", "label")


def test_other_features_can_be_read_than_those_it_recommends(digits_dir: Path) -> None:
    folder = digits_dir / "sklearn_digits" / "1.0.0"
    (label, image), *_ = read(folder, "label", "image").take(1)
    assert (label.shape, image.shape) == ((), (8, 8, 1))


def test_an_error_inside_the_lock_passes_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), locked(tmp_path, "x"):
        raise ConnectionError
