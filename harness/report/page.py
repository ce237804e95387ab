"""The report: one self-contained HTML file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis import RunSummary, WorkloadSummary, summarise
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.record.validation import ValidationRecord
from harness.report.answer import AnswerText, answers, run_sentences
from harness.report.export.base import write
from harness.report.figures import (
    Picture,
    efficiency_figure,
    network_figure,
    ops_figure,
    phases_figure,
    ranking_figure,
    throughput_figure,
)
from harness.report.method import methods, validated
from harness.report.network import network_table
from harness.report.problems import explained, remarks
from harness.report.table import Table, ops_table, phases_table, ranking_table, scaling_table
from harness.report.templating import rendered
from harness.report.text import NOTHING, plural, printable, size

Draw = Callable[[WorkloadSummary, str], Picture | None]


@dataclass(frozen=True)
class Section:
    """One part of a workload's report: figures, then the table that has every number of them."""

    slug: str
    title: str
    pictures: tuple[Picture, ...]
    table: Table
    open_table: bool = False
    """Whether the table is unfolded from the start."""


@dataclass(frozen=True)
class Part:
    """All that the page says of one workload."""

    slug: str
    answer: AnswerText
    sections: tuple[Section, ...]


def write_report(
    manifest: RunManifest, trials: Sequence[TrialRecord], output: Path, validation: ValidationRecord | None = None
) -> RunSummary:
    """Write the page to `output`, whole or not at all, and return the summary that it shows.

    `validation`, of the machine that measured, is cited where the method is described.

    Raises StorageError when `output` cannot be written, HarnessError when a record cannot be summarised.
    """
    summary = summarise(manifest, trials)
    page = render(manifest, trials, summary, validation).encode("utf-8", "replace")
    write(output, page, "FILE.html")
    return summary


def render(
    manifest: RunManifest,
    trials: Sequence[TrialRecord],
    summary: RunSummary,
    validation: ValidationRecord | None = None,
) -> str:
    """The page as text. Pure: the same records give the same bytes."""
    return rendered(
        "report.html.j2",
        manifest=manifest,
        summary=summary,
        parts=[_part(work, answer, index) for index, (work, answer) in enumerate(_answered(summary))],
        run_sentences=run_sentences(summary),
        explained=explained(summary),
        remarks=remarks(summary),
        left_out=_left_out(manifest),
        environment=_environment(manifest),
        methods=(*methods(manifest, trials, summary), validated(validation)),
        plural=plural,
        printable=printable,
    )


def _answered(summary: RunSummary) -> list[tuple[WorkloadSummary, AnswerText]]:
    return list(zip(summary.workloads, answers(summary), strict=True))


def _part(work: WorkloadSummary, answer: AnswerText, index: int) -> Part:
    def drawn(section: str, *figures: Draw) -> tuple[Picture, ...]:
        made = (draw(work, f"w{index}-{section}{number}") for number, draw in enumerate(figures))
        return tuple(picture for picture in made if picture is not None)

    sections = (
        Section("ranking", "Ranking", drawn("ranking", ranking_figure), ranking_table(work), open_table=True),
        Section(
            "scaling", "Throughput and efficiency against replicas",
            drawn("scaling", throughput_figure, efficiency_figure), scaling_table(work),
        ),
        Section("ops", "Cross-device ops side by side", drawn("ops", ops_figure), ops_table(work), open_table=True),
        Section("network", "Speed of the network", drawn("network", network_figure), network_table(work)),
        Section("phases", "Time per phase", drawn("phases", phases_figure), phases_table(work)),
    )  # fmt: skip
    return Part(f"w{index}", answer, tuple(section for section in sections if section.table.rows))


def _left_out(manifest: RunManifest) -> list[tuple[str, list[str]]]:
    """(reason, combinations): many combinations share a reason."""
    grouped: dict[str, list[str]] = {}
    for item in manifest.left_out:
        grouped.setdefault(printable(item.reason), []).append(printable(item.combination))
    return list(grouped.items())


def _environment(manifest: RunManifest) -> list[tuple[str, str]]:
    facts = [("harness", manifest.harness_version), ("command", " ".join(manifest.command) or NOTHING)]
    for name, value in manifest.machine.facts.items():
        if value is None:
            shown = "not known"
        elif isinstance(value, bool):
            shown = "yes" if value else "no"
        elif name.endswith("_bytes") and isinstance(value, int):
            shown = size(value)
        else:
            shown = str(value)
        facts.append((name, shown))
    return [(printable(name), printable(shown)) for name, shown in facts]
