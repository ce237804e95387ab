"""Kinds of work: what a cell measures.

A cell is a tagged union that stays open: a kind of work is one class below `Cell`, entered by `@kind_of_work`
with the tag that its records carry, and it has the keys that it has and no others. What every kind can be asked is
said by `Cell`; the rest is read from the class that has it, and mypy shows where that was forgotten.
"""

import contextlib
import functools
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from harness.errors import UsageError
from harness.registry import is_script
from harness.spec.axes import OUTER_FIRST, TABLE, Axes, is_own_code
from harness.spec.catalogue import Catalogue
from harness.spec.quantity import EXAMPLES, SEVERAL, Quantity, Work
from harness.spec.shape import DataFiles, Shape
from harness.spec.values import Positive, QuantityName
from harness.visible import without_secrets

TAG = "kind"
"""The key of a written cell that names its kind of work. A training has none: its records are older than the tag."""
TRAINING = "training"
OWN_STEP = "own_step"
OF_CODE = (*(key for key in OUTER_FIRST if TABLE[key].own[0]), "step")
"""Keys whose value may be code of the user's own, `package.module:function`."""


def _is_union(cls: type[BaseModel]) -> bool:
    """Whether it is `Cell` itself, asked while the name is not bound yet."""
    return ABC in cls.__bases__


class Cell(BaseModel, ABC):
    """One configuration to measure, of whatever kind of work; identified by a hash of its canonical form."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    tag: ClassVar[str] = ""
    """The kind's name, set by `kind_of_work`."""
    TAKING_TURNS: ClassVar[frozenset[str]] = frozenset()
    """Keys beside the table's in which cells of the kind may differ that are alive together and take turns."""
    GATE: ClassVar[str] = "full"
    """The correctness gate that its trials pass (`harness.record.checks`)."""
    INSTRUMENTED: ClassVar[bool] = False
    """Whether something of the work may be left out; the gate is then an instrument's."""
    LEFT_OUT: ClassVar[str] = ""
    """The instrument (`harness.record.explain`) that leaves something out of `training_asked`; empty is all of it."""
    TAKEN_APART: ClassVar[bool] = False
    """Whether `explain` knows the parts of its steps."""
    COMPANY: ClassVar[str] = ""
    """Kinds of work of one company are alive together and take turns; empty is a kind by itself."""

    @property
    @abstractmethod
    def work(self) -> Work:
        """What one step does, and how much of it."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """What is worked on or run, as the user named it: a model, the function of an own step."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name for tables and figures; it names what usually varies within a sweep."""

    @property
    def label_of_any_batch(self) -> str:
        """The label of all cells that differ from this one by how much a step does; empty where each has its own."""
        return ""

    def in_words(self, all_cores: int = 0) -> str:
        """What one step does, in a few plain words; `all_cores` of a process that is shown to have had so many."""
        return f"{self.subject}, {self.work.amount:,} {self.work.quantity.many} a step"

    @property
    def scope(self) -> dict[str, Any]:
        """What cells must share that compete in one ranking: here the kind of work, its subject and its quantity."""
        return {"kind": self.tag, "subject": self.subject, "quantity": self.work.quantity.many}

    def in_common(self, ranked: "Sequence[Cell]") -> dict[str, Any]:
        """What all of `ranked`, which share the scope, are told to share."""
        return self.scope

    def scope_label(self, ranked: "Sequence[Cell]", untrue: Collection[str] = ()) -> str:
        """One line that names the ranking of `ranked`, without values that are `untrue` of what ran."""
        return self.subject

    @property
    def shape(self) -> Shape:
        """Its processes and devices; one process, unless the kind says otherwise."""
        return Shape()

    def without_network(self) -> "Cell":
        """The same without an emulated network."""
        return self

    @property
    def devices(self) -> int:
        """Devices of one worker."""
        return self.shape.replicas

    @property
    def data_set(self) -> str | None:
        """The data that is made ready once before trials; None where the work needs none of the harness."""
        return None

    @property
    def data_files(self) -> DataFiles | None:
        """The files that its data are written into before they are read; None where they are read as they are."""
        shards = self.get("shards")
        return DataFiles(shards, self.get("compression")) if shards else None

    def get(self, key: str) -> Any:
        """The value of a key by its name, None where this kind of work has no such key."""
        return getattr(self, key) if key in type(self).model_fields else None

    @property
    def own_code(self) -> dict[str, str]:
        """The code of the user's own that it runs, by key."""
        named = {key: str(self.get(key)) for key in OF_CODE}
        return {key: name for key, name in named.items() if is_own_code(name) or (key == "step" and is_script(name))}

    @property
    def full_name(self) -> str:
        """The label with what one run has in common: how the cell is called among those of many runs."""
        return self.label

    @property
    def short_name(self) -> str:
        """The beginning of its name in other tools: letters, digits and `-_.:` of what usually varies within a run."""
        return f"{self.subject}-{self.work.amount}-{self.work.quantity.many}"

    @property
    def cell_id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the canonical JSON form."""
        return _hash_of(self)

    def identity(self) -> dict[str, Any]:
        """The keys and values that make the cell another one."""
        return self.model_dump(mode="json")

    @property
    def order(self) -> tuple[Any, ...]:
        """What the cells of a matrix are sorted by: the axes from the outermost of their product to the innermost."""
        keys = type(self).model_fields
        return tuple(TABLE[key].rank(getattr(self, key)) for key in OUTER_FIRST if key in keys)

    @property
    def replicas_in_sync(self) -> int:
        """n: those that do a step together."""
        return 1

    @property
    def devices_in_sync(self) -> int:
        """Devices of all that do a step together."""
        return self.replicas_in_sync

    @property
    def base(self) -> "Cell":
        """What it is compared with first; itself, unless the kind says otherwise."""
        return self

    def bases(self, catalogue: Catalogue) -> "tuple[Cell, ...]":
        """All that it is compared with; `base`, unless the kind says otherwise. `catalogue` is its engine's."""
        return (self.base,)

    @property
    def training_asked(self) -> "Cell | None":
        """The training that its trials are; None where the work is none, but a task of the engine's by the tag."""
        return None

    @property
    def is_base(self) -> bool:
        """Whether others are compared with it: a training without a strategy."""
        return False

    @property
    def competes(self) -> bool:
        """Whether a ranking may have it; what does not compete is only held beside others."""
        return True

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not _is_union(cls):
            return handler(source)
        # whole, whatever is left out of the message around it: a cell without its tag could not be read back
        whole = core_schema.plain_serializer_function_ser_schema(lambda cell: cell.model_dump())
        return core_schema.no_info_plain_validator_function(lambda values: cell_from(values), serialization=whole)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if not _is_union(cls):
            found = handler(schema)
            keys = handler.resolve_ref_schema(found)
            if TAG in keys["properties"] and TAG not in keys["required"]:
                keys["required"].insert(0, TAG)
            return found
        return {"anyOf": [handler(kind.__pydantic_core_schema__) for _, kind in sorted(CELL_KINDS.items())]}


