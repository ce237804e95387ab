"""Reading TFRecord files: several side by side, and what to say where one cannot be read."""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.engines.tensorflow.ending import OF_INPUT, classify
from harness.errors import UsageError

if TYPE_CHECKING:
    import tensorflow as tf

WHERE = re.compile(r"\{\{.*?\}\}\s*|Error in user-defined function passed to .*? with iterator: \S+: ")
"""Where in a program TensorFlow met what it tells of, said before it."""
BEHIND = re.compile(r"\s*(?:\nTraceback|\[\[|\[Op:).*", re.DOTALL)
"""The same behind it."""
ASSERTED = re.compile(r"assertion failed: \[(.*?)\] \[(.*?)\].*", re.DOTALL)
"""How TensorFlow says what an assertion says, and of which value."""
LONGEST = 300
"""Characters of what is told."""


def records(files: Sequence[str], compression: str = "", at_once: int = 1, in_order: bool = True) -> "tf.data.Dataset":
    """The records of the files, one file after the other; or of `at_once` files side by side, one of each in turn."""
    import tensorflow as tf

    if at_once <= 1:
        return tf.data.TFRecordDataset(list(files), compression_type=compression)
    return tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        tf.autograph.experimental.do_not_convert(
            lambda file: tf.data.TFRecordDataset(file, compression_type=compression)
        ),
        cycle_length=at_once,
        block_length=1,
        num_parallel_calls=at_once,
        deterministic=in_order,
    )


@contextlib.contextmanager
def told_as_fault(
    name: str, expected: str, ended: str, faults: Callable[[str], Iterable[str | None]] = lambda _: ()
) -> Iterator[None]:
    """What reading an example of the source `name` raises, or an end before its time (`ended` says what was expected
    instead), becomes a UsageError of one line; `faults` of what was raised are looked through for the file that
    is to blame, for SEARCH_S at most. All else stays as it is."""
    import tensorflow as tf

    try:
        yield
    except (StopIteration, tf.errors.OutOfRangeError) as error:
        raise UsageError(f"data: '{name}' ended before its time, {ended}") from error
    except tf.errors.OpError as error:
        text = str(error)
        status, reason = classify(error)
        if status != "crashed" or not OF_INPUT.search(text):
            raise
        if fault := _first(faults(text)):
            raise UsageError(f"data: '{name}': {fault}") from error
        told = reason if text.startswith("Graph") else " ".join(BEHIND.sub("", text).split())
        told = ASSERTED.sub(r"\1 \2", WHERE.sub("", told)).rstrip(".")[:LONGEST]
        raise UsageError(f"data: '{name}': an example cannot be read: {told}; {expected}") from error


SEARCH_S = 30.0
"""A trial that is silent for longer may be taken for one that hangs."""


def _first(faults: Iterable[str | None]) -> str | None:
    deadline = time.monotonic() + SEARCH_S
    for fault in faults:
        if fault is not None or time.monotonic() > deadline:
            return fault
    return None


MAGIC = {b"\x1f\x8b": "gzip", b"\x78\x01": "zlib", b"\x78\x9c": "zlib", b"\x78\xda": "zlib"}
"""How compressed files begin."""
LENGTH_BYTES, OTHER_BYTES = 8, 16
"""A record begins with its length in so many, and has as many beside its data: these and two checksums."""


def may_hold_records(file: Path, compression: str) -> bool:
    """Whether a file is compressed so, or begins with the length of a record that fits into it, which no text does."""
    try:
        if not file.is_file():
            return False
        with file.open("rb") as stream:
            begins = stream.read(LENGTH_BYTES)
        if compression != "none":
            return MAGIC.get(begins[:2]) == compression
        return 0 < int.from_bytes(begins, "little") <= file.stat().st_size - OTHER_BYTES
    except OSError:  # which nobody may look into
        return True


def fault_of(file: str, compression: str) -> str | None:
    """Why not all records of the file can be read, and after how many; None where they can. Reads it once."""
    import tensorflow as tf

    count = 0
    try:
        with tf.device("CPU:0"):
            for _ in tf.data.TFRecordDataset(file, compression_type=compression):
                count += 1
    except tf.errors.OpError as error:
        with open(file, "rb") as stream:  # noqa: PTH123  of a path that TensorFlow was given
            looks = MAGIC.get(stream.read(2), "none")
        if count == 0 and looks != (compression.lower() or "none") and "none" in (looks, compression.lower() or "none"):
            return f"'{file}' is no such file: its compression is {looks}, and its features.json says otherwise"
        where = re.search(r"(\w+) record at (\d+)", error.message)
        told = f"{where[1]} record at byte {int(where[2]):,}" if where else WHERE.sub("", BEHIND.sub("", error.message))
        return f"'{file}' is cut short or damaged: {told}, after {count:,} whole ones; get or prepare it again"
    return None
