"""The manifest of one run: what was asked, in what order it was planned, and on what machine."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

SCHEMA_VERSION = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LeftOutRecord(_Part):
    """A combination that was asked for and makes no sense."""

    combination: str
    reason: str


class PlanRecord(_Part):
    """Blocks in order, each a list of groups, each a list of cell ids in start order.

    `sha256` seals the blocks that were planned before any of them ran; `stage` 2 blocks are planned
    from the first stage's variance only (Stein), and sealed before they run.
    """

    seed: int
    stage: Literal[1, 2]
    blocks: list[list[list[str]]]
    first_block: Annotated[int, Field(ge=0)] = 0
    sha256: str


class Machine(_Part):
    """The environment: flat facts by name, and the settings that make timings bad."""

    facts: dict[str, str | int | float | bool | None]
    warnings: list[str] = []


class RunManifest(_Part):
    """`run.json`: self-describing; with it and `trials.jsonl` a report needs nothing else."""

    schema_version: Literal[1] = 1
    run_id: str
    created_utc: str
    finished_utc: str | None = None
    status: Literal["running", "finished", "interrupted"] = "running"
    command: list[str] = []
    harness_version: str
    sweep: Sweep
    cells: list[Cell]
    base_cell_ids: list[str] = []
    """Cells measured only because others are compared with them."""
    left_out: list[LeftOutRecord] = []
    plans: list[PlanRecord]
    machine: Machine
