"""Writes what the kept validations found: `python docs/validation_tables.py`.

One sentence into the README and docs/verdicts.md, and every table into results/validation/README.md.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.analysis.estimates.intervals import LogEstimate, log_mean, pooled_deviation
from harness.analysis.validation.decisions import decisions_of
from harness.analysis.validation.summary import validation_of
from harness.record.manifest import RunManifest, ValidationPlan
from harness.record.reading import Run, load_run
from harness.record.trial import TrialRecord
from harness.record.validation import ValidationRecord
from harness.report.export.as_markdown import escape, table_lines
from harness.report.tables.table import Head, Table
from harness.report.tables.validation import (
    GOALS,
    effects_table,
    found_by_verdict,
    goals_table,
    tools_table,
    validation_lines,
)
from harness.report.words.text import NOTHING, plural

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.goals.other_tools import rules_of  # noqa: E402

PAGE, README = ROOT / "docs" / "verdicts.md", ROOT / "README.md"
KEPT = ROOT / "results" / "validation"
TABLES = KEPT / "README.md"
NAMES = {
    "avx512-window": "AVX-512, once a window",
    "avx512": "AVX-512, before each step",
    "avx512-six": "AVX-512, before each step, six alive",
    "avx2-six": "AVX2, before each step, six alive",
}
"""Folders of kept runs, and what tells them apart: the processor, how often slow-downs came, and how many trials were
alive together where that was not three."""
SIX = 6
MARKS = ("<!-- what the kept validations found: begin -->", "<!-- what the kept validations found: end -->")


def kept() -> dict[str, Run]:
    """The kept runs, by what tells them apart."""
    return {name: load_run(KEPT / folder) for folder, name in NAMES.items()}


def recorded(runs: Mapping[str, Run]) -> dict[str, ValidationRecord]:
    """What each run found, other tools' rules on the same windows included."""
    return {name: validation_of(run).model_copy(update={"rules": rules_of(run)}) for name, run in runs.items()}


def text(runs: Mapping[str, Run], records: Mapping[str, ValidationRecord]) -> str:
    """Every table and finding as Markdown: all runs together, then each by itself."""
    together = _together(list(records.values()))
    lines = [
        _where(together),
        "",
        *(f"- {name}: {_on_what(run.manifest, records[name])}" for name, run in runs.items()),
        *_titled(_goals(together, records)),
    ]
    for name, record in records.items():
        lines += _titled(replace(effects_table(record), title=f"Every cell and slow-down, {name}"))
        lines += ["", *(f"- {escape(line)}" for line in validation_lines(record) if "--resume" not in line)]
    lines += [*_titled(tools_table(together)), *_titled(_set_up(runs))]
    return _spaced("\n".join(lines))


def sentence(records: Mapping[str, ValidationRecord]) -> str:
    """What all runs together found, in one sentence."""
    together = _together(list(records.values()))
    again = found_by_verdict(together.effects, 0)
    found = []
    for share in sorted(GOALS, reverse=True):
        of = found_by_verdict(together.effects, share)
        found.append(f"{share:.0%} was found {of.count} of {of.of} times")
    return _spaced(
        f"Measured on two shared cores: {plural(again.count, 'false alarm')} in {again.of} decisions of the same thing "
        f"against itself; a planted slow-down of {', one of '.join(found)}, in at most {together.max_blocks} blocks."
    )


def written(page: str, words: str) -> str:
    """`page` with `words` between the marks."""
    begin, end = MARKS
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not tail:
        raise SystemExit(f"expected '{begin}' before an '{end}'")
    return f"{head}{begin}\n{words}\n{end}{tail}"


def _spaced(words: str) -> str:
    """A space before each percent sign, but in what may be typed."""
    return re.sub(r"(?<![:=]\d)(?<=\d)%", " %", words)


def _together(records: Sequence[ValidationRecord]) -> ValidationRecord:
    """All decisions as one record, for tables that pool what they are given."""
    first, *more = records
    settings = ("delta", "epsilon", "windows", "window_s", "pilot_blocks", "max_blocks")
    assert all(getattr(first, name) == getattr(record, name) for record in more for name in settings)
    lists = ("effects", "floors", "rules")
    return first.model_copy(
        update={name: [one for record in records for one in getattr(record, name)] for name in lists}
    )


