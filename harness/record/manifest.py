"""The manifest of one run: what was asked, in what order it was planned, and on what machine."""

import hashlib
import json
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer, model_validator

from harness.errors import UsageError
from harness.record.bounds import LONGEST_S, MachineFact, Natural, Utc
from harness.record.engines import TOLD_BY_ENGINE, named_by_engine
from harness.record.explain import ExplainPlan
from harness.record.faults import FaultsPlan
from harness.record.hosts import together
from harness.record.imported import ImportedRecord
from harness.record.kind import RECORDS_NAME, Kind, Undertaking
from harness.record.model import RecordModel
from harness.record.trial import Plant
from harness.spec.catalogue import VIRTUAL_CPU
from harness.spec.engines import engine_for
from harness.spec.sweep import Sweep
from harness.spec.values import MOST
from harness.spec.work import Cell

SCHEMA_VERSION = 1
Boundary = Annotated[float, Field(gt=0, lt=0.5)]


class LeftOutRecord(RecordModel):
    """A combination that was asked for and makes no sense."""

    combination: str
    reason: str


class LooksRecord(RecordModel):
    """When a decision is looked at while it is measured, and when it then stops."""

    after: Annotated[list[Annotated[int, Field(ge=2, le=MOST)]], Field(min_length=1)]
    """Blocks measured at each look, the last of them the most."""
    different: list[Boundary]
    """The largest one-sided p of |θ| ≤ δ at which each look ends it."""
    equivalent: list[Boundary]
    """The same of |θ| ≥ ε."""
    window_cost_s: Annotated[float, Field(ge=0, lt=1)] | None = None
    """What a window is taken to cost beside its steps: that share of it hides as much of a difference, and ε is smaller
    by it. None in earlier records, whose ε is not."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.after != sorted(set(self.after)) or not len(self.after) == len(self.different) == len(self.equivalent):
            raise ValueError("looks: expected rising numbers of blocks, and two boundaries for each")
        return self


class PlanRecord(RecordModel):
    """Blocks in order, each a list of groups, each a list of cell ids in start order.

    `sha256` seals what was planned before any of it ran: the blocks and, in the first plan of a decision, its `looks`.
    The blocks up to the next look are sealed when the last one did not decide. `stage` 2 blocks are planned from the
    first stage's variance only (Stein). A plan that its seal does not fit, because one of them was changed
    afterwards, is not valid.
    """

    seed: int
    stage: Literal[1, 2]
    blocks: list[list[list[str]]]
    first_block: Natural = 0
    looks: LooksRecord | None = None
    sha256: str

    @classmethod
    def sealed(
        cls,
        seed: int,
        stage: Literal[1, 2],
        blocks: list[list[list[str]]],
        first_block: int = 0,
        looks: LooksRecord | None = None,
    ) -> Self:
        """The plan with its seal, made before any of it runs."""
        sha256 = _seal(seed, stage, blocks, first_block, looks)
        return cls(seed=seed, stage=stage, blocks=blocks, first_block=first_block, looks=looks, sha256=sha256)

    @model_validator(mode="after")
    def _seal_holds(self) -> Self:
        if self.sha256 != _seal(self.seed, self.stage, self.blocks, self.first_block, self.looks):
            raise ValueError("sha256 does not seal this plan: one of the two was changed after the plan was made")
        return self


def _seal(seed: int, stage: int, blocks: list[list[list[str]]], first_block: int, looks: LooksRecord | None) -> str:
    more = [] if looks is None else [looks.model_dump(exclude_none=True)]
    text = json.dumps([seed, stage, first_block, blocks, *more], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Machine(RecordModel):
    """The environment: flat facts by name, and the settings that make timings bad."""

    facts: dict[str, MachineFact]
    warnings: list[str] = []


class DeviceRecord(RecordModel):
    """What a kind of device is, as its engine says (`harness.spec.catalogue.DeviceTraits`)."""

    on_processors: bool = False
    virtual: bool = False

    @property
    def shares_cores(self) -> bool:
        """Whether a device is a part of the processors, of which one process without a strategy could have more."""
        return self.on_processors and self.virtual


OF_EARLIER = {
    VIRTUAL_CPU: DeviceRecord(on_processors=True, virtual=True),
    "virtual-gpu": DeviceRecord(virtual=True),
}
"""Of runs that do not say; any other kind was an accelerator with a device of its own for each replica."""


class SideRecord(RecordModel):
    """One side of a comparison: what it is, and in which environment its trials ran."""

    name: Literal["a", "b"]
    label: str
    """What sets it apart from the other side, for people: `cross_device_op=auto`, `main (3f2a91c)`."""
    cell_id: str
    settings: dict[str, str] = {}
    """KEY=VALUE given for this side alone."""
    python: str | None = None
    """The interpreter given for this side; None is the one that runs the harness."""
    revision: str | None = None
    """The revision as it was given for this side; None is the working tree."""
    commit: str | None = None
    """The commit that it named then."""
    environment: dict[str, str] = {}
    """Environment variables given for this side alone."""
    sweep: Sweep
    """Every setting of the side; its axes have one value each."""
    versions: dict[str, str] = {}
    """Python, TensorFlow and Keras as the side's own process reports them."""


