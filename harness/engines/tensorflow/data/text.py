"""Text without a network: source code of Python's own standard library, as bytes."""

import functools
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.structures import only
from harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from harness.engines.tensorflow.workloads.base import Vocabulary

PACKAGES = (
    "asyncio", "email", "encodings", "http", "importlib", "logging", "multiprocessing", "unittest", "urllib", "xml",
)  # fmt: skip
"""Each is a class."""
PIECES = 400
"""Of each package."""
TOKENS = 1024
"""The most that a model can take; a piece has one byte more, the last token's next."""
STEP = 256
"""Bytes from the beginning of a piece to that of the next: for models of no more tokens pieces do not overlap."""
BYTES = 256


class Text(Source):
    """Pieces of 1,025 bytes; the class is the package that a piece is from. Another Python may have other text."""

    name = "text"
    summary = (
        "4,000 pieces of Python's own source code as bytes, cut to the model's tokens: ten classes, or the next byte"
    )
    gives = "text"

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return DataInfo((TOKENS + 1,), len(PACKAGES), PIECES * len(PACKAGES), BYTES)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(piece [1025] uint8, class [] int64), the classes in turn."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(_pieces())


@functools.cache
def _pieces() -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    import numpy as np

    of_each = [np.frombuffer(_text_of(package), np.uint8) for package in PACKAGES]
    starts = STEP * np.arange(PIECES)[:, None] + np.arange(TOKENS + 1)
    pieces = np.stack([text[starts] for text in of_each], axis=1)  # [pieces, packages, bytes]
    return pieces.reshape(-1, TOKENS + 1), np.tile(np.arange(len(PACKAGES)), PIECES)


def _text_of(package: str) -> bytes:
    """The first bytes of its files, one after the other by name."""
    folder, needed = Path(sysconfig.get_path("stdlib")) / package, STEP * (PIECES - 1) + TOKENS + 1
    text = b""
    for file in sorted(folder.rglob("*.py")):
        text += file.read_bytes()
        if len(text) >= needed:
            return text[:needed]
    raise HarnessError(
        f"data: 'text' is source code of Python's standard library, and '{folder}' has {len(text):,} bytes of it, "
        f"expected {needed:,}; take data of your own, or a Python that has its sources"
    )


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
    """Pieces [..., bytes] as int32 [..., tokens], with their classes int32 [...] or the next tokens [..., tokens]."""
    import tensorflow as tf

    numbers = tf.cast(pieces[..., : tokens + 1], tf.int32)
    return numbers[..., :tokens], numbers[..., 1:] if next_token else tf.cast(labels, tf.int32)


SOURCE = Text()
