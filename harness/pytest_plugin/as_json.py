"""The gate's verdicts as a JSON file: `docs/ci.md` explains the keys."""

from collections.abc import Sequence
from typing import Any

from harness.pytest_plugin.result import GateResult
from harness.pytest_plugin.rules import GateRules
from harness.record.manifest import ComparisonRecord
from harness.report.comparison.as_json import comparison_json
from harness.report.export.base import write
from harness.report.values import Keys, document
from harness.version import __version__
from harness.visible import json_text

TEST: Keys = {
    "test": "",
    "name": "result.name",
    "verdict": "result.verdict",
    "failed": lambda one: one["result"].fails(one["rules"].options.strict),
    "reason": lambda one: one["result"].reason or None,
    "ratio": "result.ratio",
    "ci95": "result.ci95",
    "unproved": "result.unproved",
    "fails_beyond": lambda one: _fails_beyond(one["result"]),
    "base": lambda one: _base(one["result"]),
    "again": "result.again",
    "records": "result.records",
    "comparison": lambda one: one["result"].comparison and comparison_json(one["result"].comparison),
}
"""A test of the gate and what was found of its cell."""

GATE: Keys = {
    "schema_version": lambda _: 1,
    "harness_version": lambda _: __version__,
    "mode": "rules.options.mode",
    "against": lambda whole: whole["rules"].options.against or whole["rules"].options.baseline,
    "saved": "rules.options.save",
    "strict": "rules.options.strict",
    "delta": "rules.margins.delta",
    "epsilon": "rules.margins.epsilon",
    "margins_source": "rules.margins.source",
    "tests": lambda whole: [
        document({"test": test, "result": result, "rules": whole["rules"]}, TEST) for test, result in whole["found"]
    ],
}
"""The whole."""


def write_json(rules: GateRules, found: Sequence[tuple[str, GateResult]]) -> None:
    """Write the file that was asked for, if one was. Raises StorageError, and UsageError for a file of a run's own."""
    if rules.options.json is not None:
        text = json_text(document({"rules": rules, "found": found}, GATE), allow_nan=False)
        write(rules.options.json, text.encode("utf-8", "replace"))


def _fails_beyond(result: GateResult) -> float | None:
    """The share by which it must be slower to fail."""
    if result.comparison is None:
        return None
    return (result.believed or result.comparison.margins).delta


def _base(result: GateResult) -> dict[str, Any] | None:
    """What it was compared with: the run that has it, of when, and the commit of its code."""
    if result.comparison is None:
        return None
    manifest = result.comparison.manifests[0]
    what = manifest.what
    revision = what.sides[0].commit if isinstance(what, ComparisonRecord) else manifest.facts.get("git.revision")
    return {"run_id": manifest.run_id, "created_utc": manifest.created_utc, "revision": revision}
