"""Text without a network: source code of Python's own standard library, as bytes or as words and signs."""

import functools
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.structures import only
from harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.engines.tensorflow.workloads.base import Vocabulary
    from harness.protocol.state import Array

PACKAGES = (
    "asyncio", "email", "encodings", "http", "importlib", "logging", "multiprocessing", "unittest", "urllib", "xml",
)  # fmt: skip
"""Each is a class."""
PIECES = 400
"""Of each package."""
TOKENS = 1024
"""The most that a model can take; a piece has one more, the last token's next."""
STEP = 256
"""Bytes from the beginning of a piece to that of the next: for models of no more tokens pieces do not overlap."""
BYTES = 256
OF_PACKAGE = STEP * (PIECES - 1) + TOKENS + 1
"""Bytes that its pieces have, one after the other."""
WORDS_OF = 400_000
"""The most bytes of a package that are split into words: of all ten in 0.4 s, in every process that reads them."""
SPLIT = re.compile(rb" ?\w+| ?[^\w\s]+|\s+")
"""Words and signs, each with a space before it, and other spaces: roughly how GPT-2's tokenizer begins."""
MOST_FREQUENT = 20_000
"""The least vocabulary of the published models of text, and fewer than the text has."""


class Text(Source):
    """Pieces of 1,025 tokens; the class is the package that a piece is from. Another Python may have other text."""

    gives = "text"

    def __init__(self, name: str, summary: str, vocabulary: int, pieces: "Callable[[], tuple[Array, Array]]") -> None:
        """`pieces` gives them all, with their classes."""
        self.name = name
        self.summary = f"4,000 pieces of Python's own source code as {summary}"
        self._vocabulary, self._pieces = vocabulary, pieces

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return DataInfo((TOKENS + 1,), len(PACKAGES), PIECES * len(PACKAGES), self._vocabulary)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(piece [1025] uint8 or uint16, class [] int64), the classes in turn."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(self._pieces())


@functools.cache
def _in_bytes() -> "tuple[Array, Array]":
    import numpy as np

    return _pieces([np.frombuffer(_text_of("text", package, OF_PACKAGE), np.uint8) for package in PACKAGES])


@functools.cache
def _in_words() -> "tuple[Array, Array]":
    """A word's number is its place among the most frequent, from 1 on; 0 are all others."""
    import numpy as np

    words = [SPLIT.findall(_text_of("tokens", package, WORDS_OF)) for package in PACKAGES]
    counts = Counter(chain.from_iterable(words))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[: MOST_FREQUENT - 1]
    numbers = {word: number for number, word in enumerate(frequent, 1)}
    return _pieces([np.fromiter(map(numbers.get, of, repeat(0)), np.uint16, len(of)) for of in words])


def _pieces(of_each: "Sequence[Array]") -> "tuple[Array, Array]":
    """Pieces that begin at equal distances in the tokens of each package, [pieces, tokens], and their classes."""
    import numpy as np

    first = [(len(of) - TOKENS - 1) * np.arange(PIECES)[:, None] // (PIECES - 1) for of in of_each]
    pieces = np.stack([of[start + np.arange(TOKENS + 1)] for of, start in zip(of_each, first, strict=True)], axis=1)
    return pieces.reshape(-1, TOKENS + 1), np.tile(np.arange(len(PACKAGES)), PIECES)


def _text_of(name: str, package: str, most: int) -> bytes:
    """The first bytes of its files, one after the other by name; but for its tests, which not every Python has."""
    folder = Path(sysconfig.get_path("stdlib")) / package
    text = b""
    for file in sorted(folder.rglob("*.py")):
        if "test" not in file.relative_to(folder).parts:
            text += file.read_bytes()
        if len(text) >= most:
            break
    if len(text) < OF_PACKAGE:
        raise HarnessError(
            f"data: '{name}' is source code of Python's standard library, and '{folder}' has {len(text):,} bytes of "
            f"it, expected {OF_PACKAGE:,}; take data of your own, or a Python that has its sources"
        )
    return text[:most]


def check_tokens(name: str, info: DataInfo, input_shape: tuple[int, ...], vocabulary: "Vocabulary") -> None:
    """UsageError unless the model takes as many tokens as a piece of the data `name` has, or fewer, and every token."""
    most = (only(info.shape)[0] or 0) - vocabulary.next_token
    if len(input_shape) != 1 or input_shape[0] > most:
        raise UsageError(
            f"model: takes input of shape {input_shape}, expected (tokens,) of at most {most} for '{name}'"
        )
    if not (info.labelled or vocabulary.next_token):
        raise UsageError(f"model: it tells classes, and '{name}' has none; expected a model that tells the next token")
    if vocabulary.size < info.vocabulary:
        raise UsageError(
            f"model: its vocabulary has {vocabulary.size} tokens, expected those of '{name}', {info.vocabulary} or more"
        )


def cut(pieces: "tf.Tensor", labels: "tf.Tensor", tokens: int, next_token: bool) -> "tuple[tf.Tensor, tf.Tensor]":
    """Pieces [..., more] as int32 [..., tokens], with their classes int32 [...] or the next tokens [..., tokens]."""
    import tensorflow as tf

    numbers = tf.cast(pieces[..., : tokens + 1], tf.int32)
    return numbers[..., :tokens], numbers[..., 1:] if next_token else tf.cast(labels, tf.int32)


SOURCES = (
    Text("text", "bytes, cut to the model's tokens: ten classes, or the next byte", BYTES, _in_bytes),
    Text("tokens", "words and signs, the 20,000 most frequent, likewise, for larger models", MOST_FREQUENT, _in_words),
)
