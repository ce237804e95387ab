"""What `validate` found out about the method itself on one machine: `validation.json`."""

import contextlib
import functools
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from harness.errors import StorageError
from harness.files import LARGEST_RECORDS, read_whole
from harness.record.bounds import MachineFact, Natural, Utc
from harness.record.files import is_folder, reading, replace_own_file, storage_error, to_json
from harness.record.model import RecordModel
from harness.record.reading import MANIFEST_NAME, load_manifest
from harness.spec.values import MOST
from harness.spec.work import Cell
from harness.visible import one_line

VALIDATION_NAME = "validation.json"
Proportion = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
PositiveNumber = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
ENOUGH_DECISIONS = 60
"""A/A decisions: with no false alarm among them the one-sided upper limit is 4.9 %."""
KNOWN_SIZE = 0.5, 1.5
"""The size of a plant, measured ÷ stated, is known where its whole 95 % interval lies between these."""
LARGEST_LOG = 600.0
LogRatio = Annotated[float, Field(ge=-LARGEST_LOG, le=LARGEST_LOG, allow_inf_nan=False)]
"""ln of a ratio of throughputs, or an end of its interval: a float holds the ratio."""
Magnitude = Annotated[float, Field(ge=0, le=1e260, allow_inf_nan=False)]
"""Of a difference, as a share: about what the largest log ratio comes to."""
Signed = Annotated[float, Field(ge=-1e260, le=1e260, allow_inf_nan=False)]
"""The same, of either sign."""
MOST_PLANTED = 10.0
PlantedShare = Annotated[float, Field(ge=0, lt=MOST_PLANTED, allow_inf_nan=False)]
"""A slow-down, as a share: `Plant.share`, or 0 where nothing is planted."""


class Rate(RecordModel):
    """`count` of `of` decisions, with its two-sided 95 % Clopper–Pearson limits."""

    count: Natural
    of: Natural
    low: Proportion
    high: Proportion

    @model_validator(mode="after")
    def _makes_sense(self) -> "Rate":
        if self.count > self.of or self.low > self.high:
            raise ValueError("count is above of, or low above high")
        return self


class Effect(RecordModel):
    """Decisions on one cell: against itself (`plant` None), or against itself with a planted slow-down."""

    cell: Cell
    plant: str | None
    """Kind of the planted slow-down; None is the same thing twice (A/A)."""
    share: PlantedShare = 0.0
    """The planted slow-down: 0.03 is 3 %."""
    verdicts: dict[str, Natural]
    """How many decisions ended with each verdict."""
    slower: Rate
    false_alarms: Rate | None = None
    """A/A: `faster` or `slower`."""
    equivalent: Rate
    holds: Rate | None = None
    """Decisions whose 95 % interval holds what is there: 0 of A/A, −ln(1 + share) of what is planted."""
    measured: LogRatio
    """Mean over decisions of the log ratio of throughputs: about −ln(1 + share)."""
    measured_low: LogRatio | None = None
    measured_high: LogRatio | None = None
    """Its 95 % interval."""
    deviation: LogRatio | None = None
    """Standard deviation of the paired log difference, pooled over decisions."""
    blocks_median: PositiveNumber
    blocks_most: Annotated[int, Field(ge=1, le=MOST)]
    seconds_median: Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
    seconds_most: Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
    """What the trials of the two sides took, one after the other; the import of TensorFlow comes to it once."""


class Floor(RecordModel):
    """The noise floor for δ at one cell, as a share: 95 % of the A/A decisions found a smaller difference."""

    cell: Cell
    paired: Magnitude
    """Sides that took turns."""
    unpaired: Magnitude | None = None
    """Sides that were measured at different times (`compare` of two runs)."""
    unpaired_false_alarms: Rate | None = None
    """How often Welch's interval lay beyond δ between two decisions' worth of the same thing, at different times."""
    smallest_effect: PlantedShare | None = None
    """The smallest slow-down called `slower` with 90 % power, from the spread of the A/A pairs and the most blocks
    of a decision; None where unknown, or larger than any that is planted. Older records have one that was planted."""


