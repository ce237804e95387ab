"""The answer at a glance: what a sweep says at its end. `show` and the page say the rest."""

from harness.analysis import RunSummary, WorkloadSummary
from harness.report.words.answer import AnswerText, answers, left_out_words, run_sentences
from harness.report.words.text import plural
from harness.visible import printable

_WORKLOADS = 3
_NAMELESS = ("undecided", "cannot_know", "beats_one_device")
"""Verdicts whose headline names no cell."""


def brief_lines(summary: RunSummary) -> tuple[str, ...]:
    """At most five lines: what is fastest, whether distributing pays, what ties, what is wrong."""
    texts = answers(summary)
    if len(texts) == 1:
        lines = [*_told(summary.workloads[0], texts[0]), texts[0].ties]
    else:
        told = list(zip(summary.workloads, texts, strict=True))[:_WORKLOADS]
        lines = [f"{text.workload}: {_in_a_line(work, text)}" for work, text in told]
        more = len(texts) - _WORKLOADS
        lines += [f"And {plural(more, 'answer')} more, which show prints and the report has."] if more > 0 else []
    wrong = [*map(left_out_words, summary.workloads), *run_sentences(summary)]
    return tuple(printable(line) for line in (*lines, " ".join(filter(None, wrong))) if line)


def _in_a_line(work: WorkloadSummary, text: AnswerText) -> str:
    """The headline, and the fastest cell where it names none."""
    return f"{text.headline} {text.fastest}" if work.answer.verdict in _NAMELESS else text.headline


def _told(work: WorkloadSummary, text: AnswerText) -> tuple[str, ...]:
    """The headline with what it does not say: the fastest cell, or what distributing gains or costs."""
    answer = work.answer
    if not text.fastest or (answer.verdict == "pays" and answer.best_id == answer.best_distributed_id):
        return (text.headline,)
    if answer.verdict in _NAMELESS:
        return text.fastest, text.verdict
    return text.headline, text.verdict
