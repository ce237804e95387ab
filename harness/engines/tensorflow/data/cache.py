"""Where decoded examples are kept for the next pass: in memory, or in a file of the process that reads them."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import length_of
from harness.errors import UsageError
from harness.files import lives

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.spec.values import Cache

PREFIX = "examples-"


def cached(
    examples: "tf.data.Dataset", kind: "Cache", name: str, count: int | None, scratch: str, at_once: bool
) -> "tf.data.Dataset":
    """`examples` with a cache of one kind behind them; `none` has none, `auto` is memory.

    Where it is to be filled `at_once`, that is done here, but for a function that is being traced: there the first pass
    fills it. UsageError where nobody knows the `count` of examples, of which there may be no end.
    """
    import tensorflow as tf

    if kind == "none":
        return examples
    if count is None:
        raise UsageError(
            f"cache: '{name}' does not say how many examples it has, and a cache of endless ones is never full; "
            "tf.data.experimental.assert_cardinality says it, or leave the flag out"
        )
    kept = examples.cache(_file_in(scratch or tempfile.gettempdir()) if kind == "file" else "")
    if at_once and tf.executing_eagerly():
        with tf.device("CPU:0"):
            length_of(kept)
    return kept


def _file_in(folder: str) -> str:
    """A name of this process's own. Each file is as large as the data: those of processes that are gone are deleted."""
    for left in Path(folder).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if not lives(left.name.split("-")[1].split(".")[0]):
                left.unlink()
    own = f"{PREFIX}{os.getpid()}"
    return str(Path(folder) / f"{own}-{len(list(Path(folder).glob(f'{own}-*.index')))}")
