"""TensorFlow Datasets on disk: opening, reading, locking. Never asks a network for anything."""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.files import descriptor_of, lock_within, read_whole
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    import tensorflow as tf

TRAIN = "train"
WAIT_LIMIT_S = 3000.0
"""For another process, which may be downloading. The sweep gives the whole an hour, and is to be told why it failed."""
SEAL = "digests.json"
LARGEST_FILE = 2**24
"""Bytes of a file of ours, which a seal is of."""
TELL: ContextVar[Callable[[str], None]] = ContextVar("TELL", default=lambda words: print(words, file=sys.stderr))
"""How a person learns what is waited for: a trial has its parent say it."""


def import_tfds() -> Any:
    """The `tensorflow_datasets` module, without progress bars; HarnessError when it cannot be imported."""
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise HarnessError(
            f"data: cannot import tensorflow_datasets ({error}); pip install tensorflow-datasets importlib_resources"
        ) from error
    tfds.disable_progress_bar()
    return tfds


def unusable(data_dir: Path, error: Exception) -> HarnessError:
    """The error for a folder that data cannot be written to."""
    reason = (getattr(error, "strerror", None) or str(error)).partition("\n")[0]
    return HarnessError(f"data_dir: cannot write to '{data_dir}': {reason}; mend that or name another folder")


def not_prepared(name: str, data_dir: Path) -> HarnessError:
    """The error for data that are to be read and are not there yet."""
    return HarnessError(f"data: '{name}' is not prepared under '{data_dir}'; a sweep does that when it starts")


def behind(error: Exception) -> Exception:
    """What really failed: tensorflow-datasets raises some exceptions again as a RuntimeError."""
    cause = error.__cause__
    return cause if type(error) is RuntimeError and isinstance(cause, Exception) else error


@contextlib.contextmanager
def locked(data_dir: Path, name: str) -> Iterator[None]:
    """Hold `name`'s lock under `data_dir` against other processes; the system frees it if we are killed.

    HarnessError where nothing can be written there.
    """
    path = data_dir
    with contextlib.ExitStack() as stack:
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            path = data_dir / f".{name}.lock"
            lock = descriptor_of(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
            stack.callback(os.close, lock)
            _await(lock, path)
        except OSError as error:
            raise unusable(path, error) from error
        yield


def _await(lock: int, path: Path) -> None:
    """Take the lock, and say so where another process has it first. Raises HarnessError where it keeps it."""
    if not lock_within(lock, WAIT_LIMIT_S, lambda: TELL.get()(f"waiting for another process, which holds '{path}'")):
        held = f"data_dir: another process has held '{path}' for {WAIT_LIMIT_S:g} s"
        raise HarnessError(f"{held}: wait for it, or stop it")


@functools.cache
def opened(folder: Path) -> Any:
    """The builder of the data set prepared in `folder`, read from its metadata alone.

    Kept for the process, because the gate and the pipeline both want it. Raises HarnessError when
    the folder holds no such thing.
    """
    tfds = import_tfds()
    try:
        return tfds.builder_from_directory(str(folder))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise HarnessError(f"data: '{folder}' is no readable data set ({reason}); delete it and run again") from error


def read(folder: Path, *names: str) -> "tf.data.Dataset":
    """One pass over the train split in `folder` in file order: (image, label), the features of these names, or without
    them (input, target) as the data set has it.

    Made once a process, except within a function that is being traced: a data set of outside would be an input of that
    function. Where the function runs on another worker, TensorFlow sends its inputs there, and now and then fails to
    read such a one: "Unable to parse tensor proto".
    """
    import tensorflow as tf

    return _read_once(folder, *names) if tf.executing_eagerly() else _read(folder, *names)


@functools.cache
def _read_once(folder: Path, *names: str) -> "tf.data.Dataset":
    return _read(folder, *names)


def _read(folder: Path, *names: str) -> "tf.data.Dataset":
    import tensorflow as tf

    builder = opened(folder)
    if not names or builder.info.supervised_keys == names:
        return _in_file_order(builder, as_supervised=True)
    image, label = names
    only = import_tfds().decode.PartialDecoding({image: True, label: True})
    examples = _in_file_order(builder, decoders=only)
    return examples.map(tf.autograph.experimental.do_not_convert(lambda example: (example[image], example[label])))


def _in_file_order(builder: Any, **how: Any) -> "tf.data.Dataset":
    # Caching and prefetching belong to the pipeline, which does them once and after resizing.
    config = import_tfds().ReadConfig(try_autocache=False, skip_prefetch=True)
    return builder.as_dataset(split=TRAIN, read_config=config, **how)


def read_part(folder: Path, image: str, label: str, first: int, count: int) -> "tf.data.Dataset":
    """The `count` examples from number `first` on of what `read` gives of these features, which decodes all those
    before them, too."""
    import tensorflow as tf

    decode, builder = import_tfds().decode, opened(folder)
    feature = builder.info.features[image]
    encoded = decode.PartialDecoding({image: True, label: True}, decoders={image: decode.SkipDecoding()})
    examples = _in_file_order(builder, decoders=encoded).skip(first).take(count)
    decoded = tf.autograph.experimental.do_not_convert(
        lambda example: (feature.decode_example(example[image]), example[label])
    )
    return examples.map(decoded, num_parallel_calls=tf.data.AUTOTUNE)


def forget() -> None:
    """Drop what `opened` and `read` keep: the files have changed."""
    opened.cache_clear()
    _read_once.cache_clear()


def write_once(data_dir: Path, name: str, folder: Path, left: Path, write: Callable[[], None]) -> None:
    """Let `write` make what is in `folder`, unless it is there and whole; it is whole once it is sealed.

    What a killed process or a bad disk has left under `left` is removed first. HarnessError where `data_dir` cannot be
    written to.
    """
    import tensorflow as tf

    if _is_whole(folder):
        return
    with locked(data_dir, name):
        if _is_whole(folder):  # another process was first
            return
        try:
            shutil.rmtree(left, ignore_errors=True)
            write()
            (folder / SEAL).write_text(json.dumps(_digests(folder), indent=1), encoding="utf-8")
        except (OSError, RuntimeError, tf.errors.OpError) as error:
            if not isinstance(behind(error), OSError | tf.errors.OpError):
                raise
            raise unusable(data_dir, behind(error)) from error
        forget()


def _is_whole(folder: Path) -> bool:
    """Whether every file is as it was when it was sealed. A missing seal means that writing did not end."""
    try:
        sealed = json.loads(read_whole(folder / SEAL, LARGEST_FILE))
        return bool(sealed == _digests(folder))
    except (OSError, ValueError, RecursionError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.name != SEAL)
    return {path.name: hashlib.sha256(read_whole(path, LARGEST_FILE)).hexdigest() for path in files}


def state_of_files(files: Sequence[str]) -> str:
    """A digest of names, sizes and times of change, in this order: files that are written anew have another."""
    listed = []
    for file in files:
        of = Path(file).stat()
        listed.append((file, of.st_size, of.st_mtime_ns))
        sign_of_life()  # of a million files on a slow disk it takes minutes
    return hashlib.sha256(repr(listed).encode()).hexdigest()
