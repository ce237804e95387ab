"""ResNet-20 for 32×32 images.

K. He, X. Zhang, S. Ren, J. Sun, *Deep Residual Learning for Image Recognition* (2015),
https://arxiv.org/abs/1512.03385, section 4.2: a 3×3 convolution, three stages of n = 3 blocks with
16, 32 and 64 filters, batch normalisation after each convolution, parameter-free shortcuts
("option A": every second pixel, new channels zero), global average pooling, 6n + 2 = 20 layers.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

BLOCKS_PER_STAGE = 3
STAGE_FILTERS = (16, 32, 64)


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """269,722 weights and 1,376 running statistics for (32, 32, 3) and 10 classes (0.27 M in the paper).

    Batch normalisation uses each replica's own share of the batch, as in the paper and as
    `tf.distribute` does by default.
    """
    import keras

    inputs = keras.Input(input_shape)
    x = keras.layers.ReLU()(_normalised_convolution(inputs, STAGE_FILTERS[0]))
    for stage, filters in enumerate(STAGE_FILTERS):
        for block in range(BLOCKS_PER_STAGE):
            x = _block(x, filters, stride=2 if stage > 0 and block == 0 else 1)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="resnet20")


def _normalised_convolution(x: Any, filters: int, stride: int = 1) -> Any:
    import keras

    convolution = keras.layers.Conv2D(
        filters, 3, stride, padding="same", use_bias=False, kernel_initializer="he_normal"
    )
    return keras.layers.BatchNormalization()(convolution(x))


def _block(x: Any, filters: int, stride: int) -> Any:
    """Two convolutions beside a shortcut: [batch, h, w, c] to [batch, h/stride, w/stride, filters]."""
    import keras

    y = keras.layers.ReLU()(_normalised_convolution(x, filters, stride))
    y = _normalised_convolution(y, filters)
    if stride > 1:
        missing = filters - x.shape[-1]
        x = keras.ops.pad(x[:, ::stride, ::stride, :], ((0, 0), (0, 0), (0, 0), (missing // 2, missing - missing // 2)))
    return keras.layers.ReLU()(keras.layers.Add()([x, y]))
