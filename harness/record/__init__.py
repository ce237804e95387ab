"""What is kept: one record a trial, one manifest a run, their JSON Schema, append and read."""

from harness.record.manifest import Machine, PlanRecord, RunManifest, SCHEMA_VERSION
from harness.record.store import RunStore, list_runs, load_run, resolve_run
from harness.record.trial import (
    Checks,
    Executed,
    Phases,
    PHASE_NAMES,
    Resources,
    Status,
    TrialRecord,
    Windows,
)

__all__ = [
    "Checks",
    "Executed",
    "Machine",
    "PHASE_NAMES",
    "Phases",
    "PlanRecord",
    "Resources",
    "RunManifest",
    "RunStore",
    "SCHEMA_VERSION",
    "Status",
    "TrialRecord",
    "Windows",
    "list_runs",
    "load_run",
    "resolve_run",
]
