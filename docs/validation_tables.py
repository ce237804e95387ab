"""Writes what the kept validations found: `python docs/validation_tables.py`.

One sentence into the README, and every table into results/validation/README.md.
"""

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.analysis.estimates.intervals import LogEstimate, log_mean, pooled_deviation
from harness.analysis.validation.calibration import spreads
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
    again_words,
    as_stated,
    found_by_verdict,
    goals_table,
    pooled_rate,
    rate,
    source_of,
    tools_table,
)
from harness.report.words.text import NOTHING
from harness.visible import plural

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.goals.by_looks import replayed  # noqa: E402
from benchmarks.goals.other_tools import rules_of  # noqa: E402

README = ROOT / "README.md"
KEPT = ROOT / "results" / "validation"
TABLES = KEPT / "README.md"
LATEST = {"avx512-complete": "AVX-512, by looks"}
"""The run whose rules, plan and plants are today's. A quarter of its rounds have two preloaded processes, a quarter two
work trees of one commit."""
EARLIER = {
    "avx512-window": "AVX-512, once a window",
    "avx512": "AVX-512, before each step",
    "avx512-six": "AVX-512, before each step, six alive",
    "avx2-six": "AVX2, before each step, six alive",
}
"""Folders of kept runs, and what tells them apart: the processor, how often slow-downs came, and how many trials were
alive together where that was not three."""
SIX = 6
MARKS = ("<!-- what the kept validations found: begin -->", "<!-- what the kept validations found: end -->")
MARKS_OF_EARLIER = ("<!-- what earlier validations found: begin -->", "<!-- what earlier validations found: end -->")


def kept_runs(names: Mapping[str, str]) -> dict[str, Run]:
    """The kept runs, by what tells them apart."""
    return {name: load_run(KEPT / folder) for folder, name in names.items()}


def recorded(runs: Mapping[str, Run]) -> dict[str, ValidationRecord]:
    """What each run found, other tools' rules on the same windows included."""
    return {name: validation_of(run).model_copy(update={"rules": rules_of(run)}) for name, run in runs.items()}


def text(runs: Mapping[str, Run], records: Mapping[str, ValidationRecord]) -> str:
    """Every table and finding as Markdown: all runs together, beside each by itself where there are several."""
    together = _together(runs, records)
    several = [_set_up(runs), replayed(list(runs.values()))] if len(runs) > 1 else []
    lines = [
        _where(together),
        "",
        *(f"- {name}: {_on_what(run.manifest, records[name])}" for name, run in runs.items()),
        *_titled(_goals(runs, records)),
        *_titled(_planted(records)),
        *_titled(_floors(records)),
        *(line for table in (_turns(records), _layout(records)) if table.rows for line in _titled(table)),
        *_titled(tools_table(_counted(runs, records))),
        *(line for table in several for line in _titled(table)),
    ]
    return _spaced("\n".join(lines))


def sentence(runs: Mapping[str, Run], records: Mapping[str, ValidationRecord]) -> str:
    """What all runs together found, in a few words."""
    together = _counted(runs, records)
    found = [f"{rate(found_by_verdict(together.effects, share))} of {share:.0%}" for share in sorted(GOALS)[::-1]]
    whose = {
        (1, False): " where both sides came from one preloaded process",
        (2, False): " where each had its own",
        (2, True): " where each also had a work tree of one commit",
    }
    several = len(together.spreads) > 1
    spread = ", ".join(
        f"{one.ratio:.2f} [{one.low:.2f} – {one.high:.2f}]{whose[one.zygotes, one.revisions] if several else ''}"
        for one in together.spreads
    )
    return _spaced(
        f"Measured on two shared cores: {again_words(together)}. Decisions scatter as much as their own blocks "
        f"predict where observed variance ÷ predicted is 1; it is {spread}. Of planted slow-downs whose size was "
        "confirmed by measuring, "
        f"{' and '.join(found)} were found, in at most {together.max_blocks} blocks."
    )


