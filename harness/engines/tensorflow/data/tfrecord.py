"""`tfrecord:GLOB`: files of `tf.train.Example`, whose features the features.json beside them describes."""

import contextlib
import functools
import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.arguments import path_of
from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.records import fault_of, may_hold_records, records, told_as_fault
from harness.engines.tensorflow.structures import Weighted, by_place, from_places, one_or_several, unweighted
from harness.errors import UsageError
from harness.files import read_whole
from harness.record.tfrecords import FEATURES, ONE_TENSOR, SEVERAL_TENSORS, Feature, Features, by_its_place
from harness.visible import plural, quoted

if TYPE_CHECKING:
    import tensorflow as tf

PREFIX = "tfrecord:"
DAMAGED = re.compile(r"truncated record|corrupted record|[Ii]nflate")
"""What TensorFlow says where records cannot be read."""
LARGEST = 2**24
"""Bytes of a features.json; that of a hundred thousand shards is less."""
LOOKED_THROUGH = 10_000
"""Examples, at most, for a feature of varying length, of which one without it has none: it is read as empty."""
EXPECTED = f"expected examples as {FEATURES} says"
HOW = "docs/how-to.md, TFRecord files, has examples"


class TfrecordSource(Source):
    """The examples of all files that match, one file after the other by name."""

    cut_by = f"cut it by most in {FEATURES}"

    def __init__(self, pattern: str) -> None:
        """UsageError where no file matches, or what is beside them is no description of them."""
        self.name = PREFIX + pattern
        self.summary = f"the examples of '{pattern}'"
        with _looked_at(self.name):
            self.files = matching(pattern)
            self.features = features_beside(self.files)
            fault = _fault_of_files(self.files, self.features)
        if fault:
            raise UsageError(f"data: '{self.name}': {fault}")
        listed = {shard.file: shard for shard in self.features.shards}
        self._shards = [listed[file.name] for file in self.files if file.name in listed]
        self.gives = self.features.kind
        self.encoded = self.gives != "own" and self.features.only_input.encoding in ("image", "raw")
        self.holds_images = self.gives == "own" and any(of.encoding == "image" for of in self.features.tensors)

    def prepare(self, data_dir: Path) -> None:
        """Read an example, so that features which the files do not have are told before anything is trained."""
        import tensorflow as tf

        with self.reading(), tf.device("CPU:0"):
            self.decoded(next(iter(self.examples(data_dir)))[0])
            lacking, looked = self._lacking()
        if lacking:
            told = f"none of the first {looked:,} examples has the feature '{min(lacking)}'"
            raise UsageError(f"data: '{self.name}': {told}; {EXPECTED}")

    def _lacking(self) -> tuple[set[str], int]:
        """Features of varying length that the first examples lack, which the parser would read as empty ones, and how
        many were looked at."""
        import tensorflow as tf

        lacking = {of.feature for of in self.features.tensors if of.encoding in ("int64", "float") and None in of.shape}
        looked = 0
        if lacking:
            for record in records([str(file) for file in self.files], self._compression).take(LOOKED_THROUGH):
                lacking.difference_update(tf.train.Example.FromString(record.numpy()).features.feature)
                looked += 1
                if not lacking:
                    break
        return lacking, looked

    def info(self, data_dir: Path) -> DataInfo:
        """As features.json says; of prepared files the examples of those that match, of others' where all do."""
        features, counted = self.features, sum(shard.examples for shard in self._shards)
        count = counted or (features.examples if features.examples and self._are_all else None)
        shapes = {place: tuple(of.shape) for place, of in by_its_place(features.input).items()}
        labelled = features.target is not None
        return DataInfo(
            one_or_several(shapes), features.classes, count, features.vocabulary, labelled, features.numbers
        )

    @functools.cached_property
    def _are_all(self) -> bool:
        """Whether no other file of their folder looks like one with examples."""
        others = set(self.files[0].parent.glob("[!.]*")) - set(self.files)
        return not any(may_hold_records(file, self.features.compression) for file in others)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(input, target): images still to be decoded, those of one's own, of which each may be several, as the model
        is to have them."""
        return self._parsed(1, True)

    def interleaved(self, data_dir: Path, files: int, in_order: bool) -> "tf.data.Dataset":
        """The same of so many files side by side."""
        return self._parsed(files, in_order)

    def read(self, data_dir: Path, files: int, in_order: bool) -> "tf.data.Dataset":
        """Of images among other features their bytes, which are decoded apart from the rest."""
        return self._parsed(files, in_order, images=not self.holds_images)

    def with_images(self, x: Any, y: Any) -> Any:
        """The example as `examples` has it."""
        features = self.features
        targets = self._of_classes(_decoded(features.target, unweighted(y)))
        weighted = Weighted(targets, _decoded(features.weights, y.weights)) if isinstance(y, Weighted) else targets
        return _decoded(features.input, x), weighted

    def decoded(self, x: "tf.Tensor") -> "tf.Tensor":
        """The image, or the tensor of its bytes."""
        return self._input(x) if self.encoded else x

    def _input(self, value: "tf.Tensor") -> "tf.Tensor":
        """What the one input's parsed feature holds; of text or categories only those that there are."""
        of, one = self.features.only_input, {"text": "token", "categories": "category"}.get(self.gives)
        below = self.features.vocabulary if one else 0
        return _in_range(_unpacked(of, value), below, f"{of.feature} has a {one} that is not")

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """What goes wrong with an example names the file where it is one's fault."""
        return told_as_fault(self.name, EXPECTED, "expected examples in its files", self._damaged)

    def _damaged(self, raised: str) -> Iterator[str | None]:
        """What is wrong with each file that cannot be read to its end, where one may be damaged. Reads them."""
        return (fault_of(str(file), self._compression) for file in self.files if DAMAGED.search(raised))

    @property
    def _compression(self) -> str:
        return "" if self.features.compression == "none" else self.features.compression.upper()

    def _of_classes(self, targets: Any) -> Any:
        """Targets as they are; reading one that is no class, where these are known, is an error."""
        of = self.features.target
        return (
            _in_range(targets, self.features.classes, f"{of.feature} is no class")
            if isinstance(of, Feature)
            else targets
        )

    def _parsed(self, files: int, in_order: bool, images: bool = True) -> "tf.data.Dataset":
        """Examples of so many files side by side; `own` ones with `images`, or with their bytes."""
        import tensorflow as tf

        features = self.features
        form = {of.feature: _form(of) for of in features.tensors}

        @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
        def parsed(record: Any) -> Any:
            example = tf.io.parse_single_example(record, form)
            if features.kind == "own":
                x = _made(features.input, example, images)
            else:
                x = example[features.only_input.feature]
                x = x if self.encoded else self._input(x)
            if features.target is None:
                return x, tf.zeros([], tf.int64)
            y = _made(features.target, example, images)
            y = self._of_classes(y) if images else y
            return x, y if features.weights is None else Weighted(y, _made(features.weights, example, images))

        return records([str(file) for file in self.files], self._compression, files, in_order).map(parsed)


