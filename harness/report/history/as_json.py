"""A history as JSON: stable keys, each documented in `docs/history.md`."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat

from harness.analysis.history.change_points import FEWEST, SIGNIFICANCE
from harness.analysis.history.series import LevelChange, Series
from harness.environment.commits import Commits
from harness.record.validation import Rate
from harness.report.history.words import Between


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PointJson(_Part):
    """One run of a series."""

    run_id: str
    created_utc: str
    value: FiniteFloat
    """Examples/s, or the factor over no strategy."""
    ci95: tuple[FiniteFloat, FiniteFloat] | None
    trials: int


class GapJson(_Part):
    """A run in which the cell gave no figure."""

    run_id: str
    created_utc: str
    status: str


class DifferenceJson(_Part):
    """A fact or setting in which the two runs differ."""

    key: str
    before: str | int | float | bool | None
    after: str | int | float | bool | None


class CommitJson(_Part):
    """A commit that the later run had and the earlier one had not."""

    commit: str
    subject: str


class LevelChangeJson(_Part):
    """A change of level between two runs that follow each other."""

    index: int
    p_value: FiniteFloat
    ratio: FiniteFloat
    """New level over the old one: 0.95 is 5 % slower."""
    ci95: tuple[FiniteFloat, FiniteFloat] | None
    before: str
    after: str
    environment: list[DifferenceJson]
    commits: list[CommitJson]
    commit_count: int
    remark: str | None


class SeriesJson(_Part):
    """One cell on one machine."""

    machine: str
    processor: str
    cell_id: str
    label: str
    measure: Literal["throughput", "speed-up"]
    points: list[PointJson]
    gaps: list[GapJson]
    changes: list[LevelChangeJson]
    long_enough: bool
    """Whether there are as many runs as a change of level needs to be told."""


class HistoryJson(_Part):
    """The whole."""

    schema_version: Literal[1] = 1
    significance: FiniteFloat = SIGNIFICANCE
    fewest_runs: int = FEWEST
    false_alarms: Rate | None
    """Counted on series drawn from the scatter of these; None where none is long enough."""
    runs: int
    series: list[SeriesJson]


def history_json(series: Sequence[Series], between: Between, runs: int, alarms: Rate | None) -> HistoryJson:
    """The history by its documented keys; `alarms` is what `false_alarms` counted."""
    return HistoryJson(runs=runs, false_alarms=alarms, series=[_series(one, between) for one in series])


def _series(one: Series, between: Between) -> SeriesJson:
    return SeriesJson(
        machine=one.machine, processor=one.processor, cell_id=one.cell.cell_id, label=one.cell.label,
        measure=one.measure, long_enough=one.long_enough,
        points=[
            PointJson(run_id=p.run_id, created_utc=p.created_utc, value=p.value.value, trials=p.trials,
                      ci95=_bounds(p.value.low, p.value.high))
            for p in one.points
        ],
        gaps=[GapJson(run_id=gap.run_id, created_utc=gap.created_utc, status=gap.status) for gap in one.gaps],
        changes=[_change(change, between.get(change.revisions, Commits())) for change in one.changes],
    )  # fmt: skip


def _change(change: LevelChange, commits: Commits) -> LevelChangeJson:
    return LevelChangeJson(
        index=change.index, p_value=change.p_value, ratio=change.ratio.value,
        ci95=_bounds(change.ratio.low, change.ratio.high), before=change.before, after=change.after,
        environment=[DifferenceJson(key=item.key, before=item.a, after=item.b) for item in change.environment],
        commits=[CommitJson(commit=short, subject=subject) for short, subject in commits.commits],
        commit_count=commits.count, remark=commits.remark,
    )  # fmt: skip


def _bounds(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
