"""TFRecord files of any source's examples. Which is in which file, and what is in it, follow from its number alone."""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.base import DataInfo, Source, length_of, state_of_pass
from harness.engines.tensorflow.data.folder import FolderSource
from harness.engines.tensorflow.data.own_batches import OwnBatches
from harness.engines.tensorflow.data.tfrecord import TfrecordSource
from harness.engines.tensorflow.structures import (
    ALONE,
    PARTS,
    Weighted,
    by_place,
    called,
    from_places,
    only,
    unweighted,
)
from harness.errors import StorageError, UsageError
from harness.protocol.preparing import Described, PrepareOrder, ReadingCompared, ShardPlan
from harness.record.files import replace_file, to_json
from harness.record.tfrecords import FEATURES, Feature, Features, ReadingSpeed, WrittenShard, by_its_place, side_file
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.protocol.state import Array

FORMAT = "1"
"""Of what is in a file: one that another version wrote otherwise is written anew."""
LISTS = {"int32": "int64", "int64": "int64", "uint32": "int64", "float32": "float"}
"""Types of numbers that an example has a list for; others are kept as bytes."""
RAW = ("bool", "uint8", "int8", "uint16", "int16", "float16", "float64")
NAMES = {"images": "image", "text": "tokens", "table": "row", "categories": "categories"}
IMAGES = (b"\xff\xd8\xff", b"\x89PNG")
"""How their files begin; whether the rest can be decoded shows when they are read."""
TURNS = 5
"""Of each way of reading, in turns."""
TURN_S = 0.3
"""About what a turn takes."""
_BLOCK_BYTES = 2**22
"""What of a file is read at a time."""


def prepare_files(order: PrepareOrder) -> Described | ReadingCompared | None:
    """See `harness.protocol.preparing.Preparer`."""
    import tensorflow as tf

    if order.do == "import":
        return None
    source, data_dir = load_source(order.source), Path(order.data_dir)
    with tf.device("CPU:0"), source.reading():
        if order.do == "describe":
            return describe(source, data_dir)
        if order.do == "compare":
            return compare(source, load_source(f"tfrecord:{order.target}"), data_dir)
        assert order.features is not None
        for group in order.groups:
            write_group(source, data_dir, Path(order.target), order.features, group)
    return None


def describe(source: Source, data_dir: Path) -> Described:
    """What files of the source's examples would hold, and its state; it is made ready, and examples are counted where
    nobody knows their number. UsageError where that cannot be."""
    if source.on_device:
        raise UsageError(f"source: '{source.name}' has no examples of its own, expected data that are read")
    if isinstance(source, OwnBatches):
        raise UsageError(
            f"source: '{source.name}' makes batches in an order of its own, expected a function without arguments, "
            "which gives examples one by one"
        )
    source.prepare(data_dir)
    sign_of_life()
    info, dataset = source.info(data_dir), source.read(data_dir, 1, True)
    tensors = _own_tensors(source, dataset) if source.gives == "own" else _tensors(source, info, dataset)
    state, counted = _state_and_count(source, data_dir, dataset, info.examples)
    features = Features(
        kind=source.gives,
        **tensors,
        classes=info.classes,
        vocabulary=info.vocabulary,
        examples=counted,
        names=_class_names(source),
    )
    return Described(features=features, state=f"{FORMAT} {state}")


def _class_names(source: Source) -> list[str]:
    if isinstance(source, TfrecordSource):
        return source.features.names
    return source.classes if isinstance(source, FolderSource) else []


def _state_and_count(source: Source, data_dir: Path, dataset: "tf.data.Dataset", told: int | None) -> tuple[str, int]:
    """The state of the source, and how many examples it has. Where nobody tells that, or a features.json does, which a
    person may have written, they are counted: a pass over them tells the state, too."""
    import tensorflow as tf

    if told is not None and not isinstance(source, TfrecordSource):
        state, count = source.state(data_dir), told
    elif int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise UsageError(f"source: '{source.name}' never ends, expected one pass over its examples")
    else:
        state, count = state_of_pass(dataset)
    if not count:
        raise UsageError(f"source: '{source.name}' has no examples")
    if told not in (None, count):
        raise UsageError(
            f"source: '{source.name}' has {count:,} examples, and its {FEATURES} says {told:,}; correct it there"
        )
    return state, count