class Spread(RecordModel):
    """How far A/A decisions lie from 0, beside what the scatter of their own blocks predicts."""

    zygotes: Annotated[int, Field(ge=1, le=MOST)]
    """Preloaded processes that the two sides of a decision were forked from: 1, or 2 where each side had its own."""
    decisions: Natural
    observed: Magnitude
    """Root mean square of the decisions' log ratios."""
    predicted: Magnitude
    """Root mean square of their standard errors."""
    ratio: Magnitude
    """Of the two, squared: 1 where intervals are as wide as they should be."""
    low: Magnitude
    high: Magnitude
    """Its 95 % interval."""
    revisions: bool = False
    """Whether each side also had a work tree of its own, of one commit."""
    holds: Rate | None = None
    """Decisions whose 95 % interval holds 0; None in earlier records."""
    false_alarms: Rate | None = None
    """Decisions that ended `faster` or `slower`; None in earlier records."""

    @property
    def contradicted(self) -> bool:
        """Whether the interval excludes 1. One that holds 1 may be so wide that it says nothing else."""
        return not self.low <= 1 <= self.high


class PlantSize(RecordModel):
    """What a kind of planted slow-down came to in one validation, whatever its share and cell."""

    plant: str
    decisions: Natural
    ratio: Signed
    """Measured ÷ stated, of logarithms."""
    low: Signed | None = None
    high: Signed | None = None
    """Its 95 % interval; None for a single decision."""
    holds: Rate
    """Decisions whose 95 % interval holds what was stated."""

    @property
    def missed(self) -> bool:
        """Whether the interval excludes what was stated."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    @property
    def counted(self) -> bool:
        """Whether decisions on this kind count with others: it is known to be of about the size that was stated."""
        if self.low is None or self.high is None or self.missed:
            return False
        return KNOWN_SIZE[0] <= self.low and self.high <= KNOWN_SIZE[1]


class TurnCost(RecordModel):
    """How much longer a window takes after another trial's than after one of the same trial, as a share."""

    cell: Cell
    trials: Natural
    longer: Signed
    low: Signed
    high: Signed
    """Its 95 % interval, over trials."""


class Rule(RecordModel):
    """Another tool's rule, applied to the same windows: `benchmarks/goals/other_tools.py` does."""

    tool: str
    rule: str
    """The rule in words."""
    cell_id: str
    plant: str | None
    share: PlantedShare
    apart: bool = False
    """The sides were measured one after the other, as that tool's users measure them: A of one decision
    against B of the next. False: they took turns."""
    alarms: Rate
    """How often it called B slower, or for A/A faster or slower."""


class ValidationRecord(RecordModel):
    """The whole of `validation.json`."""

    schema_version: Literal[1] = 1
    run_id: str
    created_utc: Utc
    harness_version: str
    complete: bool
    """False while the run is under way or was stopped: `validate --resume` goes on."""
    quick: bool
    machine_id: str | None
    facts: dict[str, MachineFact]
    delta: Proportion
    epsilon: Proportion
    windows: Annotated[int, Field(ge=1, le=MOST)]
    window_s: PositiveNumber
    pilot_blocks: Annotated[int, Field(ge=2, le=MOST)]
    """Of the first stage, or up to the first look."""
    max_blocks: Annotated[int, Field(ge=2, le=MOST)]
    looks: list[Annotated[int, Field(ge=2, le=MOST)]] = []
    """Blocks after which decisions were looked at; empty of decisions in two stages."""
    effects: list[Effect]
    floors: list[Floor]
    spreads: list[Spread] = []
    plants: list[PlantSize] = []
    turns: list[TurnCost] = []
    unproved: list[str] = []
    """Ids of the cells of which a trial was unproved."""
    revisions_left_out: str | None = None
    """Why no decision is about two equal revisions, where some would have been."""
    rules: list[Rule] = []
    """In the file of an early run; later ones leave other tools to the benchmarks."""

    @property
    def decisions(self) -> int:
        """A/A decisions, of all cells."""
        return sum(effect.slower.of for effect in self.effects if effect.plant is None)

    def named(self, cell: Cell) -> str:
        """The cell's label, with a mark where it is unproved."""
        return f"{cell.label} (unproved)" if cell.cell_id in self.unproved else cell.label

    @property
    def knows_drift(self) -> bool:
        """Whether the noise floor of sides that are measured at different times is known."""
        return self.floor(unpaired=True) is not None

    def floor(self, unpaired: bool = False) -> float | None:
        """The largest noise floor over the cells; None when it was not measured."""
        values = [floor.unpaired if unpaired else floor.paired for floor in self.floors]
        known = [value for value in values if value is not None]
        return max(known, default=None)


