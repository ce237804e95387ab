"""What TFRecord files hold: the features.json beside them, which `harness prepare` writes, or who has files already."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, SerializerFunctionWrapHandler, Tag, model_serializer, model_validator

from harness.record.model import RecordModel, without_empty
from harness.spec.values import FileCompression, Positive, Whole

FEATURES = "features.json"
"""The name of the file, beside those that it is about."""

Encoding = Literal["image", "raw", "int64", "float"]
NumberType = Literal[
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float16", "float32", "float64"
]
IN_BYTES = tuple(kind for kind in get_args(NumberType) if kind != "uint32")
"""Types that `raw` holds: TensorFlow makes no others out of bytes."""
OF_ENCODING: dict[str, NumberType] = {"image": "uint8", "raw": "uint8", "int64": "int64", "float": "float32"}
"""The type of a tensor's numbers where the file does not say it."""


class Feature(RecordModel):
    """One tensor of an example, and how a feature of a `tf.train.Example` holds it."""

    feature: Annotated[str, Field(min_length=1)]
    """Its name in the example."""
    encoding: Encoding
    """`image`: the bytes of a JPEG or PNG; `raw`: those of the tensor, row by row and little-endian; `int64`, `float`:
    a list of numbers."""
    shape: list[Positive | None] = []
    """Of the tensor; None is a height or width that differs from image to image, or the first size of an `own` input
    that differs from example to example."""
    dtype: NumberType = "uint8"
    most: Whole = 0
    """Of an input whose first size is None: what is behind so many is cut off where it is read; 0 cuts nothing."""

    @model_serializer(mode="wrap")
    def _without_what_cuts_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(write(self), "most")

    @model_validator(mode="before")
    @classmethod
    def _of_its_encoding(cls, given: Any) -> Any:
        if isinstance(given, dict) and "dtype" not in given and given.get("encoding") in OF_ENCODING:
            return {**given, "dtype": OF_ENCODING[given["encoding"]]}
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.encoding == "image":
            if len(self.shape) != 3 or self.shape[2] not in (1, 3, 4) or self.dtype != "uint8":
                raise ValueError("an image is uint8 of the shape [height, width, channels], of 1, 3 or 4 channels")
        elif None in self.shape[1:]:
            raise ValueError(f"only the first size of the shape of '{self.feature}' may be null, as it is no image")
        if self.encoding == "raw" and self.dtype not in IN_BYTES:
            raise ValueError(f"'{self.feature}' is {self.dtype}, and raw holds {', '.join(IN_BYTES)}")
        if self.most and (self.encoding == "image" or self.shape[:1] != [None]):
            raise ValueError(f"most cuts a first size that is null and no image's: that of '{self.feature}' is another")
        return self


ONE_TENSOR, SEVERAL_TENSORS = "one tensor", "several tensors"
"""What is told apart where a description may be of either. No part of a key."""


def _one_or_several(given: Any) -> str:
    of_each = list(given.values()) if isinstance(given, dict) else []
    return SEVERAL_TENSORS if of_each and all(isinstance(one, dict | Feature) for one in of_each) else ONE_TENSOR


OneOrSeveral = Annotated[
    Annotated[Feature, Tag(ONE_TENSOR)] | Annotated[dict[str, Feature], Tag(SEVERAL_TENSORS)],
    Discriminator(_one_or_several),
]


def by_its_place(of: "Feature | dict[str, Feature] | None") -> dict[str, Feature]:
    """Features by the place of what they hold: of one tensor the empty one, of several `user`, `0` or `words/title`."""
    if of is None:
        return {}
    return {"": of} if isinstance(of, Feature) else of


class Shard(RecordModel):
    """One file of a prepared data set, in the order of its examples."""

    file: str
    examples: Positive
    bytes: Positive
    sha256: str


class WrittenShard(Shard):
    """One that was written and is not yet in a features.json: kept in a file of its own beside it."""

    bytes_in: Whole
    """Of its examples as the source gives them."""


def side_file(folder: Path, file: str) -> Path:
    """Where the WrittenShard of a file is kept until all are written."""
    return folder / f".{file}.json"


class ReadingSpeed(RecordModel):
    """What one process read and decoded, in turns with the other way of reading the same examples."""

    examples: Positive
    """Of each turn, the first ones of the data set."""
    examples_per_s: list[float]
    """Of each turn."""


class WayCost(RecordModel):
    """What each turn of one way to run the processes took, all files being written in it."""

    wall_s: list[float]
    cpu_s: list[float]
    """Of all processes, their start included."""


class Runners(RecordModel):
    """Who ran processes that wrote files, and how many."""

    by: str
    """`local`, `dask` or `beam`."""
    processes: Positive