@contextlib.contextmanager
def _looked_at(name: str) -> Iterator[None]:
    """UsageError for a longer name than there may be, and for a folder of somebody else's."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"data: '{name}' cannot be read: {error.strerror or error}") from None


def _form(of: Feature) -> Any:
    """How TensorFlow's parser reads a feature."""
    import tensorflow as tf

    if of.encoding in ("image", "raw"):
        return tf.io.FixedLenFeature([], tf.string)
    kind = tf.int64 if of.encoding == "int64" else tf.float32
    if None in of.shape:
        return tf.io.FixedLenSequenceFeature(of.shape[1:], kind, allow_missing=True)
    return tf.io.FixedLenFeature(of.shape, kind)


def _unpacked(of: Feature, value: "tf.Tensor") -> "tf.Tensor":
    """The tensor that a parsed feature holds, of its type and shape."""
    import tensorflow as tf

    if of.encoding == "image":
        return tf.ensure_shape(tf.io.decode_image(value, channels=of.shape[2], expand_animations=False), of.shape)
    kind = tf.dtypes.as_dtype(of.dtype)
    if of.encoding == "raw":
        sizes = [-1 if size is None else size for size in of.shape]
        unpacked = tf.ensure_shape(tf.reshape(tf.io.decode_raw(value, kind), sizes), of.shape)
    else:
        unpacked = tf.cast(value, kind)
    return unpacked[: of.most] if of.most else unpacked


def _made(of: Feature | dict[str, Feature], example: "dict[str, tf.Tensor]", images: bool) -> Any:
    """The tensor of a parsed example, or the dict or tuple of several; `images`, or their bytes."""
    return from_places(
        {
            place: _unpacked(one, example[one.feature]) if images or one.encoding != "image" else example[one.feature]
            for place, one in by_its_place(of).items()
        }
    )


