"""What `validate` found out about the method itself on one machine: `validation.json`."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import StorageError
from harness.files import LARGEST_RECORDS, read_whole
from harness.record.bounds import MachineFact, Natural, Utc
from harness.record.files import replace_file, storage_error, to_json
from harness.spec.cell import MOST, Cell

VALIDATION_NAME = "validation.json"
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
ENOUGH_DECISIONS = 60
"""A/A decisions: with no false alarm among them the one-sided upper limit is 4.9 %."""
LARGEST_LOG = 600.0
LogRatio = Annotated[float, Field(ge=-LARGEST_LOG, le=LARGEST_LOG, allow_inf_nan=False)]
"""ln of a ratio of throughputs, or an end of its interval: a float holds the ratio."""
Size = Annotated[float, Field(ge=0, le=1e260, allow_inf_nan=False)]
"""Of a difference, as a share: about what the largest log ratio comes to."""
Planted = Annotated[float, Field(ge=0, lt=10, allow_inf_nan=False)]
"""A slow-down, as a share: `Plant.share`, or 0 where nothing is planted."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rate(_Part):
    """`count` of `of` decisions, with its two-sided 95 % Clopper–Pearson limits."""

    count: Natural
    of: Natural
    low: Share
    high: Share

    @model_validator(mode="after")
    def _makes_sense(self) -> "Rate":
        if self.count > self.of or self.low > self.high:
            raise ValueError("count is above of, or low above high")
        return self


class Effect(_Part):
    """Decisions on one cell: against itself (`plant` None), or against itself with a planted slow-down."""

    cell: Cell
    plant: str | None
    """Kind of the planted slow-down; None is the same thing twice (A/A)."""
    share: Planted = 0.0
    """The planted slow-down: 0.03 is 3 %."""
    verdicts: dict[str, Natural]
    """How many decisions ended with each verdict."""
    slower: Rate
    false_alarms: Rate | None = None
    """A/A: `faster` or `slower`."""
    equivalent: Rate
    measured: LogRatio
    """Mean over decisions of the log ratio of throughputs: about −ln(1 + share)."""
    measured_low: LogRatio | None = None
    measured_high: LogRatio | None = None
    """Its 95 % interval."""
    deviation: LogRatio | None = None
    """Standard deviation of the paired log difference, pooled over decisions."""
    blocks_median: Positive
    blocks_most: Annotated[int, Field(ge=1, le=MOST)]
    seconds_median: Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
    seconds_most: Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
    """What the trials of the two sides took, one after the other; the import of TensorFlow comes to it once."""


class Floor(_Part):
    """The noise floor for δ at one cell, as a share: 95 % of the A/A decisions found a smaller difference."""

    cell: Cell
    paired: Size
    """Sides that took turns."""
    unpaired: Size | None = None
    """Sides that were measured at different times (`compare` of two runs)."""
    unpaired_false_alarms: Rate | None = None
    """How often Welch's interval lay beyond δ between two decisions' worth of the same thing, at different times."""
    smallest_effect: Planted | None = None
    """The smallest planted slow-down called `slower` with 90 % power, by interpolation; None when none was."""


class Rule(_Part):
    """Another tool's rule, applied to the same windows: `benchmarks/goals/other_tools.py` does."""

    tool: str
    rule: str
    """The rule in words."""
    cell_id: str
    plant: str | None
    share: Planted
    apart: bool = False
    """The sides were measured one after the other, as that tool's users measure them: A of one decision
    against B of the next. False: they took turns."""
    alarms: Rate
    """How often it called B slower, or for A/A faster or slower."""


class ValidationRecord(_Part):
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
    delta: Share
    epsilon: Share
    windows: Annotated[int, Field(ge=1, le=MOST)]
    window_s: Positive
    pilot_blocks: Annotated[int, Field(ge=2, le=MOST)]
    max_blocks: Annotated[int, Field(ge=2, le=MOST)]
    effects: list[Effect]
    floors: list[Floor]
    rules: list[Rule] = []
    """In the file of an early run; later ones leave other tools to the benchmarks."""

    @property
    def decisions(self) -> int:
        """A/A decisions, of all cells."""
        return sum(effect.slower.of for effect in self.effects if effect.plant is None)

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
        replace_file(path, to_json(record, indent=1) + b"\n")
    except OSError as error:
        raise storage_error("write", path, error) from None


def with_recorded_rules(record: ValidationRecord, folder: Path) -> ValidationRecord:
    """The record with what the file in `folder` says of other tools' rules, if it does."""
    try:
        return record.model_copy(update={"rules": load_validation(folder).rules})
    except StorageError:
        return record


def load_validation(folder: Path) -> ValidationRecord:
    """Read `validation.json` of a run. StorageError, of one line, when it is missing or no such record."""
    path = folder / VALIDATION_NAME
    try:
        return ValidationRecord.model_validate(json.loads(read_whole(path, LARGEST_RECORDS)))
    except OSError as error:
        raise storage_error("read", path, error) from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise StorageError(f"'{path}' is not a validation of this harness: {key}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise StorageError(f"'{path}' is not a validation of this harness: it is not JSON") from None


def find_validation(results: Path, machine_id: str | None) -> ValidationRecord | None:
    """The complete validation of this machine below `results` with the most A/A decisions; None when there is none.

    From `ENOUGH_DECISIONS` on it is the newest: what a few rounds of today found is not to displace two hours' worth.

    A record that cannot be read is passed over: a broken file of an earlier day must not stop today's
    comparison, which then says that no validation was found.
    """
    found: list[ValidationRecord] = []
    if machine_id is None or not results.is_dir():
        return None
    for path in sorted(results.glob(f"*/{VALIDATION_NAME}")):
        try:
            record = load_validation(path.parent)
        except StorageError:
            continue
        if record.complete and record.machine_id == machine_id:
            found.append(record)
    return max(found, key=lambda record: (min(record.decisions, ENOUGH_DECISIONS), record.created_utc), default=None)
