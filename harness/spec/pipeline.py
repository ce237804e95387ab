"""An input pipeline by itself, as a kind of work, and the appetite of the model that it feeds, which is held beside it.

A pipeline yields what a model takes, so its cell names the model. The appetite is the rate of that model's own training
step on batches that lie on its device already: by it a pipeline is the limit or is not.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model

from harness.spec.axes import FEEDING, MOST, OUTER_FIRST, PIPELINES, Cache
from harness.spec.cell import TrainingCell, without_defaults
from harness.spec.grouping import COMPETING
from harness.spec.naming import head, sayings
from harness.spec.work import TAG, Cell, Shape, Work, fields_of, kind_of_work, of_examples

[PIPELINE] = PIPELINES
APPETITE = next(kind for kind in FEEDING if kind != PIPELINE)
Tokens = Annotated[int, Field(ge=0, le=MOST)]

if TYPE_CHECKING:  # a type checker cannot know keys that a table makes

    class _Fed(Cell):
        device: str
        batch_size: int
        model: str
        data: str
        tokens: int = 0
        intra_op_threads: int = 0
        engine: str = ""

    class _Input(_Fed):
        prefetch: int = 0
        cache: Cache = "auto"
        parallel_calls: int = 0
        shuffle_buffer: int = 0
        deterministic: bool = True
else:
    _Fed = create_model("_Fed", __base__=Cell, **fields_of(APPETITE), tokens=(Tokens, 0))
    _Input = create_model("_Input", __base__=_Fed, **fields_of(PIPELINE))


class _OfModel(_Fed):
    """What a pipeline and the model that it feeds have in common: one process with one device, and a batch a step."""

    TAKING_TURNS: ClassVar[frozenset[str]] = frozenset({TAG})
    COMPANY: ClassVar[str] = PIPELINE

    @property
    def work(self) -> Work:
        """A step is one batch, counted as a training counts it."""
        return of_examples(self.batch_size, self.tokens)

    @property
    def subject(self) -> str:
        """The model that is fed."""
        return self.model

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

    def scope_label(self, ranked: Sequence[Cell]) -> str:
        """`input of mnist_cnn on digits, virtual-cpu`."""
        return f"input of {head(self)}"

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
        return "-".join([self._what, str(self.batch_size), *(word.replace(" ", "-") for word in sayings(self))])

    @property
    @abstractmethod
    def _what(self) -> str:
        """What of the model's is measured, in a word."""


@kind_of_work(APPETITE)
class AppetiteCell(_OfModel):
    """A model's training step without a strategy, on batches that lie on its device already."""

    kind: Literal["appetite"] = "appetite"

    RANKED: ClassVar[bool] = False
    """It is no input: what competes is compared with it."""

    @property
    def training(self) -> TrainingCell:
        """The training whose step it is."""
        keys = {key: self.get(key) for key in type(self).model_fields if key != TAG}
        alone = {"strategy": "none", "replicas": 1, "batch_scope": "per_replica", "cross_device_op": "auto"}
        return TrainingCell(**keys, **alone, global_batch_size=self.batch_size)

    @property
    def _what(self) -> str:
        return "appetite"


@kind_of_work(PIPELINE)
class PipelineCell(_OfModel, _Input):
    """The input pipeline of a training without a strategy, by itself: a step draws one batch of `batch_size`."""

    kind: Literal["pipeline"] = "pipeline"

    @property
    def appetite(self) -> AppetiteCell:
        """The model that it feeds."""
        return AppetiteCell(**{key: self.get(key) for key in AppetiteCell.model_fields if key != TAG})

    @property
    def _what(self) -> str:
        return "input"


def appetites_of(cells: Iterable[PipelineCell]) -> tuple[AppetiteCell, ...]:
    """Of each model, batch and number of threads once."""
    return tuple(dict.fromkeys(cell.appetite for cell in cells))


def appetite_of(cell: Cell) -> AppetiteCell:
    """The cell as that of a model's appetite; TypeError for other work."""
    if isinstance(cell, AppetiteCell):
        return cell
    raise TypeError(f"cell {cell.cell_id} ({cell.label}) is no model's appetite")
