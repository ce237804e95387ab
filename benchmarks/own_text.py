"""A text classifier with data of your own, complete. Copy this file next to your code and change both functions.

Run it from the folder above `benchmarks/`:

    python -m harness sweep --model benchmarks.own_text:make_model --data benchmarks.own_text:examples \
        --strategy none,one_device,mirrored --replicas 1,2,3

`--data` takes a function that returns a `tf.data.Dataset` of (input, target) or (input, target, weight), without
arguments or with numbers by name:

- one pass, one example each, without `batch()`, `repeat()` and `shuffle()`: these are the harness's, as is the cut into
  shards, so that they are the same under every strategy and the gate can prove updates on batches that it knows;
- in an order that does not change: the first examples are the gate's, and each worker takes its own of all;
- inputs and targets tensors of numbers, one or several in a dict or tuple. Targets are of a fixed shape; inputs may
  vary in length. They reach the model as they are: integers stay integers, and nothing is scaled. `--model` is then a
  model of your own that takes them;
- at least two global batches, of which the gate wants no example twice.

It is called in each fresh process, so let it read what is prepared. Where TensorFlow does not know how many examples
there are, as from a generator, they are read anew in every pass; `tf.data.experimental.assert_cardinality` tells it.

`--data benchmarks.own_text:batches` is the other way: a function of a batch size and a shard, which makes batches, and
shards, shuffles and caches as it likes. In a fresh process it begins with the same ones each time.
"""

import keras
import numpy as np
import tensorflow as tf

EXAMPLES, TOKENS, WORDS, CLASSES = 4096, 40, 2000, 5


def examples() -> tf.data.Dataset:
    """(tokens [40] int32, class [] int32): in a text every third word, or so, is one of its class's own."""
    generator = np.random.default_rng(1)
    labels = generator.integers(CLASSES, size=EXAMPLES, dtype=np.int32)
    tokens = generator.integers(WORDS, size=(EXAMPLES, TOKENS), dtype=np.int32)
    own = generator.random(tokens.shape) < 0.3
    of_class = tokens // CLASSES * CLASSES + labels[:, None]
    return tf.data.Dataset.from_tensor_slices((np.where(own, of_class, tokens), labels))


def batches(batch_size: int, shard: tuple[int, int]) -> tf.data.Dataset:
    """(tokens [batch, 40], classes [batch]) of part `index` of `count`, in an order of its own."""
    index, count = shard
    own = examples().shard(count, index).cache().shuffle(EXAMPLES, seed=1)
    return own.batch(batch_size, drop_remainder=True)


def make_model() -> keras.Model:
    """Embedding, LSTM, five logits; without `compile()` the loss is sparse categorical cross-entropy."""
    return keras.Sequential(
        [
            keras.Input((TOKENS,), dtype="int32"),
            keras.layers.Embedding(WORDS, 32),
            keras.layers.LSTM(32),
            keras.layers.Dense(CLASSES, dtype="float32"),
        ],
        name="own_text",
    )