class ComparisonRecord(RecordModel, Undertaking):
    """What an `ab` run set out to decide, fixed before the first trial."""

    sides: Annotated[list[SideRecord], Field(min_length=2, max_length=2)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    epsilon: Annotated[float, Field(gt=0, lt=1)]
    margins_source: str
    half_width: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Half-width of the log interval that a second stage was planned for; None with looks."""
    max_blocks: Annotated[int, Field(ge=2, le=MOST)]
    time_s: Annotated[float, Field(gt=0, le=LONGEST_S)] | None = None
    """The limit on time, if one was given."""
    remarks: list[str] = []
    """What is to be known of the sides: uncommitted work that neither has, an empty submodule."""

    @property
    def kind(self) -> Kind:
        """A run of `ab`."""
        return Kind(
            "ab",
            "ab",
            uncompared="is an `ab` run and holds its own two sides; `python -m harness compare {run}` alone shows its "
            "verdict",
            own_verdict=True,
        )

    def cell_of(self, member: str) -> str:
        """Its groups list sides by name."""
        return next((side.cell_id for side in self.sides if side.name == member), member)


class ArmRecord(RecordModel):
    """One arm of a validation's round: a cell, the cell again, or the cell with something planted."""

    name: str
    against: str | None = None
    """The arm that is side A of its decision; None for an arm that is only compared with."""
    apart: bool = False
    """Whether it is forked from the second preloaded process of the run."""
    revision: bool = False
    """Whether that process has the code of the plan's `commit`, in a work tree of its own."""
    plant: Plant | None = None
    """What is planted in it; in an arm that a planted one is compared with, the placebo of the same kind."""

    @property
    def slowed(self) -> Plant | None:
        """The slow-down in it; None where there is none but a placebo."""
        return self.plant if self.plant is not None and self.plant.share > 0 else None


class RoundRecord(RecordModel):
    """One round of a validation: the arms of one cell, block after block, and the decisions between them.

    With looks `blocks` has the numbers of those planned so far. Older rounds have `pilot` and `second`, which was
    planned from the pilot's spread (Stein).
    """

    cell_id: str
    arms: Annotated[list[ArmRecord], Field(min_length=2)]
    blocks: list[Natural] = []
    stopped: dict[str, Natural] = {}
    """After how many of them each decision stopped, by its side B; empty until all have."""
    pilot: list[Natural] = []
    second: list[Natural] | None = None
    """None until it is planned; empty when the pilot was enough."""

    @property
    def numbers(self) -> list[int]:
        """Of all its blocks that are planned."""
        return self.blocks or [*self.pilot, *(self.second or [])]

    @property
    def ended(self) -> bool:
        """Whether no more blocks will be planned for it."""
        return bool(self.stopped) or self.second is not None

    @property
    def decisions(self) -> list[ArmRecord]:
        """The arms that are side B of a decision."""
        return [arm for arm in self.arms if arm.against is not None]


class ValidationPlan(RecordModel, Undertaking):
    """What a `validate` run set out to do, fixed before the first trial."""

    quick: bool
    delta: Annotated[float, Field(ge=0, lt=1)]
    epsilon: Annotated[float, Field(gt=0, lt=1)]
    half_width: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Half-width of the log interval that second stages were planned for; None with looks."""
    max_blocks: Annotated[int, Field(ge=2, le=MOST)]
    placebo: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of its steps' time that planted work adds to a window on both sides, on processors; None before it was
    recorded (0.1, before every step)."""
    commit: str | None = None
    """Of the user's repository: some rounds compare two work trees of it. None where none does."""
    revisions_left_out: str | None = None
    """Why no round compares two equal revisions, where some would; None else."""
    rounds: Annotated[list[RoundRecord], Field(min_length=1)]

    @property
    def kind(self) -> Kind:
        """A run of `validate`."""
        return Kind("validation", "validate")


class ExtensionPlan(RecordModel, Undertaking):
    """What a run of a kind that is added to the house set out to do; the kind knows how `plan` reads."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    """The kind, which is also its verb."""
    unit: str = "records"
    plan: dict[str, JsonValue] = {}

    @property
    def kind(self) -> Kind:
        """The kind that the manifest names."""
        return Kind(self.name, self.name, self.unit, RECORDS_NAME)


class SweepPlan(RecordModel, Undertaking):
    """A sweep: all that it set out to do are the cells and plans that every manifest has."""

    @property
    def kind(self) -> Kind:
        """A run of `sweep`."""
        return Kind("sweep", "sweep", uncompared=None)


What = SweepPlan | ComparisonRecord | ValidationPlan | FaultsPlan | ImportedRecord | ExplainPlan | ExtensionPlan
_SWEEP = SweepPlan()
_Wanted = TypeVar("_Wanted", bound=Undertaking)


class RunManifest(RecordModel):
    """`run.json`: self-describing; with it and `trials.jsonl` a report needs nothing else."""

    schema_version: Literal[1] = 1
    run_id: str
    created_utc: Utc
    finished_utc: Utc | None = None
    status: Literal["running", "finished", "interrupted"] = "running"
    command: list[str] = []
    harness_version: str
    sweep: Sweep
    cells: list[Cell]
    devices: dict[str, DeviceRecord] | None = None
    """The device kinds of the cells; None where they were not recorded, and there were no others than `OF_EARLIER`."""
    base_cell_ids: list[str] = []
    """Cells measured only because others are compared with them."""
    left_out: list[LeftOutRecord] = []
    plans: list[PlanRecord]
    """In a comparison the groups list sides (`a`, `b`) instead of cell ids."""
    comparison: ComparisonRecord | None = None
    """Set for a run of `ab`. This and the next five are how `what` is kept: at most one of them is set."""
    validation: ValidationPlan | None = None
    """Set for a run of `validate`; its groups list arms by name."""
    faults: FaultsPlan | None = None
    """Set for a run of `faults`; its groups list scenarios by name."""
    imported: ImportedRecord | None = None
    """Set for a table that was imported: published figures, of which nothing was measured here."""
    explain: ExplainPlan | None = None
    """Set for a run of `explain`, whose groups list arms by name; left out of `run.json` where it is not."""
    extension: ExtensionPlan | None = None
    """Set for a run of a kind that was added to the house; left out of `run.json` where it is not."""
    machine: Machine
    """Where the run was started."""
    hosts: dict[str, Machine] = {}
    """The hosts elsewhere on which trials ran, by the name that trials call them; empty where all ran on `machine`."""

    @property
    def facts(self) -> dict[str, str | int | float | bool | None]:
        """Of what measured: the machine, or the hosts elsewhere together (`harness.record.hosts`)."""
        found = together(self.machine.facts, {name: host.facts for name, host in self.hosts.items()})
        told = any(key.startswith(TOLD_BY_ENGINE) for key in found)
        return named_by_engine(found, self.engines) if told else found

    @property
    def engines(self) -> frozenset[str]:
        """What trains its cells."""
        return frozenset(map(self.engine_of, self.cells))

    def engine_of(self, cell: Cell) -> str:
        """What trains a cell of it."""
        return engine_for(cell, self.sweep_of(cell))

    def sweep_of(self, cell: Cell) -> Sweep:
        """The settings that a cell is measured with: each side of a comparison has its own."""
        sides = self.comparison.sides if self.comparison is not None else []
        return next((side.sweep for side in sides if side.cell_id == cell.cell_id), self.sweep)

    def device_of(self, cell: Cell) -> DeviceRecord:
        """What the devices of `cell` are."""
        known = OF_EARLIER if self.devices is None else self.devices
        return known.get(cell.shape.device, DeviceRecord())

    @property
    def what(self) -> What:
        """What the run set out to do, by its kind."""
        return next((part for _, part in self if isinstance(part, What)), _SWEEP)

    @property
    def looks(self) -> LooksRecord | None:
        """When its decisions are looked at; None of a sweep, or of a decision in two stages."""
        return self.plans[0].looks if self.plans else None

    @property
    def kind(self) -> str:
        """What made the run: `sweep`, `ab`, `validation`, `faults`, `import`, `explain`, or an added kind's name."""
        return self.what.kind.name

    def part(self, wanted: type[_Wanted]) -> _Wanted:
        """`what`, of a run of the kind that has `wanted`; UsageError when the run is of another kind."""
        if not isinstance(self.what, wanted):
            raise UsageError(
                f"'{self.run_id}' is a run of {self.what.kind.verb or self.kind}: it has no {wanted.__name__}"
            )
        return self.what

    @model_serializer(mode="wrap")
    def _as_before(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Runs of the kinds that there have always been are written as they always were."""
        values: dict[str, Any] = plain(self)
        for later in ("devices", "explain", "extension"):
            if getattr(self, later) is None:
                values.pop(later, None)
        return values
