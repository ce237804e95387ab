"""An imported table: as a table, as a page, as rows for exporters. Its figures are never ranked with measured cells."""

from typing import Any

from harness.errors import UsageError
from harness.record.imported import ImportedRecord, PublishedFigure
from harness.record.manifest import RunManifest
from harness.report.page.templating import rendered
from harness.report.tables.overlay import Published, series_of
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, listed, significant
from harness.spec.cell import TrainingCell
from harness.visible import plural, printable

MARK = "Published figures, not measured here"
_COLUMNS = (
    Head("model", False),
    Head("data", False),
    Head("cell", False),
    Head("examples/s"),
    Head("interval"),
    Head("trials"),
    Head("hardware", False),
    Head("date", False),
    Head("suite", False),
)
_SAID_ONCE = ("data", "interval", "trials", "hardware", "date", "suite")


def imported_table(imported: ImportedRecord) -> Table:
    """Every figure, in the table's own order; what is the same of all of them is said once, below."""
    rows = [_row(figure) for figure in imported.figures]
    once = {column for column, _ in _said_once(imported)}
    kept = [index for index, column in enumerate(_COLUMNS) if column.name not in once]
    note = f"From {printable(imported.file)}. {' '.join(_words(imported))}"
    return Table(
        MARK, tuple(_COLUMNS[index] for index in kept), tuple(tuple(row[index] for index in kept) for row in rows), note
    )


def _said_once(imported: ImportedRecord) -> list[tuple[str, str]]:
    """(column, value) of what is the same, or missing, of every figure of several."""
    rows = [_row(figure) for figure in imported.figures]
    same = [(column.name, {row[index] for row in rows}) for index, column in enumerate(_COLUMNS)]
    return [(name, *values) for name, values in same if len(rows) > 1 and len(values) == 1 and name in _SAID_ONCE]  # type: ignore[misc]


def _words(imported: ImportedRecord) -> list[str]:
    """Sentences on all figures together."""
    said = [f"{name} {value}" for name, value in _said_once(imported) if value != NOTHING]
    left_out = (
        [f"{plural(imported.left_out, 'row')} of the table had no figure in examples/s."] if imported.left_out else []
    )
    return [*([f"All of them: {', '.join(said)}."] if said else []), source_words(imported), *left_out]


def overlay_of(manifest: RunManifest) -> tuple[Published, ...]:
    """The figures as series over replicas, in the table's order. UsageError unless one starts at one replica."""
    if not isinstance(imported := manifest.what, ImportedRecord):
        raise UsageError(f"--overlay: '{manifest.run_id}' was measured; expected a run of python -m harness import")
    found = series_of(imported.figures)
    if not found:
        raise UsageError(
            f"--overlay: '{manifest.run_id}' has no series from one replica on, the batch of a replica fixed"
        )
    return found


def source_words(imported: ImportedRecord) -> str:
    """Where the figures come from, and what they lack, in sentences. A figure is shown as published, not rounded."""
    sources = [printable(source) for source in imported.sources]
    named = f"Source: {listed(sources[:5])}." if sources else "The table names no source."
    known = sum(figure.low is not None for figure in imported.figures)
    if known == len(imported.figures):
        return named
    lacking = "None has an interval" if known == 0 else f"{len(imported.figures) - known} of them have no interval"
    return f"{named} {lacking}: nothing says how exact they are, so no difference from them can be decided."


def imported_page(manifest: RunManifest) -> str:
    """One HTML file, with every figure."""
    imported = manifest.part(ImportedRecord)
    return rendered(
        "imported.html.j2",
        run_id=printable(manifest.run_id),
        created_utc=printable(manifest.created_utc),
        version=printable(manifest.harness_version),
        headline=f"{plural(len(imported.figures), 'published figure')} from {printable(imported.file)}: "
        "they were not measured here.",
        lines=_words(imported),
        table=imported_table(imported),
        sha256=imported.sha256,
    )


def imported_rows(manifest: RunManifest) -> list[dict[str, Any]]:
    """One row a figure under the names of `export --format cells`, so that it can be imported again."""
    return [
        {
            **{key: figure.keys.get(key) for key in TrainingCell.model_fields},
            "status": "ok",
            "throughput_examples_per_s": figure.throughput_examples_per_s,
            "throughput_examples_per_s_low": figure.low,
            "throughput_examples_per_s_high": figure.high,
            **figure.model_dump(include={"confidence", "trials", "hardware", "suite", "date", "source"}),
        }
        for figure in manifest.part(ImportedRecord).figures
    ]


def _row(figure: PublishedFigure) -> tuple[str, ...]:
    interval = NOTHING
    if figure.low is not None and figure.high is not None and figure.confidence is not None:
        share = significant(100 * figure.confidence, 3)
        interval = f"[{significant(figure.low)} – {significant(figure.high)}] at {share} %"
    keys = {key: value for key, value in figure.keys.items() if key not in ("model", "data")}
    cells = (
        figure.keys.get("model"),
        figure.keys.get("data"),
        figure.model_copy(update={"keys": keys}).label,
        f"{figure.throughput_examples_per_s:,.10g}",
        interval,
        figure.trials,
        figure.hardware,
        figure.date,
        figure.suite,
    )
    return tuple(NOTHING if cell is None else printable(str(cell)) for cell in cells)
