"""The array of github-action-benchmark's `customSmallerIsBetter`: seconds a step."""

from harness.report.export.as_github_action import Action
from harness.report.export.base import Exporter

EXPORTER: Exporter = Action(
    "github-action-smaller", "s/step", "for github-action-benchmark, tool customSmallerIsBetter: seconds a step"
)
