"""Real text without a network: the documentation that Python itself carries (`pydoc_data`), as bytes."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source, Tokens
from harness.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

CLASSES = 10
"""A text's class is which tenth of the whole it is from."""
BYTES = 256


class Text(Source):
    """Pieces of it, as long as the model takes. Which version of Python is installed says how much there is."""

    name = "text"
    summary = "some 0.7 MB of documentation that Python carries, as bytes: the next one, or which tenth a piece is from"
    images = False

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens

    def fitting(self, tokens: Tokens | None) -> Source:
        """Pieces of as many bytes as the model has tokens."""
        if tokens is None:
            raise UsageError("data: 'text' goes with a model of tokens, expected --model gpt, bert or lstm")
        if tokens.vocabulary < BYTES:
            raise UsageError(
                f"model: has {tokens.vocabulary} tokens, and data 'text' are bytes: give vocabulary={BYTES}"
            )
        return Text(tokens)

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Pieces of the model's length."""
        count = 0 if self._tokens is None else self._tokens.count
        return DataInfo((count,), CLASSES, (len(_text()) - 1) // count if count else None)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(bytes [count] int32, the byte after each [count] int32, or which tenth of the text [] int32)."""
        import numpy as np
        import tensorflow as tf

        assert self._tokens is not None, "a model says how long a piece is"
        text, count = _text(), self._tokens.count
        pieces = (len(text) - 1) // count
        x = text[: pieces * count].reshape(pieces, count)
        tenth = (np.arange(pieces) * CLASSES // pieces).astype(np.int32)
        y = text[1 : pieces * count + 1].reshape(pieces, count) if self._tokens.each else tenth
        return tf.data.Dataset.from_tensor_slices((x, y))


@functools.cache
def _text() -> "np.ndarray[Any, Any]":
    """All of it as int32, topic after topic in the order of their names."""
    from pydoc_data.topics import topics

    import numpy as np

    whole = "\n".join(topics[name] for name in sorted(topics)).encode()
    return np.frombuffer(whole, np.uint8).astype(np.int32)


SOURCE = Text()