def _goals(together: ValidationRecord, records: Mapping[str, ValidationRecord]) -> Table:
    """The goals of all runs, with a column a run before the last."""
    table = goals_table(together)
    each = [{row[0]: row[2] for row in goals_table(record).rows} for record in records.values()]
    columns = [Head(name, False) for name in records]
    figure, goal, measured, met = table.columns
    rows = [(row[0], row[1], row[2], *(one[row[0]] for one in each), row[3]) for row in table.rows]
    all_runs = replace(measured, name="all together")
    return replace(table, columns=(figure, goal, all_runs, *columns, met), rows=tuple(rows))


def _set_up(runs: Mapping[str, Run]) -> Table:
    """How trials that were set up first compare with the others, and how pairs scatter, by run and cell."""
    rows = []
    for name, run in runs.items():
        made = decisions_of(run.manifest, run.trials)
        for cell in run.manifest.cells:
            spread = pooled_deviation([log_mean(one.values, "t") for one in made if one.cell == cell and one.values])
            later = first_two_slower(run, cell.cell_id)
            words = f"{100 * later.mean:+.1f} % ± {100 * (later.standard_error or 0):.1f}" if later else NOTHING
            rows.append((name, cell.label, words, f"{spread:.1%}" if spread else NOTHING))
    names = ("run", "cell", "the first two of six slower than the rest by, ± standard error", "paired sd")
    columns = tuple(Head(name, numeric=index > 1) for index, name in enumerate(names))
    return Table("Six trials set up two by two, or three at once", columns, tuple(rows))


def first_two_slower(run: Run, cell_id: str) -> LogEstimate | None:
    """Log ratio of the step times of the two trials of a block that were set up first, to those of the other four.

    What an arm takes longer than the others, because of what is planted in it, is taken off. None where no six were
    alive.
    """
    differences: list[float] = []
    for of in run.manifest.part(ValidationPlan).rounds:
        if of.cell_id != cell_id or len(of.arms) != SIX:
            continue
        blocks = [
            sorted((trial for trial in run.trials if trial.block == block and trial.status == "ok"), key=by_side)
            for block in [*of.pilot, *(of.second or [])]
        ]
        whole = [trials for trials in blocks if len(trials) == SIX]
        if len(whole) < len(of.pilot):
            continue
        logs = np.log([[trial.step_time_s for trial in trials] for trials in whole])
        logs = logs - logs.mean(axis=1, keepdims=True)
        logs = logs - logs.mean(axis=0)
        first = np.array([[trial.order < 2 for trial in trials] for trials in whole])
        differences += [float(row[early].mean() - row[~early].mean()) for row, early in zip(logs, first, strict=True)]
    return log_mean(differences, "t") if len(differences) > 1 else None


def by_side(trial: TrialRecord) -> str:
    """What the trials of a block are sorted by, so that each arm has its place."""
    return trial.side or ""


def _titled(table: Table) -> list[str]:
    return ["", f"## {table.title}", *table_lines(table)]


def _where(together: ValidationRecord) -> str:
    return (
        f"What it found on {together.facts['cpu.usable_cores']} shared cores of two kinds of processor, with nothing "
        f"else running, in {_count(together)}:"
    )


def _on_what(manifest: RunManifest, record: ValidationRecord) -> str:
    rounds = plural(len(manifest.part(ValidationPlan).rounds), "round")
    done = rounds if record.complete else f"the first of {rounds}"
    facts = f"{escape(str(record.facts['cpu.model']))}, TensorFlow {record.facts['package.tensorflow']}"
    return f"{facts}, {_count(record)}, {done}, with {plural(record.windows, 'window')} a trial"


def _count(record: ValidationRecord) -> str:
    planted = sum(effect.slower.of for effect in record.effects if effect.plant is not None)
    return f"{plural(record.decisions, 'A/A decision')} and {plural(planted, 'planted one')}"


if __name__ == "__main__":
    runs = kept()
    records = recorded(runs)
    for path, words in ((TABLES, text(runs, records)), (PAGE, sentence(records)), (README, sentence(records))):
        path.write_text(written(path.read_text(encoding="utf-8"), words), encoding="utf-8")