def write_validation(folder: Path, record: ValidationRecord) -> None:
    """Write `validation.json` in a run's folder, whole or not at all. Raises StorageError."""
    path = folder / VALIDATION_NAME
    try:
        replace_own_file(path, to_json(record, indent=1) + b"\n")
    except OSError as error:
        raise storage_error("write", path, error, folder) from None


def with_recorded_rules(record: ValidationRecord, folder: Path) -> ValidationRecord:
    """The record with what the file in `folder` says of other tools' rules, if it does."""
    recorded = recorded_validation(folder)
    return record if recorded is None else record.model_copy(update={"rules": recorded.rules})


def recorded_validation(folder: Path) -> ValidationRecord | None:
    """`load_validation`; None where that cannot be."""
    try:
        return load_validation(folder)
    except StorageError:
        return None


def load_validation(folder: Path) -> ValidationRecord:
    """Read `validation.json` of a run. StorageError, of one line, when it is missing or no such record."""
    path = folder / VALIDATION_NAME
    try:
        with reading(path):
            return ValidationRecord.model_validate(json.loads(read_whole(path, LARGEST_RECORDS)))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise StorageError(f"'{path}' is not a validation of this harness: {key}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise StorageError(f"'{path}' is not a validation of this harness: it is not JSON") from None


def find_validation(results: Path, machine_id: object) -> ValidationRecord | None:
    """The complete validation of this machine below `results` with the most A/A decisions; None when there is none.

    `machine_id` is the fact `machine.id`; of a machine that is not known, which is no text, there is none.

    From `ENOUGH_DECISIONS` on it is the newest: what a few rounds of today found is not to displace two hours' worth.

    A record that cannot be read is passed over: a broken file of an earlier day must not stop today's
    comparison, which then says that no validation was found. Of a finished run that lacks its file, which an earlier
    version wrote last, standard error says how to get it.
    """
    found: list[ValidationRecord] = []
    if not isinstance(machine_id, str) or not is_folder(results):
        return None
    for path in sorted(results.glob(f"*/{VALIDATION_NAME}")):
        record = recorded_validation(path.parent)
        if record is not None and record.complete and record.machine_id == machine_id:
            found.append(record)
    if not found:
        _tell_of_lost_files(results, machine_id)
    return max(found, key=lambda record: (min(record.decisions, ENOUGH_DECISIONS), record.created_utc), default=None)


@functools.cache  # once for each folder
def _tell_of_lost_files(results: Path, machine_id: str) -> None:
    for folder in sorted(path.parent for path in results.glob(f"*-validation-*/{MANIFEST_NAME}")):
        if (folder / VALIDATION_NAME).exists():
            continue
        with contextlib.suppress(OSError, ValueError, StorageError):  # whoever needs that run is told why it is none
            manifest = load_manifest(folder)
            finished = manifest.status == "finished" and manifest.what.kind.verb == "validate"
            if finished and manifest.facts.get("machine.id") == machine_id:
                lacks = f"'{folder.name}' is a validation of this machine without its {VALIDATION_NAME}"
                way = f"python -m harness validate --resume {shlex.quote(str(folder))}"
                print(f"harness: {one_line(f'{lacks}; write it with: {way}')}", file=sys.stderr, flush=True)
