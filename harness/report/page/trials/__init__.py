"""Every trial: the part of the page that lists them all, to sort, filter, open and repeat."""

from harness.report.page.trials.section import TrialsSection, trials_section

__all__ = ["TrialsSection", "trials_section"]
