"""What is kept: one record a trial, one manifest a run, their JSON Schema, append and read."""

from harness.record.checks import Checks
from harness.record.manifest import SCHEMA_VERSION, LeftOutRecord, Machine, PlanRecord, RunManifest
from harness.record.store import Run, RunListing, RunStore, list_runs, load_run, new_run_id, resolve_run
from harness.record.trial import (
    Executed,
    PhaseName,
    Phases,
    Resources,
    Status,
    TrialRecord,
    Windows,
)

__all__ = [
    "SCHEMA_VERSION",
    "Checks",
    "Executed",
    "LeftOutRecord",
    "Machine",
    "PhaseName",
    "Phases",
    "PlanRecord",
    "Resources",
    "Run",
    "RunListing",
    "RunManifest",
    "RunStore",
    "Status",
    "TrialRecord",
    "Windows",
    "list_runs",
    "load_run",
    "new_run_id",
    "resolve_run",
]
