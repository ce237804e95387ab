"""The history of a machine's runs: for the terminal, as JSON and as a page."""

from harness.report.history.as_json import history_json
from harness.report.history.page import history_page
from harness.report.history.words import change_lines, false_alarm_line, history_table, summary_lines

__all__ = [
    "change_lines",
    "false_alarm_line",
    "history_json",
    "history_page",
    "history_table",
    "summary_lines",
]
