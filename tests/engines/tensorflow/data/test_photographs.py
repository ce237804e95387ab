"""Crops of scikit-learn's photographs, as JPEG."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, Source, load_source
from harness.engines.tensorflow.data.pipeline import gate_batches, pipeline
from harness.engines.tensorflow.data.stages import stages_of
from harness.errors import HarnessError

NAME = "photographs:12"


@pytest.fixture(scope="module")
def prepared(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path]:  # noqa: ARG001
    """Twelve crops on disk."""
    source, folder = load_source(NAME), tmp_path_factory.mktemp("photographs")
    source.prepare(folder)
    return source, folder


def encoded(source: Source, folder: Path) -> list[tuple[bytes, int]]:
    return [(image, int(label)) for image, label in source.examples(folder).as_numpy_iterator()]


def test_every_crop_is_a_jpeg_of_a_size_of_its_own_from_the_photographs_in_turn(prepared: tuple[Source, Path]) -> None:
    source, folder = prepared
    crops = encoded(source, folder)
    assert source.info(folder) == DataInfo((None, None, 3), 2, len(crops))
    assert [label for _, label in crops] == [0, 1] * 6
    shapes = {tuple(source.decoded(image).shape) for image, _ in crops}
    assert len(shapes) == len(crops)
    assert all(128 <= side <= 256 and channels == 3 for *sides, channels in shapes for side in sides)


def test_of_another_number_the_first_ones_are_the_same(prepared: tuple[Source, Path], tmp_path: Path) -> None:
    more = load_source("photographs:14")
    more.prepare(tmp_path)
    assert encoded(more, tmp_path)[:12] == encoded(*prepared)


def test_what_was_cut_short_is_written_again_and_what_is_whole_is_not(tf: Any, tmp_path: Path) -> None:  # noqa: ARG001
    source = load_source(NAME)
    source.prepare(tmp_path)
    [file] = tmp_path.rglob("*.tfrecord")
    whole, written = file.read_bytes(), file.stat().st_mtime_ns
    source.prepare(tmp_path)
    assert file.stat().st_mtime_ns == written
    file.write_bytes(whole[:-100])
    source.prepare(tmp_path)
    assert file.read_bytes() == whole


def test_they_are_decoded_in_the_pipelines_parallel_calls(prepared: tuple[Source, Path]) -> None:
    made = pipeline(*prepared, (28, 28, 1), 10, 4, seed=1)
    x, y = next(iter(made))
    assert (x.shape, y.shape, x.dtype.name) == ((4, 28, 28, 1), (4,), "float32")
    assert stages_of(made)[1:4] == ["TFRecord(1 file)", "Map", "ParallelMap"]


def test_the_gates_batches_are_decoded_too(prepared: tuple[Source, Path]) -> None:
    (x, _), (other, _) = gate_batches(*prepared, (28, 28, 3), 10, 5, 2)
    assert x.shape == (5, 28, 28, 3)
    assert 0 < np.abs(x - other).max() <= 1


def test_what_is_not_prepared_says_so(tf: Any, tmp_path: Path) -> None:  # noqa: ARG001
    with pytest.raises(HarnessError, match=r"^data: 'photographs' is not prepared under "):
        load_source("photographs").examples(tmp_path)
