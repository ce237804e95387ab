"""A collective by itself, as a kind of work: its cells, and the keys of a spec that only they have."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, create_model

from harness.errors import UsageError
from harness.spec.axes import TABLE
from harness.spec.entry import Asked, Spelling
from harness.spec.grouping import COMPETING
from harness.spec.naming import sayings
from harness.spec.quantity import Quantity, Work
from harness.spec.values import MOST, Positive
from harness.spec.work import TAG, Cell, DistributedCell, fields_of, kind_of_work
from harness.visible import quoted

COLLECTIVE = "collective"
CollectiveName = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast"]
COLLECTIVES: tuple[str, ...] = get_args(CollectiveName)
IN_SHARES = ("all_gather", "reduce_scatter")
"""Collectives before or after which each replica has a share of the buffer, of whole elements."""
ELEMENT_BYTES = 4
"""Of a float32, which all buffers are of."""
BYTES = Quantity("bytes")

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SIZE = re.compile(r"([0-9]{1,19})\s*(?:([KMG])(?:iB)?|B)?", re.IGNORECASE)
_EXPECTED = "expected bytes, such as 4, 64KiB or 16MiB"


def size_of(text: str) -> int:
    """Bytes of `64KiB`, `16M` or `4`; K, M and G are binary, as in nccl-tests. UsageError names the key."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"size: given {quoted(text)}, {_EXPECTED}")
    return int(found[1]) * _UNITS[(found[2] or "").upper()]


def size_text(size: int, unit: str = "", space: str = "") -> str:
    """Bytes exactly, in the largest binary unit that they are a multiple of: `64KiB`; what has none ends in `unit`."""
    for name, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size and size % factor == 0:
            return f"{size // factor}{space}{name}"
    return f"{size}{unit and space + unit}"


def _split_sizes(text: str) -> list[int]:
    return [size_of(part) for part in text.split(",")]


def _join_sizes(sizes: Iterable[Any]) -> str:
    return ",".join(size_text(size) for size in sizes)


def _bytes_of(value: Any) -> Any:
    return size_of(value) if isinstance(value, str) else value


Size = Annotated[
    int, BeforeValidator(_bytes_of), Field(ge=ELEMENT_BYTES, multiple_of=ELEMENT_BYTES, le=MOST, strict=True)
]
OF_COLLECTIVE = {
    "collective": Asked(
        kind=CollectiveName, values=(), help="of --work collective: {names}; all_reduce where none is given"
    ),
    "size": Asked(
        kind=Size,
        values=(),
        help="of --work collective: buffer sizes in bytes of float32, such as 4,64KiB,16MiB; 4 bytes to 64 MiB where "
        "none is given",
        spelling=Spelling(_split_sizes, _join_sizes),
    ),
}
"""Keys of a spec that make a collective's cell beside those of the strategy."""
GRADIENTS = "model"
"""The key of a spec that asks for the gradients of models, beside buffers or in their place."""
UNASKED: dict[str, tuple[Any, ...]] = {
    "strategy": (),
    "replicas": (),
    "collective": ("all_reduce",),
    "size": (4, 4 * 2**10, 64 * 2**10, 256 * 2**10, 2**20, 4 * 2**20, 16 * 2**20, 64 * 2**20),
}
"""What a sweep of collectives has of keys that are not given, where a sweep of trainings has something else; of whom
there are, the engine says (`harness.spec.expand`)."""


def in_whole_shares(collective: str, size: int, replicas: int) -> int:
    """The largest buffer of at most `size` bytes of which each replica has a share of whole elements.

    nccl-tests rounds down likewise, to shares of 16 bytes (`AllGatherGetCollByteCount`). 0 where there is none.
    """
    shares = ELEMENT_BYTES * replicas
    return size // shares * shares if collective in IN_SHARES else size


def _keys() -> dict[str, Any]:
    """The tag and the keys of a collective's cell, in the order in which its records have them."""
    (device, its_field), *rest = fields_of(COLLECTIVE).items()
    return {
        TAG: (Literal["collective"], COLLECTIVE),
        device: its_field,
        "collective": (CollectiveName, ...),
        "size": (Positive, ...),
        "gradients": (str, ""),
        **dict(rest),
        "cross_device_op": (Annotated[str, TABLE["cross_device_op"]], "auto"),  # trainings have no default
    }


if TYPE_CHECKING:  # a type checker cannot know keys that a table makes

    class _Keys(DistributedCell):
        collective: CollectiveName
        size: int
        gradients: str
else:
    _Keys = create_model("_Keys", __base__=DistributedCell, **_keys())


