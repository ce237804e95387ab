"""From a source's images to a model's input: channels, size, range."""

from typing import TYPE_CHECKING

from harness.errors import UsageError

if TYPE_CHECKING:
    import tensorflow as tf


FLOATS = "float32"
MOST = 255
"""Of a pixel that is a whole number."""


def check_input_shape(input_shape: tuple[int | None, ...]) -> None:
    """UsageError unless (height, width) or (height, width, channels), all known."""
    if len(input_shape) not in (2, 3) or None in input_shape:
        raise UsageError(
            f"model: takes input of shape {input_shape}, expected (height, width) or (height, width, channels), "
            "all fixed, because the data are images (a leading Reshape or Flatten layer helps)"
        )


def fit(images: "tf.Tensor", input_shape: tuple[int, ...], dtype: str = FLOATS) -> "tf.Tensor":
    """Images [..., h, w, c] as `dtype` [..., *input_shape]; the last dimension, c, is known.

    Integer images are scaled from their type's range to [0, 1], or as whole numbers to 0 to 255; floating ones are not
    scaled. Grey becomes colour by repetition, colour becomes grey by luma, an alpha channel is dropped; sizes are
    met by bilinear interpolation without antialiasing. Raises UsageError for other channel counts, and for whole
    numbers of floating images, whose range nobody knows.
    """
    import tensorflow as tf

    height, width = input_shape[:2]
    channels = input_shape[2] if len(input_shape) == 3 else 1
    if dtype != FLOATS and not images.dtype.is_integer:
        has = f"takes images of {dtype}, and the data are of {images.dtype.name}"
        raise UsageError(f"model: {has}, expected a keras.Input of {FLOATS}")
    scale = (1 if dtype == FLOATS else MOST) / images.dtype.max if images.dtype.is_integer else 1.0
    x = _with_channels(tf.cast(images, tf.float32) * scale, channels)
    if tuple(x.shape[-3:-1]) != (height, width):
        x = tf.image.resize(x, (height, width))
    x = x if len(input_shape) == 3 else tf.squeeze(x, -1)
    return x if dtype == FLOATS else tf.cast(tf.round(x), dtype)


def type_for(dtype: str) -> str:
    """What images are given as to a model whose input is of this type. UsageError where it cannot hold 0 to 255."""
    if dtype == FLOATS:
        return FLOATS
    import tensorflow as tf

    wanted = tf.as_dtype(dtype)
    if wanted.is_integer and wanted.max >= MOST:
        return dtype
    if wanted.is_floating:
        return FLOATS
    raise UsageError(f"model: takes images of {dtype}, expected a type that has 0 to {MOST}, or floats from 0 to 1")


def _with_channels(x: "tf.Tensor", wanted: int) -> "tf.Tensor":
    import tensorflow as tf

    given = x.shape[-1]
    if given == 4 and wanted in (1, 3):
        x, given = x[..., :3], 3
    if given == wanted:
        return x
    if (given, wanted) == (1, 3):
        return tf.image.grayscale_to_rgb(x)
    if (given, wanted) == (3, 1):
        return tf.image.rgb_to_grayscale(x)
    raise UsageError(f"model: takes images of {wanted} channels and the data have {given}, expected 1 or 3")
