"""scikit-learn's digits as TFRecord shards."""

import importlib.util
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, digits, load_source
from harness.errors import HarnessError
from harness.trial.examples import handwritten_digits

FOLDER = Path("sklearn_digits") / "2.0.0"


def shards(data_dir: Path) -> list[Path]:
    return sorted((data_dir / FOLDER).glob("*.tfrecord-*"))


def read_all(data_dir: Path) -> list[tuple[Any, int]]:
    [(images, labels)] = load_source("digits").examples(data_dir).batch(10_000).as_numpy_iterator()
    return [(image, int(label)) for image, label in zip(images, labels, strict=True)]


def test_every_digit_of_scikit_learn_comes_back_from_the_shards(digits_dir: Path) -> None:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    pixels = np.round(images * 255 / 16).astype(np.uint8)
    expected = sorted((image.tobytes(), int(label)) for image, label in zip(pixels, labels, strict=True))
    assert sorted((image.tobytes(), label) for image, label in read_all(digits_dir)) == expected
    assert len(shards(digits_dir)) == 4


def test_info_is_what_the_shards_hold(digits_dir: Path) -> None:
    examples = read_all(digits_dir)
    assert load_source("digits").info(digits_dir) == DataInfo((8, 8, 1), 10, len(examples))
    assert {image.shape for image, _ in examples} == {(8, 8, 1)}
    assert {image.dtype.name for image, _ in examples} == {"uint8"}
    assert (min(image.min() for image, _ in examples), max(image.max() for image, _ in examples)) == (0, 255)
    assert {label for _, label in examples} == set(range(10))


def test_the_order_never_changes_and_mixes_the_classes(digits_dir: Path) -> None:
    labels = [label for _, label in read_all(digits_dir)]
    assert labels == [label for _, label in read_all(digits_dir)]
    assert len(set(labels[:32])) >= 8


def test_preparing_again_writes_nothing(digits_dir: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in shards(digits_dir)}
    load_source("digits").prepare(digits_dir)
    assert {path: path.stat().st_mtime_ns for path in shards(digits_dir)} == before


def truncate_a_shard(folder: Path) -> None:
    shard = next(folder.glob("*.tfrecord-00001-*"))
    os.truncate(shard, shard.stat().st_size // 2)


def flip_a_byte(folder: Path) -> None:
    shard = next(folder.glob("*.tfrecord-00002-*"))
    content = bytearray(shard.read_bytes())
    content[1000] ^= 0xFF
    shard.write_bytes(content)


def lose_a_shard(folder: Path) -> None:
    next(folder.glob("*.tfrecord-00000-*")).unlink()


def empty_the_metadata(folder: Path) -> None:
    (folder / "dataset_info.json").write_text("", encoding="utf-8")


def die_before_the_seal(folder: Path) -> None:
    (folder / "digests.json").unlink()


def die_while_sealing(folder: Path) -> None:
    (folder / "digests.json").write_text('{"dataset_in', encoding="utf-8")


def seal_with_a_pipe(folder: Path) -> None:
    (folder / "digests.json").unlink()
    os.mkfifo(folder / "digests.json")


def seal_with_what_has_no_end(folder: Path) -> None:
    os.truncate(folder / "digests.json", 2**40)


def seal_with_what_is_nested_without_end(folder: Path) -> None:
    (folder / "digests.json").write_text("[" * 100_000, encoding="utf-8")


def put_a_pipe_beside_the_shards(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def die_while_writing(folder: Path) -> None:
    folder.rename(folder.with_name("incomplete.ABCDEF_2.0.0"))


@pytest.mark.parametrize(
    "harm",
    [
        truncate_a_shard,
        flip_a_byte,
        lose_a_shard,
        empty_the_metadata,
        die_before_the_seal,
        die_while_sealing,
        seal_with_a_pipe,
        seal_with_what_has_no_end,
        seal_with_what_is_nested_without_end,
        put_a_pipe_beside_the_shards,
        die_while_writing,
    ],
)
def test_what_a_kill_or_a_bad_disk_left_is_made_anew(
    tmp_path: Path, digits_dir: Path, monkeypatch: pytest.MonkeyPatch, harm: Any
) -> None:
    shutil.copytree(digits_dir / FOLDER, tmp_path / FOLDER)
    harm(tmp_path / FOLDER)
    written, write = [], digits._write

    def copied(data_dir: Path, *examples: Any) -> None:
        """What was written before, but for where tensorflow-datasets itself may find what it has left."""
        written.append(1)
        if harm is die_while_writing:
            write(data_dir, *examples)
        else:
            shutil.copytree(digits_dir / FOLDER, data_dir / FOLDER, ignore=shutil.ignore_patterns("digests.json"))

    monkeypatch.setattr(digits, "_write", copied)
    load_source("digits").prepare(tmp_path)
    assert written == [1]
    assert len(read_all(tmp_path)) == 1797
    assert [path.name for path in (tmp_path / "sklearn_digits").iterdir()] == ["2.0.0"]


@pytest.mark.usefixtures("tf")
def test_of_two_that_prepare_at_once_one_writes_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    write = digits._write

    def counted(*arguments: Any) -> None:
        written.append(1)
        write(*arguments)

    monkeypatch.setattr(digits, "_write", counted)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: load_source("digits").prepare(tmp_path), range(2)))
    assert len(written) == 1
    assert len(read_all(tmp_path)) == 1797


@pytest.mark.usefixtures("tf")
def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(HarnessError, match=r"^data_dir: cannot write to '.*/file/data': Not a directory; mend that"):
        load_source("digits").prepare(tmp_path / "file" / "data")


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_disk_that_fills_up_while_writing_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    monkeypatch.setattr(digits, "_builder", lambda *_: Full(wrapped))
    with pytest.raises(HarnessError, match=r"^data_dir: cannot write to '.*': No space left on device; mend that"):
        load_source("digits").prepare(tmp_path)


class Full:
    """A builder on a full disk."""

    def __init__(self, wrapped: bool) -> None:
        self.wrapped = wrapped

    def download_and_prepare(self, **_: Any) -> None:
        """Fail as the operating system does, or as tensorflow-datasets tells it."""
        fault = OSError(28, "No space left on device")
        if self.wrapped:
            raise RuntimeError("Failed to write") from fault
        raise fault


@pytest.mark.usefixtures("tf")
def test_a_fault_of_another_kind_is_not_taken_for_the_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(digits, "_builder", broken)
    with pytest.raises(RuntimeError, match="a mistake"):
        load_source("digits").prepare(tmp_path)


@pytest.mark.usefixtures("tf")
def test_a_missing_scikit_learn_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handwritten_digits.cache_clear()
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: None if name == "sklearn" else find(name, *of))
    with pytest.raises(HarnessError, match=r"scikit-learn.*pip install scikit-learn$"):
        load_source("digits").prepare(tmp_path)


def test_reading_what_was_never_prepared_says_so(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"^data: 'digits' is not prepared under"):
        load_source("digits").examples(tmp_path)