def _own_tensors(source: Source, dataset: "tf.data.Dataset") -> dict[str, Any]:
    """Inputs, targets and weights of examples of the user's own, of which each may be a dict or tuple."""
    described: dict[str, Any] = {}
    for of, (key, has) in zip(PARTS, _parts_of(*dataset.element_spec).items(), strict=False):
        places = by_place(has)
        if not places or not all(map(_is_for_a_record, places.values())) or from_places(places) != has:
            raise UsageError(
                f"source: '{source.name}' gives no target, inputs of which more than the first size varies, or "
                "others than in dicts by names and in tuples; a record has none of these: train on it as it is, --data "
                "package.module:function"
            )
        features = {place: _own_tensor(source, key, place, one, called(of, place)) for place, one in places.items()}
        described[key] = features.get(ALONE, features)
    return described


def _own_tensor(source: Source, key: str, place: str, spec: Any, told: str) -> Feature:
    name = f"{key}/{place}".rstrip("/")
    if spec.dtype.name != "string":
        return _of_numbers(name, spec, spec.shape, told)
    assert isinstance(source, TfrecordSource)  # which alone has images in bytes, that are written as they are
    return by_its_place(getattr(source.features, key))[place].model_copy(update={"feature": name})


def _is_for_a_record(spec: Any) -> bool:
    """Whether what varies from example to example, if anything does, is the first size of a dense tensor."""
    import tensorflow as tf

    dense = isinstance(spec, tf.TensorSpec) or spec.ragged_rank == 0  # of one that is ragged as a batch only
    return dense and spec.shape.rank is not None and bool(spec.shape[1:].is_fully_defined())


def _parts_of(x: Any, y: Any) -> dict[str, Any]:
    """Those of an example, or of what describes it, by the key of a features.json."""
    if isinstance(y, Weighted):
        return {"input": x, "target": y.targets, "weights": y.weights}
    return {"input": x, "target": y}


def _tensors(source: Source, info: DataInfo, dataset: "tf.data.Dataset") -> dict[str, Any]:
    """The input of the harness's own examples, and the target where there is one."""
    x, y = dataset.element_spec
    name = "target" if info.numbers else "label"
    target = {"target": _of_numbers(name, y, y.shape, f"{name}s")} if info.labelled else {}
    return {"input": _input(source, info, x), **target}


def _input(source: Source, info: DataInfo, spec: Any) -> Feature:
    name = NAMES[source.gives]
    if source.encoded and isinstance(source, TfrecordSource):  # whose bytes are written as they are
        return source.features.only_input.model_copy(update={"feature": name})
    if spec.dtype.name == "string":  # still to be decoded
        return Feature(feature=name, encoding="image", shape=list(only(info.shape)))
    if not spec.shape.is_fully_defined():  # images that differ in size, which bytes alone would not tell
        return Feature(feature=name, encoding="image", shape=list(spec.shape))
    return _of_numbers(name, spec, spec.shape, f"{name}s")


def _of_numbers(name: str, spec: Any, shape: Any, told: str) -> Feature:
    kind = spec.dtype.name
    if kind not in (*LISTS, *RAW):
        raise UsageError(f"source: its {told} are of {kind}, expected one of {', '.join((*LISTS, *RAW))}")
    return Feature(feature=name, encoding=LISTS.get(kind, "raw"), dtype=kind, shape=list(shape))


def write_group(source: Source, data_dir: Path, target: Path, features: Features, group: Sequence[ShardPlan]) -> None:
    """Write the files of a group, in one pass from the first one's first example to the last one's last.

    Raises StorageError where `target` takes no files, UsageError for an example that cannot be written.
    """
    first, end = group[0].first, group[-1].first + group[-1].examples
    part = source.part(data_dir, first, end - first)
    position = 0 if part is None else first
    examples = iter((source.read(data_dir, 1, True) if part is None else part).as_numpy_iterator())
    for plan in group:
        while position < plan.first:  # of others' files, or of those that are whole already
            next(examples)
            position += 1
            sign_of_life(position)
        _write_file(target, features, plan, examples, source)
        position += plan.examples


def _write_file(target: Path, features: Features, plan: ShardPlan, examples: Iterator[Any], source: Source) -> None:
    """One file, whole or not at all: under another name until it is on the disk."""
    import tensorflow as tf

    part = target / f".{plan.file}.{os.getpid()}.part"
    encode, taken = _encoder(features, source), 0
    options = tf.io.TFRecordOptions("" if features.compression == "none" else features.compression.upper())
    try:
        with tf.io.TFRecordWriter(str(part), options) as out:
            for number in range(plan.first, plan.first + plan.examples):
                record, size = encode(number, *next(examples))
                out.write(record)
                taken += size
                sign_of_life(number + 1)
        digest, size = _on_disk(part)
        part.replace(target / plan.file)
        shard = WrittenShard(file=plan.file, examples=plan.examples, bytes=size, sha256=digest, bytes_in=taken)
        replace_file(side_file(target, plan.file), to_json(shard))
    except OSError as error:
        raise _unwritable(target, error.strerror or str(error)) from error
    except tf.errors.OpError as error:
        if "GetNext" in str(error):  # the source could not be read, which it says itself
            raise
        raise _unwritable(target, error.message.partition("; ")[2] or error.message) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _unwritable(target: Path, reason: str) -> StorageError:
    return StorageError(f"target: cannot write to '{target}': {reason}")


