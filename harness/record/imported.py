"""What a run holds that was not measured but imported: published figures, each with where it comes from."""

import math
from typing import Annotated

from pydantic import Field, model_validator

from harness.record.bounds import Natural
from harness.record.kind import Kind, Undertaking
from harness.record.model import RecordModel
from harness.spec.cell import TrainingCell
from harness.spec.naming import told_value
from harness.spec.values import MOST

PublishedNumber = Annotated[float, Field(gt=0, lt=1e300, allow_inf_nan=False)]
NEEDED_KEYS = ("strategy", "replicas", "model")
"""Keys that every figure has."""


class PublishedFigure(RecordModel):
    """One row of the table. What the table does not say is None, or missing from `keys`: nothing is made up."""

    row: Annotated[int, Field(ge=2, le=MOST)]
    """Line of the file; the header is line 1."""
    keys: dict[str, str | int | bool]
    """Keys of a cell that the row gives, such as `strategy` and `replicas`."""
    throughput_examples_per_s: PublishedNumber
    low: PublishedNumber | None = None
    """Ends of its interval; None together."""
    high: PublishedNumber | None = None
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    trials: Annotated[int, Field(ge=1, le=MOST)] | None = None
    """Fresh runs behind the figure."""
    hardware: str | None = None
    suite: str | None = None
    date: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _the_keys_are_a_cells(self) -> "PublishedFigure":
        for key in NEEDED_KEYS:
            if key not in self.keys:
                raise ValueError(f"keys: {key} is missing")
        for key, value in self.keys.items():
            if key not in TrainingCell.model_fields:
                raise ValueError(f"keys: {key[:60]!r} is no key of a cell")
            counts = TrainingCell.model_fields[key].annotation is int
            if counts != (isinstance(value, int) and not isinstance(value, bool)):
                raise ValueError(
                    f"keys: {key}: given {str(value)[:60]!r}, expected {'a count' if counts else 'a name'}"
                )
            if counts and not 0 <= int(value) <= MOST:
                raise ValueError(f"keys: {key}: expected a count from 0 to {MOST}")
        return self

    @model_validator(mode="after")
    def _the_interval_is_one(self) -> "PublishedFigure":
        known = [value is not None for value in (self.low, self.high, self.confidence)]
        if any(known) and not all(known):
            raise ValueError("low, high and confidence are given together or not at all")
        if self.low is not None and self.high is not None:
            if not self.low <= self.throughput_examples_per_s <= self.high:
                raise ValueError("the figure lies outside its own interval")
            if not math.isfinite(math.log(self.high / self.low)):
                raise ValueError("the interval is too wide to be one")
        return self

    @property
    def label(self) -> str:
        """What it is of, in a line: the keys that tell figures of a table apart."""
        told = dict(self.keys)
        parts = [str(told.pop("strategy")), f"×{told.pop('replicas')}"]
        if told.get("workers", 1) != 1:
            parts.append(f"{told['workers']} workers")
        if "batch_size" in told:
            parts.append(f"b{told['batch_size']}" + (" global" if told.get("batch_scope") == "global" else ""))
        quiet = {"workers", "batch_size", *self._told_by_batch()}
        told = {key: value for key, value in told.items() if value or key not in ("tokens", "quantity")}
        parts += [told_value(key, value) for key, value in told.items() if key not in quiet]
        return " ".join(parts)

    def _told_by_batch(self) -> set[str]:
        """Keys of which the batch that a label has says as much as the figure."""
        keys = self.keys
        if "batch_size" not in keys:
            return set()
        by_itself = keys.get("batch_scope") == "global" or keys.get("ps", 0)
        many = 1 if by_itself else int(keys["replicas"]) * int(keys.get("workers", 1))
        follows = keys.get("global_batch_size") == many * int(keys["batch_size"])
        return {"batch_scope", "global_batch_size"} if follows else {"batch_scope"}


class ImportedRecord(RecordModel, Undertaking):
    """The table that a run was imported from. Such a run has no trials, no windows and no machine."""

    file: str
    """Name of the file, without its folder."""
    sha256: str
    figures: Annotated[list[PublishedFigure], Field(min_length=1)]
    left_out: Natural = 0
    """Rows without a figure in examples/s: their `status` says why, or they are counted in something else."""

    @property
    def sources(self) -> list[str]:
        """Where the figures come from, each once."""
        return list(dict.fromkeys(figure.source for figure in self.figures if figure.source))

    @property
    def kind(self) -> Kind:
        """A table that `import` kept."""
        return Kind(
            "import",
            None,
            uncompared="was imported: published figures are compared with another run, not along an axis",
        )

    def counted(self, cells: int) -> int:
        """Its figures."""
        return len(self.figures)
