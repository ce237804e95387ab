"""From a source's images to a model's input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.images import check_input_shape, fit
from harness.engines.tensorflow.data.pipeline import gate_batches, pipeline
from harness.errors import UsageError


@pytest.mark.usefixtures("tf")
class TestFit:
    """Channels, size and range."""

    def tensor(self, array: Any, dtype: str = "uint8") -> Any:
        """`array` as a tensor."""
        import tensorflow as tf

        return tf.constant(np.asarray(array, dtype))

    @pytest.mark.parametrize(("dtype", "most"), [("uint8", 255), ("uint16", 65535)])
    def test_integer_images_are_scaled_from_their_range_to_0_and_1(self, dtype: str, most: int) -> None:
        images = self.tensor([[[0], [most]]], dtype)
        np.testing.assert_allclose(fit(images, (1, 2, 1)), [[[0.0], [1.0]]])

    def test_floating_images_are_left_as_they_are(self) -> None:
        np.testing.assert_allclose(fit(self.tensor([[[-3.5]]], "float32"), (1, 1, 1)), [[[-3.5]]])

    def test_sizes_are_met_by_bilinear_interpolation(self) -> None:
        got = fit(self.tensor([[[0], [100]]], "float32"), (1, 4, 1))
        np.testing.assert_allclose(np.ravel(got), [0, 25, 75, 100])

    def test_grey_becomes_colour_by_repetition_and_back_by_luma(self) -> None:
        grey = self.tensor([[[51]]])
        np.testing.assert_allclose(fit(grey, (1, 1, 3)), [[[0.2, 0.2, 0.2]]])
        colour = self.tensor([[[51, 51, 51]]])
        np.testing.assert_allclose(fit(colour, (1, 1, 1)), [[[0.2]]], atol=1e-4)

    def test_an_alpha_channel_is_dropped(self) -> None:
        np.testing.assert_allclose(fit(self.tensor([[[255, 0, 0, 7]]]), (1, 1, 3)), [[[1, 0, 0]]])

    def test_a_model_of_height_and_width_gets_no_channel_axis(self) -> None:
        assert fit(self.tensor(np.zeros((5, 8, 8, 1))), (4, 4)).shape == (5, 4, 4)

    def test_one_image_and_many_give_the_same(self) -> None:
        images = self.tensor(np.random.default_rng(1).integers(0, 256, (3, 8, 8, 1)))
        np.testing.assert_allclose(fit(images, (28, 28, 3))[1], fit(images[1], (28, 28, 3)), rtol=1e-6)

    def test_other_channel_counts_are_refused(self) -> None:
        with pytest.raises(UsageError, match="takes images of 5 channels and the data have 1, expected 1 or 3"):
            fit(self.tensor([[[1]]]), (1, 1, 5))

    @pytest.mark.parametrize(("dtype", "most"), [("uint8", 255), ("uint16", 65535), ("int64", 2**63 - 1)])
    def test_whole_numbers_are_from_0_to_255(self, dtype: str, most: int) -> None:
        got = fit(self.tensor([[[0], [most // 3], [most]]], dtype), (1, 3, 1), "int32")
        assert (got.dtype, np.ravel(got).tolist()) == ("int32", [0, 85, 255])

    def test_no_whole_numbers_are_made_of_floating_images_whose_range_nobody_knows(self) -> None:
        with pytest.raises(UsageError, match=r"images of uint8, and the data are of float32, expected a keras\.Input"):
            fit(self.tensor([[[1]]], "float32"), (1, 1, 1), "uint8")


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(
    ("dtype", "given", "most"),
    [("uint8", "uint8", 255), ("int32", "int32", 255), ("float16", "float32", 1), ("float32", "float32", 1)],
)
def test_a_model_of_ones_own_gets_images_in_the_range_of_its_inputs_type(
    tf: Any,  # noqa: ARG001
    digits_dir: Path,
    sequential: bool,
    dtype: str,
    given: str,
    most: int,
) -> None:
    import keras

    x = keras.Input((8, 8, 1), dtype=dtype)
    made = keras.layers.Flatten()(x)
    model = keras.Sequential([x, keras.layers.Flatten()]) if sequential else keras.Model(x, made)
    digits = load_source("digits")
    source = digits.for_model(model)
    [(images, _)] = gate_batches(source, digits_dir, (8, 8, 1), 10, 64, 1)
    [(fed, _)] = pipeline(source, digits_dir, (8, 8, 1), 10, 64, 1).take(1)
    assert (images.dtype, images.max(), fed.dtype.name, fed.numpy().max()) == (given, most, given, most)
    assert digits.pixels == "float32"


@pytest.mark.parametrize("dtype", ["int8", "bool"])
def test_a_type_that_cannot_hold_a_pixel_is_refused(tf: Any, dtype: str) -> None:  # noqa: ARG001
    import keras

    x = keras.Input((8, 8, 1), dtype=dtype)
    with pytest.raises(UsageError, match=f"takes images of {dtype}, expected a type that has 0 to 255, or floats from"):
        load_source("digits").for_model(keras.Model(x, keras.layers.Flatten()(x)))


@pytest.mark.parametrize("shape", [(784,), (None, None, 3), (2, 28, 28, 1), ()])
def test_an_input_that_is_no_image_of_known_size_is_refused(shape: tuple[int | None, ...]) -> None:
    with pytest.raises(UsageError, match=r"^model: takes input of shape .*, expected \(height, width\) or"):
        check_input_shape(shape)


@pytest.mark.parametrize("shape", [(28, 28), (28, 28, 1), (32, 32, 3)])
def test_images_of_known_size_are_accepted(shape: tuple[int, ...]) -> None:
    check_input_shape(shape)