class DistributedCell(Cell):
    """A cell whose work a strategy of the engine shares out over replicas: what devices, strategies and ops ask of it.

    Its keys are the table's, which a type checker cannot see: a kind of work has the fields of `fields_of`.
    """

    if TYPE_CHECKING:
        device: str
        strategy: str
        replicas: int
        workers: int
        cross_device_op: str
        packing: str
        network: str

    @property
    def shape(self) -> Shape:
        """One process with all replicas, or a process a worker."""
        return Shape(self.workers, 0, self.replicas, self.device, self.network)

    def without_network(self) -> Self:
        """The same without an emulated network."""
        return self.model_copy(update={"network": ""})

    @property
    def replicas_in_sync(self) -> int:
        """n: replicas over all workers; with parameter servers, those that work at the same time."""
        return self.replicas * self.workers

    @property
    def asynchronous(self) -> bool:
        """Whether every worker updates by itself, waiting for no other."""
        return False


def fields_of(work: str) -> dict[str, Any]:
    """The table's keys that cells of this kind of work have too, each with its type, limits and default, in order."""
    return {
        key: (field.annotation, field)
        for key, field in Axes.model_fields.items()
        if key in TABLE and work in TABLE[key].works
    }


CELL_KINDS: dict[str, type[Cell]] = {}
"""Every kind of work, by tag."""
_Kind = TypeVar("_Kind", bound=type[Cell])


def quantity_of(cells: Iterable[Cell]) -> Quantity:
    """What the work of all of `cells` is counted in; SEVERAL where that differs."""
    found = {cell.work.quantity for cell in cells} or {EXAMPLES}
    return found.pop() if len(found) == 1 else SEVERAL


def must_be_of_one_quantity(key: str, cells: Iterable[Cell]) -> None:
    """UsageError, which names the key, where the rates of `cells` are in different units: their ratio means nothing."""
    units = list(dict.fromkeys(cell.work.quantity.unit for cell in cells))
    if len(units) > 1:
        raise UsageError(
            f"{key}: one is counted in {units[0]} and another in {units[1]}, which do not compare; "
            "--quantity examples counts both alike"
        )