class Preparation(RecordModel):
    """How files were made, and what that took."""

    source: str
    state: str = ""
    """What tells the examples that the source had from those of another time; empty where nobody has kept it."""
    harness_version: str
    by: str
    """`local`, `dask` or `beam`: of the last call that wrote files."""
    processes: Positive
    earlier: list[Runners] = []
    """Of the calls that it went on with, in their order, where they had others or more or fewer processes."""
    created_utc: str
    written: Whole
    """Examples in the files that were written: fewer than all where others were whole in an earlier features.json."""
    wall_s: float
    """Of all calls, where one went on with another: of one that was cut off up to its last whole file."""
    cpu_s: float
    """Of all processes, their start included."""
    bytes_in: Whole
    """Of the written examples as the source gives them."""
    bytes_out: Whole
    """Of the files written."""
    source_read: ReadingSpeed | None = None
    files_read: ReadingSpeed | None = None
    ways: dict[str, WayCost] = {}
    """Where several were timed, each of them; `by`, `wall_s` and `cpu_s` are then of the cheapest's turn in the middle.
    """

    @model_serializer(mode="wrap")
    def _without_calls_of_the_same_processes(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(write(self), "earlier")


class Features(RecordModel):
    """The whole of a features.json. `input`, `target` and what the input is are enough for files of others."""

    kind: Literal["images", "text", "table", "categories", "own"] = "own"
    """What the harness does with examples: `images` are brought to the model's size and range, `text` is cut to its
    tokens, rows of a `table`, `categories` and `own` ones reach it as they are. What `input` looks like decides where
    it is not said; categories look like text.
    """
    input: OneOrSeveral
    """Of several inputs, which only `own` examples have, each by its place in their dict or tuple."""
    target: OneOrSeveral | None = None
    """None only of `text`, whose targets are then the next tokens."""
    weights: OneOrSeveral | None = None
    """How much the loss of each `own` example counts, or of each place of its target."""
    classes: Whole = 0
    """Targets run from 0 to `classes` - 1; 0 is not known."""
    vocabulary: Whole = 0
    """Of `text` and `categories`: tokens, or all categories, run from 0 to `vocabulary` - 1; 0 is not known."""
    compression: FileCompression = "none"
    examples: Positive | None = None
    """In all files together; None is not known."""
    names: list[str] = []
    """Of the classes, in their order."""
    digest: str = ""
    """SHA-256 of what `sha256sum FILES` prints of all shards in order, with names as under `shards`."""
    shards: list[Shard] = []
    """Of a prepared data set; of other files nothing."""
    preparation: Preparation | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_its_input(cls, given: Any) -> Any:
        if isinstance(given, dict) and "kind" not in given and isinstance(of := given.get("input"), dict):
            several = SEVERAL_TENSORS in map(_one_or_several, (of, given.get("target"))) or "weights" in given
            return {**given, "kind": "own" if several else _kind_of(of.get("encoding"), of.get("shape") or [])}
        return given

    @property
    def tensors(self) -> list[Feature]:
        """Every tensor of an example."""
        return [one for of in (self.input, self.target, self.weights) for one in by_its_place(of).values()]

    @property
    def only_input(self) -> Feature:
        """Where there is one, as of all kinds but `own`; TypeError where there are several."""
        if isinstance(self.input, Feature):
            return self.input
        raise TypeError(f"expected one input, got several: {', '.join(self.input)}")

    @model_validator(mode="after")
    def _has_each_once(self) -> Self:
        names = [one.feature for one in self.tensors]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two tensors of an example are the same feature '{twice[0]}'")
        for places in map(by_its_place, (self.input, self.target, self.weights)):
            if within := [place for place in places if any(other.startswith(f"{place}/") for other in places)]:
                raise ValueError(f"'{within[0]}' is a tensor, and others are in it")
        return self

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.target is None and self.kind != "text":
            raise ValueError("target is missing, the feature that holds the class; only text of one length has none")
        if self.kind == "own":
            return self._of_own_kind()
        if self.weights is not None or not all(isinstance(of, Feature | None) for of in (self.input, self.target)):
            raise ValueError(f'{self.kind} have one input and one target, and no weights; "kind": "own" may have more')
        ranks = {"images": (3,), "text": (1,), "table": (1,), "categories": (1,)}[self.kind]
        of = self.only_input
        if len(of.shape) not in ranks:
            raise ValueError(f"'{of.feature}' has {len(of.shape)} dimensions, {self.kind} have {ranks}")
        if None in of.shape and of.encoding != "image":
            raise ValueError(
                f"'{of.feature}' varies in length, which {self.kind} may not: pad it in the files, or say "
                '"kind": "own", for a model of your own'
            )
        if self.kind in ("text", "categories") and of.dtype.startswith("float"):
            raise ValueError(f"{self.kind} of whole numbers expected, and '{of.feature}' is {of.dtype}")
        is_class = [(one.encoding, one.shape) for one in by_its_place(self.target).values()] in ([], [("int64", [])])
        if not (is_class or self.numbers):
            of_class = "is a class: encoding int64, without a shape"
            if self.kind == "table":
                raise ValueError(
                    f"the target of a table {of_class}, or numbers: encoding float, with a shape such as [1], and no "
                    "classes"
                )
            raise ValueError(f"the target of {self.kind} {of_class}")
        return self

    def _of_own_kind(self) -> Self:
        inputs = by_its_place(self.input).values()
        for one in self.tensors:
            if None in one.shape and one.encoding == "image":
                raise ValueError(f"the image '{one.feature}' has no known size, which only those of kind images may")
            if None in one.shape and one not in inputs:
                raise ValueError(
                    f"'{one.feature}' varies in length and is no input, and padding would count in the loss: pad it in "
                    "the files, with weights of 0"
                )
        if self.classes and not isinstance(self.target, Feature):
            raise ValueError("classes are of one target, and there are several")
        return self

    @property
    def numbers(self) -> int:
        """Of a table whose targets are no classes, how many numbers each is; else 0."""
        target = self.target
        if self.kind != "table" or self.classes or not isinstance(target, Feature) or target.encoding != "float":
            return 0
        return (target.shape[0] or 0) if len(target.shape) == 1 else 0


def _kind_of(encoding: object, shape: list[Any]) -> str:
    """What an input looks like."""
    if encoding in ("image", "raw") and len(shape) == 3:
        return "images"
    of_one_length = len(shape) == 1 and shape != [None]
    return {"int64": "text", "float": "table"}.get(str(encoding), "own") if of_one_length else "own"
