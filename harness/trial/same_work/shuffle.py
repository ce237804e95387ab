"""The order in which TensorFlow's `tf.data` draws shuffled examples, without TensorFlow: so that engines beside it
train on the same batches in the same order.

Its random numbers are those of Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
2, 3", SC 2011). How a seed becomes numbers of a pass, and a number the next example, is as in TensorFlow's
`shuffle_dataset_op.cc`; the tests hold it against `tf.data` itself.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.protocol.state import Array

LOW = 2**32 - 1
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
"""Philox' constants: what a round multiplies by, and what it adds to the key."""
SEEDS = 2**31 - 1
"""TensorFlow counts its seeds modulo so many, and takes this for the second of two that are 0, which to its kernels
mean one of the clock's."""


def shuffled(numbers: "Array", buffer: int, seed: int) -> "Iterator[Array]":
    """`numbers` [n] pass after pass without end, as `Dataset.shuffle(buffer, seed).repeat()` draws them after
    `keras.utils.set_random_seed(seed)`."""
    import numpy as np

    first = seed % SEEDS
    second = first or SEEDS
    starts = np.arange(len(numbers))
    # of those that wait in the buffer one is drawn, the first takes its place, and the next of the source comes behind
    waiting = np.minimum(starts + buffer, len(numbers)) - starts
    for number in itertools.count():
        low, high = random_numbers(first, second, 2 * number, 2).tolist()
        drawn = starts + random_numbers(low, high, 0, len(numbers)) % waiting
        line = numbers.tolist()
        for start, at in enumerate(drawn.tolist()):
            line[start], line[at] = line[at], line[start]
        yield np.array(line, numbers.dtype)


def random_numbers(first_seed: int, second_seed: int, begin: int, count: int) -> "Array":
    """So many numbers [count] of 32 bits each from the `begin`-th on, as TensorFlow's `PhiloxRandom` of two seeds of 64
    bits makes them one by one, four of each count."""
    import numpy as np

    counts = np.arange(begin // 4, -(-(begin + count) // 4), dtype=np.uint64)
    words = [counts & LOW, counts >> 32, *(np.full_like(counts, half) for half in _halves(second_seed))]
    key = _halves(first_seed)
    for _ in range(ROUNDS):
        even, odd = (words[place] * np.uint64(factor) for place, factor in zip((0, 2), MULTIPLIERS, strict=True))
        words = [odd >> 32 ^ words[1] ^ key[0], odd & LOW, even >> 32 ^ words[3] ^ key[1], even & LOW]
        key = [part + step & LOW for part, step in zip(key, STEPS, strict=True)]
    return np.stack(words, axis=1).ravel()[begin % 4 :][:count].astype(np.int64)


def _halves(seed: int) -> list[int]:
    """Its lower and its upper 32 bits."""
    return [seed & LOW, seed >> 32 & LOW]
