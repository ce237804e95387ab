"""What is wrong, and what was not measured."""

from dataclasses import dataclass

from harness.record.manifest import RunManifest
from harness.report.problems import Explained, Remark, explained, remarks
from harness.report.sections.base import Section, Source
from harness.report.text import printable


@dataclass(frozen=True)
class Wrong:
    """Trials that did not end well, and what to know of those that did."""

    explained: tuple[Explained, ...]
    remarks: tuple[Remark, ...]


def problems(source: Source) -> Section | None:
    """Every cell to look at, with the evidence."""
    content = Wrong(explained(source.summary), remarks(source.summary))
    if not content.explained and not content.remarks:
        return None
    return Section("problems", "What is wrong", "problems.html.j2", content)


def left_out(source: Source) -> Section | None:
    """Combinations that make no sense."""
    grouped = _left_out(source.manifest)
    return Section("left-out", "Left out", "left_out.html.j2", grouped) if grouped else None


def _left_out(manifest: RunManifest) -> list[tuple[str, list[str]]]:
    """(reason, combinations): many combinations share a reason."""
    grouped: dict[str, list[str]] = {}
    for item in manifest.left_out:
        grouped.setdefault(printable(item.reason), []).append(printable(item.combination))
    return list(grouped.items())
