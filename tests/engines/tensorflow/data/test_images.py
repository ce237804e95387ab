"""From a source's images to a model's input."""

from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data.images import check_input_shape, fit
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


@pytest.mark.parametrize("shape", [(784,), (None, None, 3), (2, 28, 28, 1), ()])
def test_an_input_that_is_no_image_of_known_size_is_refused(shape: tuple[int | None, ...]) -> None:
    with pytest.raises(UsageError, match=r"^model: takes input of shape .*, expected \(height, width\) or"):
        check_input_shape(shape)


@pytest.mark.parametrize("shape", [(28, 28), (28, 28, 1), (32, 32, 3)])
def test_images_of_known_size_are_accepted(shape: tuple[int, ...]) -> None:
    check_input_shape(shape)
