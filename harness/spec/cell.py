"""The cell of a training: a model of the harness or of the user's, trained under a strategy."""

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

from pydantic import ValidationInfo, field_validator

from harness.errors import UsageError
from harness.spec.axes import NO_STRATEGY, OUTER_FIRST, TABLE, Axes
from harness.spec.catalogue import Catalogue
from harness.spec.entry import KEEP
from harness.spec.grouping import COMPETING, SIDE_BY_SIDE, THREADS
from harness.spec.mesh import Mesh
from harness.spec.naming import BESIDE_HEAD, SPELLED, TOLD, UNLABELLED, head, sayings, told_among, value_words
from harness.spec.quantity import Work, of_examples
from harness.spec.shape import Shape
from harness.spec.work import TRAINING, Cell, DistributedCell, kind_of_work
from harness.visible import plural

LATER = {
    key: Axes.model_fields[key].default
    for key in Axes.model_fields
    if key == "tokens" or (key in TABLE and TABLE[key].later)
}
"""Keys that cells of earlier runs do not have, with their defaults, at which they are left out of the identity: a cell
is the same cell in a run of then and in one of now."""


BASE = {key: axis.base for key, axis in TABLE.items() if axis.base is not KEEP}
"""What a base case has, whatever the cell."""


def without_defaults(cell: Cell) -> dict[str, Any]:
    """Every key of the cell and its value, but those of LATER at their defaults."""
    values = cell.model_dump(mode="json")
    return {key: value for key, value in values.items() if key not in LATER or value != LATER[key]}


