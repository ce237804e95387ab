"""An input pipeline by itself, as a kind of work, and the appetite of the model that it feeds, which is held beside it.

A pipeline yields what a model takes, so its cell names the model. The appetite is the rate of that model's own training
step on batches that lie on its device already: by it a pipeline is the limit or is not. One of the user's own data may
feed none (`NO_MODEL`), and is then held beside nothing.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, create_model

from harness.spec.axes import FEEDING, NO_MODEL, NO_STRATEGY, OUTER_FIRST, PIPELINES, TABLE, Axes, is_own_code
from harness.spec.cell import TrainingCell, without_defaults
from harness.spec.entry import Asked, InputStage
from harness.spec.grouping import COMPETING
from harness.spec.naming import head, sayings
from harness.spec.quantity import Work, of_examples
from harness.spec.shape import Shape
from harness.spec.values import MOST, Cache, FileCompression
from harness.spec.work import TAG, Cell, fields_of, kind_of_work

[PIPELINE] = PIPELINES
APPETITE = next(kind for kind in FEEDING if kind != PIPELINE)
Cut = Literal["", "source", "decode", "cache", "shuffle"]
CUTS: tuple[Cut, ...] = get_args(Cut)[1:]
"""Stages behind which a pipeline can be cut, in their order; what is whole batches and prefetches besides."""
_ORDER = get_args(InputStage)
OF_PIPELINE = {
    "cut": Asked(
        kind=Literal[CUTS],
        values=(),
        help="of --work pipeline: stages behind which each pipeline is also measured cut off, to see what each takes: "
        "{names}",
    ),
}
"""The key of a spec that makes a pipeline's cell beside those of the table."""
Tokens = Annotated[int, Field(ge=0, le=MOST)]

if TYPE_CHECKING:  # a type checker cannot know keys that a table makes

    class _Fed(Cell):
        device: str
        batch_size: int
        model: str
        data: str
        tokens: int = 0
        intra_op_threads: int = 0
        quantity: str = ""
        engine: str = ""

    class _Input(_Fed):  # what code reads of them
        cache: Cache = "auto"
        parallel_calls: int = 0
        interleave: int = 0
        deterministic: bool = True
        data_service: int = 0
        shards: int = 0
        compression: FileCompression = "none"
else:
    _Fed = create_model("_Fed", __base__=Cell, **fields_of(APPETITE), tokens=(Tokens, 0))
    _Input = create_model("_Input", __base__=_Fed, **fields_of(PIPELINE))


class _OfModel(_Fed):
    """What a pipeline and the model that it feeds have in common: one process with one device, and a batch a step."""

    TAKING_TURNS: ClassVar[frozenset[str]] = frozenset({TAG, "cut"})
    COMPANY: ClassVar[str] = PIPELINE

    @property
    def work(self) -> Work:
        """A step is one batch, counted as a training counts it."""
        return of_examples(self.batch_size, self.tokens, self.quantity)

    @property
    def subject(self) -> str:
        """The model that is fed; the data where none is."""
        return self.data if self.model == NO_MODEL else self.model

    @property
    def shape(self) -> Shape:
        """One process with one device."""
        return Shape(device=self.device)

    @property
    def data_set(self) -> str:
        """What is read."""
        return self.data

    def identity(self) -> dict[str, Any]:
        """Every key and its value, but those at their defaults that trainings leave out there, too."""
        return without_defaults(self)

    @property
    def scope(self) -> dict[str, Any]:
        """That the work is a model's input, and every key but those whose values compete."""
        keys = type(self).model_fields
        return {TAG: PIPELINE, **{key: self.get(key) for key in OUTER_FIRST if key in keys and key not in COMPETING}}

    def scope_label(self, ranked: Sequence[Cell], untrue: Collection[str] = ()) -> str:
        """`input of mnist_cnn on digits, virtual-cpu`, and what else its values do not compete in."""
        return ", ".join([f"input of {head(self)}", *sayings(self, without=COMPETING)])

    def in_words(self, all_cores: int = 0) -> str:
        """`the input, batch 64, cache none`."""
        return ", ".join([f"the {self._what}", f"batch {self.batch_size}", *sayings(self, in_words=True)])

    @property
    def label(self) -> str:
        """`input b64 cache none`."""
        return " ".join([self._what, f"b{self.batch_size}", *sayings(self)])

    @property
    def full_name(self) -> str:
        """`mnist_cnn on digits, virtual-cpu: input b64 cache none`."""
        return f"{head(self)}: {self.label}"

    @property
    def short_name(self) -> str:
        """`input-64-cache-none`."""
        return "-".join([self._what, str(self.batch_size), *sayings(self)]).replace(" ", "-")

    @property
    @abstractmethod
    def _what(self) -> str:
        """What of the model's is measured, in a word."""


