"""A history as JSON: stable keys, each documented in `docs/history.md`."""

from collections.abc import Sequence
from typing import Any

from harness.analysis.history.change_points import FEWEST, SIGNIFICANCE
from harness.analysis.history.series import LevelChange, Series
from harness.environment.commits import Commits
from harness.record.validation import Rate
from harness.report.history.words import Between
from harness.report.values import Keys, document, each, ends, plain

POINT: Keys = {
    "run_id": "",
    "created_utc": "",
    "value": "value.value",
    "ci95": ends("value"),
    "trials": "",
    "unproved": "",
}
"""One run of a series; the value is in the unit of the cell's work, or the factor over no strategy."""

CHANGE: Keys = {
    "index": "",
    "p_value": "",
    "ratio": "ratio.value",
    "ci95": ends("ratio"),
    "before": "",
    "after": "",
    "environment": each("environment", {"key": "", "before": "a", "after": "b"}),
}
"""A change of level between two runs that follow each other. `ratio` is new over old: 0.95 is 5 % slower."""

SERIES: Keys = {
    "machine": "",
    "processor": "",
    "cell_id": "cell.cell_id",
    "label": "cell.label",
    "name": "cell.full_name",
    "measure": "",
    "points": each("points", POINT),
    "gaps": "",
}
"""One cell on one machine; gaps are runs in which the cell gave no figure."""


def history_json(series: Sequence[Series], between: Between, runs: int, alarms: Rate | None) -> dict[str, Any]:
    """The history by its documented keys; `alarms` is what `false_alarms` counted, None where no series is enough."""
    return {
        "schema_version": 1,
        "significance": SIGNIFICANCE,
        "fewest_runs": FEWEST,
        "false_alarms": plain(alarms),
        "runs": runs,
        "series": [_series(one, between) for one in series],
    }


def _series(one: Series, between: Between) -> dict[str, Any]:
    changes = [_change(change, between.get(change.revisions, Commits())) for change in one.changes]
    return {**document(one, SERIES), "changes": changes, "long_enough": one.long_enough}


def _change(change: LevelChange, commits: Commits) -> dict[str, Any]:
    """With the commits that the later run had and the earlier one had not."""
    named = [{"commit": short, "subject": subject} for short, subject in commits.commits]
    return {**document(change, CHANGE), "commits": named, "commit_count": commits.count, "remark": commits.remark}
