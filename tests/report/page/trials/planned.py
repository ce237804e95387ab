"""Runs with the plan that they were begun with."""

import json
import shlex
from typing import Any

import pytest

from harness.cli import run
from harness.record.manifest import RunManifest
from harness.report.page.trials.command import repeat_commands
from harness.spec import Cell, Sweep
from tests.synthetic import make_cell, make_run


def planned(sweep: Sweep, capsys: pytest.CaptureFixture[str], cell: Cell) -> dict[str, Any]:
    """What the cell's command would do, as `--dry-run --json` says."""
    command = command_of(cell, manifest_of(sweep))
    assert command is not None
    words = shlex.split(command)
    assert words[:4] == ["python", "-m", "harness", "sweep"]
    assert run([*words[3:], "--dry-run", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def command_of(cell: Cell, manifest: RunManifest) -> str | None:
    """That which repeats the cell, alone."""
    [command] = repeat_commands([cell], manifest)
    return command


def manifest_of(sweep: Sweep) -> RunManifest:
    manifest, _ = make_run([make_cell()], blocks=1)
    return manifest.model_copy(update={"sweep": sweep})
