"""From records to estimates: pure functions over trials, with an interval on everything."""

from harness.analysis.cells import CellTrials, Measured, Problem, WindowSummary
from harness.analysis.estimates.intervals import Interval, LogEstimate, Sample
from harness.analysis.estimates.trend import trends
from harness.analysis.ops import OpGroup, OpResult
from harness.analysis.ranking import Answer, Place, RankingScope
from harness.analysis.scaling import SHARED_LABEL, Scaling
from harness.analysis.summary import CellSummary, Noise, RunSummary, WorkloadSummary, summarise

__all__ = [
    "SHARED_LABEL",
    "Answer",
    "CellSummary",
    "CellTrials",
    "Interval",
    "LogEstimate",
    "Measured",
    "Noise",
    "OpGroup",
    "OpResult",
    "Place",
    "Problem",
    "RankingScope",
    "RunSummary",
    "Sample",
    "Scaling",
    "WindowSummary",
    "WorkloadSummary",
    "summarise",
    "trends",
]