def _on_disk(file: Path) -> tuple[str, int]:
    """SHA-256 and size of a file, once it is on the disk."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            sign_of_life()
        return digest.hexdigest(), stream.tell()


def _encoder(features: Features, source: Source) -> Callable[[int, Any, Any], tuple[bytes, int]]:
    """(number, input, target) -> the record, whose bytes are the same in every process, and what was taken in."""
    import tensorflow as tf

    described = {"input": features.input, "target": features.target, "weights": features.weights}

    def refuse(number: int, fault: str) -> UsageError:
        file = f" ('{source.file_of(number)}')" if isinstance(source, FolderSource) else ""
        return UsageError(f"source: example {number:,}{file} {fault}")

    def encode(number: int, x: Any, y: Any) -> tuple[bytes, int]:
        label = unweighted(y)
        one_number = isinstance(features.target, Feature) and not features.target.shape
        if features.classes and one_number and not 0 <= int(label) < features.classes:
            raise refuse(number, f"is of class {label}, expected 0 to {features.classes - 1}")
        held, size = {}, 0
        for key, part in _parts_of(x, y).items():
            values = by_place(part) if isinstance(part, dict | tuple) else {ALONE: part}
            size += sum(len(value) if isinstance(value, bytes) else value.nbytes for value in values.values())
            for place, of in by_its_place(described[key]).items():
                if of.encoding == "image" and not _may_be_image(values[place]):
                    raise refuse(number, "is no JPEG or PNG; mend or remove it")
                held[of.feature] = _packed(of, values[place])
        example = tf.train.Example(features=tf.train.Features(feature=held))
        return example.SerializeToString(deterministic=True), size

    return encode


def _may_be_image(x: "bytes | Array") -> bool:
    """Whether it begins as one that is encoded, or is none yet."""
    return not isinstance(x, bytes) or x.startswith(IMAGES)


def _packed(of: Feature, value: "bytes | Array") -> "tf.train.Feature":
    import numpy as np
    import tensorflow as tf

    if of.encoding == "int64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=np.ravel(value)))
    if of.encoding == "float":
        return tf.train.Feature(float_list=tf.train.FloatList(value=np.ravel(value)))
    if isinstance(value, bytes):
        data = value
    elif of.encoding == "image":
        data = tf.io.encode_png(value).numpy()  # nothing of it is lost
    else:
        data = value.astype(value.dtype.newbyteorder("<")).tobytes()
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))


def compare(source: Source, files: Source, data_dir: Path) -> ReadingCompared:
    """Examples a second of both, by this process: the same first examples, read and decoded, in turns."""
    passes = {name: _pass_over(of, data_dir) for name, of in (("source", source), ("files", files))}
    count = min(_fitting_count(passes["source"]), _fitting_count(passes["files"]))
    speeds: dict[str, list[float]] = {"source": [], "files": []}
    for turn in range(TURNS):
        for name in ("source", "files") if turn % 2 == 0 else ("files", "source"):
            done, seconds = _timed(passes[name], count)
            speeds[name].append(done / seconds)
    read = {name: ReadingSpeed(examples=count, examples_per_s=taken) for name, taken in speeds.items()}
    return ReadingCompared(source=read["source"], files=read["files"])


def _pass_over(source: Source, data_dir: Path) -> "tf.data.Dataset":
    """Its examples as a pipeline has them before they are brought to a model's size."""
    import tensorflow as tf

    dataset = source.examples(data_dir)
    if source.encoded:
        decoded = tf.autograph.experimental.do_not_convert(lambda x, y: (source.decoded(x), y))
        dataset = dataset.map(decoded, num_parallel_calls=tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.autotune.enabled = False  # as in a trial
    return dataset.with_options(options)


def _fitting_count(dataset: "tf.data.Dataset") -> int:
    """As many examples as take about TURN_S, or all. What is read for it is in memory afterwards."""
    count = 64
    while True:
        done, seconds = _timed(dataset, count)
        if done < count or seconds > TURN_S / 2:
            return max(1, min(done, int(done * TURN_S / seconds)))
        count *= 4


def _timed(dataset: "tf.data.Dataset", count: int) -> tuple[int, float]:
    """How many of the first `count` examples there are, and the seconds that reading them took."""
    began = time.perf_counter()
    done = length_of(dataset.take(count))
    return done, time.perf_counter() - began