def kind_of_work(tag: str) -> Callable[[_Kind], _Kind]:
    """Enter a class as a kind of work: from then on records, messages and schemas know its cells by `tag`."""

    def enter(kind: _Kind) -> _Kind:
        if tag in CELL_KINDS:
            raise ValueError(
                f"the kind of work '{tag}' is entered twice: {CELL_KINDS[tag].__name__} and {kind.__name__}"
            )
        kind.tag = tag
        CELL_KINDS[tag] = kind
        return kind

    return enter


def cell_from(values: Any) -> Cell:
    """The cell that a record or a message holds, of the kind that its tag says.

    Raises pydantic's errors: ValidationError of a kind's keys, PydanticCustomError where there is no such kind.
    """
    if isinstance(values, Cell):
        return values
    if not isinstance(values, Mapping):
        raise PydanticCustomError("cell", "expected the keys of a cell")
    if values.get("loop") == OwnStepCell.EARLIER_LOOP and TAG not in values:
        values = OwnStepCell.keys_of_earlier(values)
    kind = CELL_KINDS.get(str(values.get(TAG, TRAINING)))
    if kind is None:
        raise PydanticCustomError(
            "cell_kind", "expected a kind of work: {known}", {"known": ", ".join(sorted(CELL_KINDS))}
        )
    if type(values) is dict:
        with contextlib.suppress(TypeError):  # of what cannot be a key, nor of a cell: it is refused below
            return _read_once(kind, tuple(values.items()), tuple(map(type, values.values())))
    return kind.model_validate(values)


@functools.lru_cache(maxsize=4096)
def _read_once(kind: type[Cell], items: tuple[tuple[str, Any], ...], _: tuple[type, ...]) -> Cell:
    """The cell with these keys and values, of these types: the same stands in each record of its trials."""
    return kind.model_validate(dict(items))


@kind_of_work(OWN_STEP)
class OwnStepCell(Cell):
    """A user's own training step. Strategy, devices, model and data are the step's own affair, so it has none."""

    GATE: ClassVar[str] = "own_step"

    kind: Literal["own_step"] = "own_step"
    step: str
    """The function that builds it, `package.module:function`; or a script with its arguments, `train.py --epochs 3`."""
    amount: Positive = 1
    """How much of `quantity` one step does."""
    quantity: QuantityName = EXAMPLES.many

    EARLIER_LOOP: ClassVar[str] = "own"
    """What earlier records have in place of a tag: a training whose loop is this one."""

    @property
    def work(self) -> Work:
        """What one step does, as the user says: nothing inside the step is looked at."""
        return Work(Quantity(self.quantity), self.amount)

    @property
    def subject(self) -> str:
        """The function that builds the step."""
        return self.step

    @property
    def label(self) -> str:
        """The function and the amount of a step; `b64` stays what it was for examples. No secret of a script's."""
        counted = f"b{self.amount}" if self.quantity == EXAMPLES.many else f"{self.amount} {self.quantity}"
        return f"{without_secrets(self.step)} {counted}"

    @property
    def full_name(self) -> str:
        """As earlier runs called it, so that the history of a step is one series."""
        said = f"batch={self.amount}" if self.quantity == EXAMPLES.many else f"{self.quantity}={self.amount}"
        return f"{without_secrets(self.step)} on own, own: {self.label} optimizer=own {said}"

    @property
    def short_name(self) -> str:
        """As earlier runs called it in other tools, where it is counted in examples as theirs was."""
        return f"none-1x{self.amount}" if self.quantity == EXAMPLES.many else super().short_name

    def identity(self) -> dict[str, Any]:
        """The keys that an own step had in earlier records, so that it is the same cell then and now."""
        own = ("device", "data", "optimizer", "loop")
        counted = {} if self.quantity == EXAMPLES.many else {"quantity": self.quantity}
        return {
            **dict.fromkeys(own, self.EARLIER_LOOP),
            **counted,
            "strategy": "none",
            "replicas": 1,
            "workers": 1,
            "batch_size": self.amount,
            "batch_scope": "per_replica",
            "global_batch_size": self.amount,
            "cross_device_op": "auto",
            "packing": "default",
            "model": self.step,
            "precision": "float32",
            "xla": False,
        }

    @staticmethod
    def keys_of_earlier(values: Mapping[str, Any]) -> dict[str, Any]:
        """Today's keys of a cell that an earlier version wrote; what it had in the other places meant nothing."""
        return {TAG: OWN_STEP, "step": values.get("model"), "amount": values.get("global_batch_size")}


@functools.lru_cache(maxsize=65536)
def _hash_of(cell: Cell) -> str:
    """Kept outside the model: a value cached on the instance would survive `model_copy`, and lie."""
    canonical = json.dumps(cell.identity(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