@kind_of_work(COLLECTIVE)
class CollectiveCell(_Keys):
    """A collective of float32 over a strategy's replicas, `workers` × `replicas` of them, by one cross-device op.

    `size` is S of nccl-tests in bytes: the whole buffer, which of an all-gather is what each replica receives, and of
    a reduce-scatter what each sends. `gradients` is the model whose gradients are sent, each a tensor of its own shape
    and all in one call, as a step does; empty of a buffer that is one tensor.
    """

    GATE: ClassVar[str] = "collective"
    TAKING_TURNS: ClassVar[frozenset[str]] = frozenset({"size", "gradients"})
    """By which their times are set side by side."""
    FIRST: ClassVar[frozenset[str]] = frozenset(
        (TAG, "device", "collective", "size", "strategy", "replicas", "cross_device_op", "packing", "intra_op_threads")
    )
    """Keys that the first such cells had. Any other is left out of the identity at its default, so that a cell of then
    is one of now."""
    APART: ClassVar[tuple[str, ...]] = ("replicas", "workers", "network")
    """Axes whose values compete where a model is trained; here they are who takes part, and over what."""
    ALTERNATIVES: ClassVar[frozenset[str]] = COMPETING.difference(APART)
    """Keys whose values compete to do the same collective."""

    @property
    def work(self) -> Work:
        """A step brings one buffer to where it is to be."""
        return Work(BYTES, self.size)

    @property
    def subject(self) -> str:
        """The collective."""
        return self.collective

    @property
    def elements(self) -> int:
        """float32 numbers that one replica sends."""
        return self.size // ELEMENT_BYTES // (self.replicas_in_sync if self.collective == "all_gather" else 1)

    @property
    def count(self) -> int:
        """The column of that name of nccl-tests: elements of a share where there are shares, else of the buffer."""
        return self.size // ELEMENT_BYTES // (self.replicas_in_sync if self.collective in IN_SHARES else 1)

    def identity(self) -> dict[str, Any]:
        """The FIRST keys and their values, and every other that is not at its default."""
        defaults = {key: of.default for key, of in type(self).model_fields.items() if key not in self.FIRST}
        values = self.model_dump(mode="json")
        return {key: value for key, value in values.items() if key not in defaults or value != defaults[key]}

    @property
    def order(self) -> tuple[Any, ...]:
        """Collective, replicas and size before the axes."""
        return (COLLECTIVES.index(self.collective), self.replicas_in_sync, self.size, *super().order)

    @property
    def scope(self) -> dict[str, Any]:
        """Every key but the alternatives, and the quantity."""
        left_out = self.ALTERNATIVES if self.gradients else {*self.ALTERNATIVES, "gradients"}
        apart = {key: self.get(key) for key in type(self).model_fields if key not in left_out}
        return {**apart, "quantity": BYTES.many}

    def scope_label(self, ranked: Sequence[Cell], untrue: Collection[str] = ()) -> str:
        """`all_reduce of 64 KiB over 2 replicas, virtual-cpu`."""
        return f"{self.collective} of {self._what} over {self.between}"

    @property
    def between(self) -> str:
        """Who takes part: `2 replicas, virtual-cpu`, or `2 workers of 1 replica, virtual-cpu, rate=1gbit`."""
        replicas = f"{self.replicas} replica{'s' if self.replicas > 1 else ''}"
        who = replicas if self.workers == 1 else f"{self.workers} workers of {replicas}"
        return ", ".join(filter(None, [who, self.device, self.network]))

    def in_words(self, all_cores: int = 0) -> str:
        """The label: a step is that and nothing else."""
        return self.label

    @property
    def label(self) -> str:
        """`all_reduce 64 KiB mirrored ×2 hierarchical_copy`."""
        many = [f"{self.workers} workers"] if self.workers > 1 else []
        over = [self.network] if self.network else []
        parts = [self.collective, self._what, self.strategy, *many, f"×{self.replicas}", *self.how, *over]
        return " ".join(parts)

    @property
    def how(self) -> list[str]:
        """Op, packing, threads and whatever else is not at its default, but the network."""
        return sayings(self, without=("network",))

    @property
    def op_words(self) -> str:
        """`how` as a name: `auto` where nothing is asked for."""
        return " ".join(self.how) or "auto"

    @property
    def full_name(self) -> str:
        """The label with the device, which a run has in common."""
        return f"{self.device}: {self.label}"

    @property
    def short_name(self) -> str:
        """`all_reduce-64KiB-2-hierarchical_copy`."""
        many = f"{self.workers}x{self.replicas}" if self.workers > 1 else str(self.replicas)
        how = [word.replace(" ", "-") for word in self.how]
        what = re.sub(r"[^\w.]+", "-", self.gradients).strip("-") or size_text(self.size)
        return "-".join([self.collective, what, many, *how])

    @property
    def _what(self) -> str:
        """`64 KiB`, or `gradients of resnet20`."""
        return f"gradients of {self.gradients}" if self.gradients else size_text(self.size, "B", " ")
