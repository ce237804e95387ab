"""What a person reads: the page, the answer in a few lines, tables, exports."""

from harness.report.answer import answer_lines
from harness.report.page import render, write_report
from harness.report.table import Column, Table, show_tables

__all__ = ["Column", "Table", "answer_lines", "render", "show_tables", "write_report"]
