"""The model of tensorflow#103564 at a thirty-second of its widths, and rows for it.

There a dropout, a dense layer of 16,384, one of 8,192 and a dropout take batches of 4,096 rows of about 11,000 floats
from TFRecord files. Here all these numbers are divided by 32. What the issue's text does not tell is chosen here: ten
logits behind the second dropout, and how much is dropped. docs/worked-example.md has what `explain` says.

    python -m harness prepare benchmarks.wide_rows:rows prepared/rows
    python -m harness explain --model benchmarks.wide_rows:make_model --data tfrecord:prepared/rows --cache none \
        --strategy mirrored --replicas 2 --batch-size 128
"""

import keras
import numpy as np
import tensorflow as tf

SMALLER = 32
FLOATS, WIDTHS, DROPPED = 11_008 // SMALLER, (16_384 // SMALLER, 8_192 // SMALLER), 0.2
ROWS, CLASSES = 8192, 10


def rows() -> tf.data.Dataset:
    """(row [344] float32, class [] int32): noise around a centre of each class."""
    generator = np.random.default_rng(1)
    classes = generator.integers(CLASSES, size=ROWS, dtype=np.int32)
    centres = generator.normal(size=(CLASSES, FLOATS))
    noise = generator.normal(size=(ROWS, FLOATS))
    return tf.data.Dataset.from_tensor_slices(((centres[classes] + noise).astype(np.float32), classes))


def make_model() -> keras.Model:
    """Dropout, two dense layers, dropout, ten logits."""
    return keras.Sequential(
        [
            keras.Input((FLOATS,)),
            keras.layers.Dropout(DROPPED),
            *(keras.layers.Dense(width, activation="relu") for width in WIDTHS),
            keras.layers.Dropout(DROPPED),
            keras.layers.Dense(CLASSES, dtype="float32"),
        ],
        name="wide_rows",
    )