def written(page: str, words: str, marks: tuple[str, str] = MARKS) -> str:
    """`page` with `words` between the marks."""
    begin, end = marks
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not tail:
        raise SystemExit(f"expected '{begin}' before an '{end}'")
    return f"{head}{begin}\n{words}\n{end}{tail}"


def _spaced(words: str) -> str:
    """A space before each percent sign, but in what may be typed."""
    return re.sub(r"(?<![:=]\d)(?<=\d)%", " %", words)


def _together(runs: Mapping[str, Run], records: Mapping[str, ValidationRecord]) -> ValidationRecord:
    """All decisions as one record, for tables that pool what they are given."""
    first, *more = records.values()
    settings = ("delta", "epsilon", "windows", "window_s", "pilot_blocks", "max_blocks")
    assert all(getattr(first, name) == getattr(record, name) for record in more for name in settings)
    lists = ("effects", "floors", "rules", "plants")
    return first.model_copy(
        update={
            **{name: [one for record in records.values() for one in getattr(record, name)] for name in lists},
            "spreads": spreads(one for run in runs.values() for one in decisions_of(run.manifest, run.trials)),
        }
    )


def _counted(runs: Mapping[str, Run], records: Mapping[str, ValidationRecord]) -> ValidationRecord:
    """The same without decisions on plants not known to have their size in their run; in another they may have it.

    Judged as complete: which rounds there are of a run that was stopped, its session's clock said and not its figures.
    """
    counted = {name: as_stated(record) for name, record in records.items()}
    return _together(runs, counted).model_copy(update={"plants": [], "complete": True})


def _goals(runs: Mapping[str, Run], records: Mapping[str, ValidationRecord]) -> Table:
    """The goals of all runs, with a column a run before the last."""
    table = goals_table(_counted(runs, records))
    each = [{row[0]: row[2] for row in goals_table(record).rows} for record in records.values()]
    if len(records) == 1:
        return table
    columns = [Head(name, False) for name in records]
    figure, goal, measured, met = table.columns
    rows = [(row[0], row[1], row[2], *(one.get(row[0], NOTHING) for one in each), row[3]) for row in table.rows]
    all_runs = replace(measured, name="all together")
    return replace(table, columns=(figure, goal, all_runs, *columns, met), rows=tuple(rows))


def _planted(records: Mapping[str, ValidationRecord]) -> Table:
    """What each kind of slow-down came to in each run, and how often each size was called slower."""
    shares = sorted({effect.share for record in records.values() for effect in record.effects if effect.plant})
    rows = []
    for name, record in records.items():
        for plant in record.plants:
            ends = "" if plant.low is None or plant.high is None else f" [{plant.low:.3f} – {plant.high:.3f}]"
            of = [effect for effect in record.effects if effect.plant == plant.plant]
            found = [rate(found_by_verdict(of, share)) for share in shares]
            counted = "yes" if plant.counted else "no"
            kind = plant.plant.replace("_", " ")
            rows.append(
                (name, kind, f"{plant.ratio:.3f}{ends}", f"{plant.holds.count} of {plant.holds.of}", counted, *found)
            )
    names = ("run", "planted", "measured ÷ stated", "intervals that hold what was stated", "counted above")
    columns = [Head(name, numeric=index > 1) for index, name in enumerate(names)]
    heads = [Head(f"{share:.0%}: called slower") for share in shares]
    return Table("What was planted, and found", (*columns, *heads), tuple(rows))


def _floors(records: Mapping[str, ValidationRecord]) -> Table:
    """The noise of each cell in each run."""
    rows = []
    for name, record in records.items():
        for floor in record.floors:
            [again] = [one for one in record.effects if one.plant is None and one.cell == floor.cell]
            apart = NOTHING if floor.unpaired is None else f"{floor.unpaired:.1%}"
            spread = NOTHING if again.deviation is None else f"{again.deviation:.1%}"
            smallest = NOTHING if floor.smallest_effect is None else f"{floor.smallest_effect:.1%}"
            seconds = f"{again.seconds_median:.0f} (≤ {again.seconds_most:.0f})"
            decisions = str(again.slower.of)
            rows.append((name, floor.cell.label, decisions, spread, f"{floor.paired:.1%}", apart, smallest, seconds))
    names = (
        *("run", "cell", "A/A decisions", "paired sd", "floor, taking turns", "floor, apart"),
        *("90 % power from", "seconds a decision"),
    )
    return Table("Noise", tuple(Head(name, numeric=index > 1) for index, name in enumerate(names)), tuple(rows))


