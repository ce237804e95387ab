"""Random images and tokens."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.cached_batches import cached_batches
from harness.engines.tensorflow.workloads import Vocabulary
from harness.trial.examples import random_batch


def test_a_seed_gives_the_same_batch_and_another_seed_another() -> None:
    x, y = random_batch((8, 8, 3), 10, 64, seed=1)
    again, other = random_batch((8, 8, 3), 10, 64, seed=1), random_batch((8, 8, 3), 10, 64, seed=2)
    np.testing.assert_array_equal(x, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(x, other[0])


def test_images_are_standard_normal_and_labels_cover_every_class_evenly() -> None:
    x, y = random_batch((8, 8, 3), 5, 10_000, seed=1)
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((10_000, 8, 8, 3), np.float32, (10_000,), np.int32)
    assert abs(float(x.mean())) < 0.01
    assert abs(float(x.std()) - 1) < 0.01
    assert np.bincount(y, minlength=5).min() > 1800
    assert y.max() == 4


def test_a_model_with_one_output_gets_binary_labels() -> None:
    _, y = random_batch((2, 2), 1, 100, seed=1)
    assert set(y) == {0, 1}


def test_its_examples_are_what_its_info_says(tf: Any) -> None:  # noqa: ARG001 - sets TensorFlow up
    source, anywhere = load_source("synthetic"), Path("/nowhere")
    source.prepare(anywhere)
    info = source.info(anywhere)
    examples = list(source.examples(anywhere))
    assert len(examples) == info.examples
    assert examples[0][0].shape == info.shape
    assert max(int(label) for _, label in examples) == info.classes - 1


def test_a_model_of_tokens_gets_tokens_of_its_vocabulary_and_one_that_tells_the_next_a_target_for_each() -> None:
    x, y = random_batch((50,), 7, 100, seed=1, vocabulary=Vocabulary(7, next_token=True))
    assert (x.dtype, x.shape, y.shape, sorted({*x.flat}), sorted({*y.flat})) == (
        "int32",
        (100, 50),
        (100, 50),
        [*range(7)],
        [*range(7)],
    )
    assert random_batch((50,), 3, 100, seed=1, vocabulary=Vocabulary(7))[1].shape == (100,)


def test_two_models_of_ones_own_in_a_run_each_have_what_they_take(tmp_path: Path, tf: Any) -> None:  # noqa: ARG001
    import keras

    def taken(rows: int) -> np.ndarray[Any, Any]:
        layers = [keras.Input((4,), dtype="int32"), keras.layers.Embedding(rows, 2), keras.layers.Flatten()]
        model = keras.Sequential([*layers, keras.layers.Dense(3)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        asked = SimpleNamespace(model=f"my_models:of_{rows}", data="synthetic", global_batch_size=64)
        request: Any = SimpleNamespace(training=asked, data_dir="", scratch=str(tmp_path))
        source = load_source("synthetic").for_model(model)
        [(x, _)] = cached_batches(request, "batches", source, (4,), 3, 1, None)
        found: np.ndarray[Any, Any] = x
        return found

    assert taken(50).max() < 50 < taken(1000).max()