@kind_of_work(APPETITE)
class AppetiteCell(_OfModel):
    """A model's training step without a strategy, on batches that lie on its device already."""

    GATE: ClassVar[str] = "instrument"
    LEFT_OUT: ClassVar[str] = "no_input"

    kind: Literal["appetite"] = "appetite"

    @property
    def competes(self) -> bool:
        """It is no input: what competes is compared with it."""
        return False

    @property
    def training_asked(self) -> TrainingCell:
        """The training whose step it is, which goes on without its input once its first updates are proved."""
        keys = {key: self.get(key) for key in type(self).model_fields if key != TAG}
        alone = {"strategy": NO_STRATEGY, "replicas": 1, "batch_scope": "per_replica", "cross_device_op": "auto"}
        return TrainingCell(**keys, **alone, global_batch_size=self.batch_size)

    @property
    def _what(self) -> str:
        return "appetite"


@kind_of_work(PIPELINE)
class PipelineCell(_OfModel, _Input):
    """The input pipeline of a training without a strategy, by itself: a step draws one batch of `batch_size`."""

    GATE: ClassVar[str] = "pipeline"
    INSTRUMENTED: ClassVar[bool] = True

    kind: Literal["pipeline"] = "pipeline"
    cut: Cut = ""
    """The stage behind which it is cut off: a step then draws as many examples, and no batch. Empty is all of it."""

    @property
    def competes(self) -> bool:
        """What is cut off is no input of a training."""
        return not self.cut

    def identity(self) -> dict[str, Any]:
        """As of all of this company; where nothing is cut off, that is not said."""
        values = super().identity()
        return values if self.cut else {key: value for key, value in values.items() if key != "cut"}

    def cut_behind(self, cut: Cut) -> "PipelineCell":
        """The same up to a stage, with the axes of what comes after at their defaults. Without a cache there is nothing
        between decoding and shuffling, and data of one's own come decoded."""
        if cut == "cache" and self.cache == "none":
            cut = "decode"
        if cut == "decode" and is_own_code(self.data):
            cut = "source"
        later = _ORDER[_ORDER.index(cut) + 1 :]
        idle = [key for key in type(self).model_fields if key in TABLE and TABLE[key].stage in later]
        return self.model_copy(update={"cut": cut, **{key: Axes.model_fields[key].default for key in idle}})

    @property
    def whole(self) -> "PipelineCell":
        """One that can be asked for, of which this is a part: a service has no cache behind it, and data of one's own
        come in any order from a service alone."""
        service = self.data_service or int(is_own_code(self.data) and not self.deterministic)
        uncached = {"cache": "none"} if service else {}
        return self.model_copy(update={"cut": "", "data_service": service, **uncached})

    @property
    def axes(self) -> Axes:
        """Its keys as a training's, whose pipeline it is; axes that it has not are at their default, or not there."""
        return Axes.model_construct(**{key: self.get(key) for key in type(self).model_fields if key in TABLE})

    @property
    def base(self) -> Cell:
        """The model that it feeds: what that takes; itself where it feeds none."""
        return self.appetite or self

    @property
    def appetite(self) -> AppetiteCell | None:
        """The model that it feeds, if any."""
        if self.model == NO_MODEL:
            return None
        return AppetiteCell(**{key: self.get(key) for key in AppetiteCell.model_fields if key != TAG})

    @property
    def _what(self) -> str:
        return f"input until {self.cut}" if self.cut else "input"


def appetites_of(cells: Iterable[PipelineCell]) -> tuple[AppetiteCell, ...]:
    """Of each model, batch and number of threads once."""
    return tuple(dict.fromkeys(taker for cell in cells if (taker := cell.appetite) is not None))