@kind_of_work(TRAINING)
class TrainingCell(Axes, DistributedCell):
    """One configuration of a training. `global_batch_size` G = n·b is stored so that no reader has to derive it.

    `workers` × `replicas` is the number of replicas. `packing` is `default`, `num_packs=K` or
    `bytes_per_pack=B`. With parameter servers (`ps` above 0) replicas are not in sync: each update is one
    worker's, so G, the examples that one update is computed from, is b.
    """

    INSTRUMENTED: ClassVar[bool] = True
    TAKEN_APART: ClassVar[bool] = True

    @field_validator(*(key for key, axis in TABLE.items() if axis.spelling is not None))
    @classmethod
    def _is_what_a_spec_takes(cls, value: str, info: ValidationInfo) -> str:
        """A damaged record is refused by its key where it is read, not where its text is first sorted."""
        try:
            TABLE[str(info.field_name)].rank(value)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return value

    @property
    def work(self) -> Work:
        """A step trains on G examples, or on all of what they are counted in."""
        return of_examples(self.global_batch_size, self.tokens, self.quantity)

    @property
    def subject(self) -> str:
        """The model that is trained."""
        return self.model

    @property
    def scope(self) -> dict[str, Any]:
        """Every key but those whose values compete (`grouping.COMPETING`), in the order of the axes' product.

        Batch size, strategy, replicas, op, loop, precision and XLA are among these: they are what the reader may
        choose to do the same work. Of each other key the entry says why it is apart.
        """
        return {key: getattr(self, key) for key in OUTER_FIRST if key not in COMPETING}

    def in_common(self, ranked: Sequence[Cell]) -> dict[str, Any]:
        """`scope`, and what the ranking's name says of it besides where all of `ranked` have it."""
        alike = {key for key in TOLD if len({cell.get(key) for cell in ranked}) == 1}
        return {key: getattr(self, key) for key in OUTER_FIRST if key not in COMPETING or key in alike}

    def scope_label(self, ranked: Sequence[Cell], untrue: Collection[str] = ()) -> str:
        """One line that names the ranking of `ranked`, without values that are `untrue` of what ran."""
        scope = "global batch fixed" if self.batch_scope == "global" else "per-replica batch fixed"
        rest = [told_among([trained(cell) for cell in ranked], key) for key in BESIDE_HEAD]
        true = [words for words in rest if words not in untrue]
        return ", ".join([head(self), *true, scope, *sayings(self, without=COMPETING)])

    @property
    def shape(self) -> Shape:
        """The processes of the strategy, and the replicas of each."""
        return Shape(self.workers, self.ps, self.replicas, self.device, self.network)

    @property
    def data_set(self) -> str:
        """What is trained on."""
        return self.data

    @property
    def base(self) -> Self:
        """*No strategy, one device* at the same batch: b for weak scaling, G for strong."""
        return self.model_copy(update={**BASE, "global_batch_size": self.batch_size})

    def bases(self, catalogue: Catalogue) -> tuple[Self, ...]:
        """`base`, then *no strategy on the whole machine* where the cell distributes over less than that.

        What anybody would run instead of virtual replicas is one process with all of their cores.
        """
        base, cores = self.base, catalogue.devices[self.device].cores or 1
        if self.devices_in_sync == 1 or max(1, base.intra_op_threads) >= cores:
            return (base,)
        return base, base.model_copy(update={"intra_op_threads": cores})

    @property
    def training_asked(self) -> Self:
        """Itself."""
        return self

    @property
    def is_base(self) -> bool:
        """Whether it is the base case *no strategy, one device* of others."""
        return self.strategy == NO_STRATEGY

    def identity(self) -> dict[str, Any]:
        """Every key and its value, but those of LATER at their defaults."""
        return without_defaults(self)

    @property
    def model_shards(self) -> int:
        """Devices that one replica has: 1 but on a mesh with a `model` axis."""
        return Mesh.shards_of(self.mesh)

    @property
    def devices(self) -> int:
        """Devices of one worker."""
        return self.replicas * self.model_shards

    @property
    def devices_in_sync(self) -> int:
        """Devices of all replicas: n, times the shards of a model that is cut."""
        return self.replicas_in_sync * self.model_shards

    @property
    def asynchronous(self) -> bool:
        """Whether every worker updates by itself, waiting for no other."""
        return self.ps > 0

    @property
    def replicas_per_update(self) -> int:
        """Replicas whose gradients one update sums."""
        return 1 if self.asynchronous else self.replicas_in_sync

    @property
    def replica_batch_size(self) -> int:
        """b: examples that one replica sees in one step."""
        return self.global_batch_size // self.replicas_per_update

    @property
    def label(self) -> str:
        """A short name for tables and figures; it names what usually varies within a sweep."""
        return self.named()

    @property
    def label_of_any_batch(self) -> str:
        """The label without the batch."""
        return " ".join([self.deployment, *sayings(self)])

    @property
    def full_name(self) -> str:
        """What every run calls it, whatever is measured beside it; no two cells share one."""
        defaults = {key: Axes.model_fields[key].default for key in SPELLED}
        rest = [f"{key}={getattr(self, key)}".lower() for key in SPELLED if getattr(self, key) != defaults[key]]
        # a label with servers counts workers
        many = [f"replicas={self.replicas}"] if self.ps and self.replicas > 1 else []
        return " ".join([f"{head(self)}:", self.named(without=TOLD), *many, *rest])

    @property
    def short_name(self) -> str:
        """`mirrored-2x64-hierarchical_copy`."""
        chosen = [getattr(self, key) for key in TABLE if key in SIDE_BY_SIDE and getattr(self, key) != TABLE[key].base]
        return "-".join([self.strategy, f"{self.replicas}x{self.batch_size}", *chosen])

    @property
    def deployment(self) -> str:
        """`mirrored ×2`, which the label begins with: the strategy, and what it is placed on."""
        if self.mesh:
            return f"{self.strategy} {self.mesh}"
        if self.ps:
            return f"{self.strategy} {self.workers} workers {self.ps} ps"
        if self.workers > 1:
            return f"{self.strategy} {self.workers} workers ×{self.replicas}"
        return f"{self.strategy} ×{self.replicas}"

    def in_words(self, all_cores: int = 0) -> str:
        """What to type after `tf.distribute`, in effect."""
        of = "worker" if self.asynchronous else "replica"
        batch = f"batch {self.batch_size} a {of}" if self.batch_scope != "global" else f"global batch {self.batch_size}"
        if self.is_base:
            wide = all_cores > 1
            parts = [f"no strategy on all {all_cores} cores"] if wide else ["no strategy", "one device"]
            rest = sayings(self, without=THREADS if wide else (), in_words=True)
            return ", ".join([*parts, f"batch {self.batch_size}", *rest])
        parts = [self.strategy]
        if self.asynchronous:
            parts += [plural(self.workers, "worker"), plural(self.ps, "parameter server")]
        elif self.workers > 1:
            parts.append(f"{self.workers} workers of {plural(self.replicas, 'replica')}")
        else:
            parts.append(plural(self.replicas, "replica"))
        if self.model_shards > 1:
            parts.append(f"a mesh of {self.mesh}")
        return ", ".join([*parts, batch, *sayings(self, in_words=True)])

    def named(self, without: Collection[str] = ()) -> str:
        """The label, of which what follows the batch says nothing of the keys in `without`."""
        batch = f"b{self.batch_size}" + (" global" if self.batch_scope == "global" else "")
        return " ".join([self.deployment, batch, *sayings(self, without)])


def trained(cell: Cell) -> TrainingCell:
    """The cell as that of a training, for what only trainings can be asked to do. Raises TypeError for other work."""
    if isinstance(cell, TrainingCell):
        return cell
    raise TypeError(f"cell {cell.cell_id} ({cell.label}) is no training")


def cell_names(cells: Sequence[Cell], without: str = "") -> dict[str, str]:
    """A name for each cell id: its label, and the keys that a label leaves out where they vary among `cells`."""
    varying = [key for key in UNLABELLED if key != without and len({cell.get(key) for cell in cells}) > 1]
    return {cell.cell_id: ", ".join([cell.label, *_beside_label(cell, varying)]) for cell in cells}


def _beside_label(cell: Cell, keys: Sequence[str]) -> list[str]:
    if isinstance(cell, TrainingCell):
        return [value_words(cell, key) for key in keys]
    texts = [str(value) for key in keys if (value := cell.get(key)) is not None]
    return [text for text in texts if text not in cell.label]  # the label of other work leaves out what it chooses to