def _turns(records: Mapping[str, ValidationRecord]) -> Table:
    """What taking turns costs an absolute throughput; ratios do not feel it."""
    rows = [
        (name, one.cell.label, f"{one.trials:,}", f"{one.longer:+.1%} [{one.low:+.1%} – {one.high:+.1%}]")
        for name, record in records.items()
        for one in record.turns
    ]
    names = ("run", "cell", "trials", "a window after another trial's, longer than one after the trial's own by")
    return Table(
        "What a turn costs", tuple(Head(name, numeric=index > 1) for index, name in enumerate(names)), tuple(rows)
    )


def _layout(records: Mapping[str, ValidationRecord]) -> Table:
    """By how much A/A decisions scatter beyond what their own blocks say, by what their sides were forked from.

    Of two preloaded processes, and of two equal revisions, that is what memory layout and paths alone do to a
    difference: √(observed² − predicted²), limits by those of the ratio.
    """
    rows = []
    for name, record in records.items():
        for one in record.spreads if any(spread.zygotes > 1 for spread in record.spreads) else ():
            beyond = [one.predicted * math.sqrt(max(0.0, ratio - 1)) for ratio in (one.ratio, one.low, one.high)]
            words = "{:.1%} [{:.1%} – {:.1%}]".format(*beyond)
            scatter = f"{one.observed:.2%}", f"{one.predicted:.2%}"
            errors = (rate(pooled_rate([each])) for each in (one.false_alarms, one.holds))
            rows.append((name, source_of(one), str(one.decisions), *errors, *scatter, words))
    names = (
        *("run", "sides from", "A/A decisions", "false alarms", "intervals that hold 0"),
        *("they scatter by", "their blocks say", "beyond that"),
    )
    columns = tuple(Head(name, numeric=index > 1) for index, name in enumerate(names))
    return Table("What memory layout alone does", columns, tuple(rows))


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
            for block in of.numbers
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
        f"What it found on {together.facts['cpu.usable_cores']} shared cores, with nothing else running, in "
        f"{_count(together)}:"
    )


def _on_what(manifest: RunManifest, record: ValidationRecord) -> str:
    rounds = plural(len(manifest.part(ValidationPlan).rounds), "round")
    done = rounds if record.complete else f"the first of {rounds}"
    left_out = (
        f"; two equal revisions were not compared: {record.revisions_left_out}" if record.revisions_left_out else ""
    )
    facts = f"{escape(str(record.facts['cpu.model']))}, TensorFlow {record.facts['package.tensorflow']}"
    return f"{facts}, {_count(record)}, {done}, with {plural(record.windows, 'window')} a trial{left_out}"


def _count(record: ValidationRecord) -> str:
    planted = sum(effect.slower.of for effect in record.effects if effect.plant is not None)
    return f"{plural(record.decisions, 'A/A decision')} and {plural(planted, 'planted one')}"


def pages() -> list[tuple[Path, str, tuple[str, str]]]:
    """What is to stand in which file, and between which marks."""
    latest, earlier = kept_runs(LATEST), kept_runs(EARLIER)
    found = recorded(latest)
    return [
        (TABLES, text(latest, found), MARKS),
        (TABLES, text(earlier, recorded(earlier)), MARKS_OF_EARLIER),
        (README, sentence(latest, found), MARKS),
    ]


if __name__ == "__main__":
    for path, words, marks in pages():
        path.write_text(written(path.read_text(encoding="utf-8"), words, marks), encoding="utf-8")