def _decoded(of: Feature | dict[str, Feature] | None, made: Any) -> Any:
    """What was `_made` of these features without images, with them."""
    features = by_its_place(of)
    return from_places(
        {
            place: _unpacked(features[place], part) if features[place].encoding == "image" else part
            for place, part in by_place(made).items()
        }
    )


def _in_range(values: "tf.Tensor", count: int, told: str) -> "tf.Tensor":
    """Classes or tokens as they are; reading one that is not below `count`, where that is known, is an error."""
    import tensorflow as tf

    if not count or values.dtype.max < count:
        return values
    least, largest = tf.reduce_min(values), tf.reduce_max(values)
    right = (least >= 0) & (largest < tf.cast(count, values.dtype))
    wrong = tf.where(least < 0, least, largest)
    with tf.control_dependencies([tf.debugging.Assert(right, [f"{told} from 0 to {count - 1}:", wrong])]):
        return tf.identity(values)


def matching(pattern: str) -> list[Path]:
    """The files that `pattern` stands for, by name: a folder's own TFRecord files, or what matches. UsageError where
    there is none, or where they lie in several folders; OSError where they may not be looked at."""
    name, place = PREFIX + pattern, path_of("data", pattern)
    if place.is_dir() and (listed := _listed(place)):
        return listed
    found = place.glob("*.tfrecord*") if place.is_dir() else map(Path, glob.glob(str(place), recursive=True))  # noqa: PTH207  Path.glob takes no absolute pattern
    files = sorted(file for file in found if file.is_file() and file.name != FEATURES)
    if not files:
        raise UsageError(f"data: '{name}' matches no file, seen from '{Path.cwd()}'; give a folder or a pattern")
    if len(folders := {file.parent for file in files}) > 1:
        raise UsageError(
            f"data: '{name}' matches files in {len(folders)} folders, expected those of one, with its {FEATURES}"
        )
    return files


def _listed(folder: Path) -> list[Path]:
    """The shards of a prepared data set, whether they are there or not."""
    with contextlib.suppress(UsageError):
        return [folder / shard.file for shard in read_features(folder).shards]
    return []


def features_beside(files: Sequence[Path]) -> Features:
    """What the features.json in the files' folder says; UsageError where it says nothing."""
    return read_features(files[0].parent)


def read_features(folder: Path) -> Features:
    """The features.json of a folder; UsageError where there is none, or one that describes nothing."""
    path = folder / FEATURES
    try:
        stat = path.stat()
    except OSError:
        raise UsageError(
            f"data: there is no '{path}', which says what the files hold; write one ({HOW}), or make the files by "
            "python -m harness prepare"
        ) from None
    return _read(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=16)
def _read(path: Path, _changed_ns: int, _size: int) -> Features:
    try:
        data = read_whole(path, LARGEST)
        if b"tensorflow_datasets.core" in data:
            raise UsageError(f"data: '{path}' is of TensorFlow Datasets, which reads it itself: --data tfds:NAME")
        return Features.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(key) for key in first["loc"] if key not in (ONE_TENSOR, SEVERAL_TENSORS)) or "the whole"
        echoed = first["type"] not in ("missing", "value_error", "json_invalid")
        given = f" (given {quoted(first['input'])})" if echoed else ""
        raise UsageError(f"data: '{path}': {where}: {first['msg']}{given}; {HOW}") from None
    except OSError as error:
        raise UsageError(f"data: '{path}' cannot be read: {error.strerror or error}") from None


def _fault_of_files(files: Sequence[Path], features: Features) -> str | None:
    """What is wrong with prepared files, as far as their names, sizes and numbers of examples tell; None where nothing
    is."""
    listed = {shard.file: shard for shard in features.shards}
    again = "prepare it again"
    counted = sum(shard.examples for shard in features.shards)
    if listed and features.examples not in (None, counted):
        told = f"its {FEATURES} says {features.examples:,} examples, and its shards have {counted:,}"
        return f"{told}; correct it, or {again}"
    for file in files if listed else ():
        if file.name not in listed:
            return f"'{file}' is not among the {plural(len(listed), 'file')} of its {FEATURES}; remove it, or {again}"
        if not file.is_file():
            return f"'{file}' is missing; {again}"
        expected, size = listed[file.name].bytes, file.stat().st_size
        if size != expected:
            return f"'{file}' has {size:,} bytes, expected {expected:,}: it is cut short or another one; {again}"
    return None


def kind_here(name: str) -> str:
    """The kind of its examples; `anything` where the files are on other hosts only, which will say."""
    try:
        return TfrecordSource(name.removeprefix(PREFIX)).gives
    except UsageError:
        return "anything"
