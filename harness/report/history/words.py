"""A history in words: the table, and a paragraph for each change of level."""

from collections.abc import Mapping, Sequence

from harness.analysis.history.change_points import FEWEST, SIGNIFICANCE
from harness.analysis.history.series import LevelChange, Series
from harness.environment.commits import Commits
from harness.record.validation import Rate
from harness.report.history.names import machine_of, names_in
from harness.report.tables.table import Head, Table
from harness.report.words.sparkline import sparkline
from harness.report.words.text import NOTHING, STATUS_WORDS, listed, sentence, significant
from harness.spec.work import quantity_of
from harness.visible import plural, printable

Between = Mapping[tuple[str | None, str | None], Commits]
"""The commits between two recorded revisions."""
_MOST_FACTS = 4
_MOST_COMMITS = 8
_WIDE = 24
"""Runs that a line of blocks shows; the newest."""


def change_percent(change: LevelChange) -> str:
    """`−4.8 % [−6.0 to −3.6]`: the new level against the old."""
    value, low, high = change.ratio.value, change.ratio.low, change.ratio.high
    bounds = "" if low is None or high is None else f" [{_signed(low)} to {_signed(high)}]"
    return f"{_signed(value)} %{bounds}"


def history_table(series: Sequence[Series]) -> Table:
    """A row a series: the newest value, the runs as blocks, and what changed."""
    names = names_in(series)
    texts = ("over the runs", "changes")
    machine = (Head("machine", False),) if len(names.machines) > 1 else ()
    columns = (
        Head("cell", False),
        *machine,
        Head("runs"),
        Head("newest"),
        *(Head(name, False) for name in texts),
    )
    rows = tuple((names.of(one), *((machine_of(one),) if machine else ()), *_row(one)) for one in series)
    unit = quantity_of(one.cell for one in series).unit
    note = (
        f"Newest: {unit}, or the factor over no strategy in the same run. Blocks: the newest {_WIDE} runs, from "
        f"the smallest value to the largest. Of fewer than {FEWEST} runs no change of level can be told."
    )
    marked = frozenset(number for number, one in enumerate(series) if one.changes)
    return Table("History", columns, rows, note, marked)


def _row(one: Series) -> tuple[str, ...]:
    newest = significant(one.points[-1].value.value) if one.points else NOTHING
    unit = "×" if one.measure == "speed-up" and one.points else ""
    blocks = sparkline([point.value.value for point in one.points[-_WIDE:]])
    changes = listed((change_percent(change) for change in one.changes), most=3) or (
        "none found" if one.long_enough else f"too few runs ({len(one.points)} of {FEWEST})"
    )
    mark = " (unproved)" if one.points and one.points[-1].unproved else ""
    return str(len(one.points)), newest + unit + mark, blocks, changes


def summary_lines(series: Sequence[Series], runs: int) -> tuple[str, ...]:
    """What was read and what was found, in two or three sentences."""
    if not series:
        return (f"No series in {plural(runs, 'run')}: no sweep measured a cell, or none said on which machine.",)
    names = names_in(series)
    changed = [one for one in series if one.changes]
    short = sum(not one.long_enough for one in series)
    lines = [f"{plural(runs, 'run')}, {len(series)} series on {listed(names.machines)}."]
    if changed:
        lines.append(newest_words(changed))
        lines.append(f"The level changed in {len(changed)}: {listed((names.whole(one) for one in changed), most=6)}.")
    else:
        lines.append("No change of level was found." if short < len(series) else "")
    if short:
        lines.append(f"{short} of {len(series)} have fewer than the {FEWEST} runs that a change needs to be told.")
    return tuple(line for line in lines if line)


def newest_words(changed: Sequence[Series]) -> str:
    """Where levels last changed: `Slower by up to 10.4 % since 2026-11-13 in 2 series; package.tensorflow differs.`"""
    dates = {point.run_id: point.created_utc[:10] for one in changed for point in one.points}
    newest = max(dates.get(change.after, "") for one in changed for change in one.changes)
    of = [(one, change) for one in changed for change in one.changes if dates.get(change.after, "") == newest]
    last = [change for _, change in of]
    parts = []
    for way, some in (
        ("slower", [(one, change.ratio.value) for one, change in of if change.ratio.value < 1]),
        ("faster", [(one, change.ratio.value) for one, change in of if change.ratio.value >= 1]),
    ):
        if some:
            most = significant(100 * max(abs(ratio - 1) for _, ratio in some), 3)
            count = len({id(one) for one, _ in some})
            parts.append(f"{way} by {'up to ' if len(some) > 1 else ''}{most} % since {newest} in {count} series")
    keys = dict.fromkeys(item.key for change in last for item in change.environment if item.key != "git.revision")
    verb = "differs" if len(keys) == 1 else "differ"
    differs = f"; {listed(keys)} {verb}" if keys else "; nothing recorded of the machine changed"
    return printable(sentence(f"{' and '.join(parts)}{differs}."))


def change_lines(series: Sequence[Series], between: Between) -> tuple[str, ...]:
    """Each change with the runs, the environment difference and the commits on either side of it."""
    lines, names = [], names_in(series)
    for one in series:
        for change in one.changes:
            lines.append(
                f"{names.whole(one)}: {change_percent(change)}, from run {change.before} to run {change.after}"
            )
            lines += [f"    {text}" for text in why(change, between)]
        if one.gaps and one.measure == "throughput":
            kinds = listed(dict.fromkeys(STATUS_WORDS.get(gap.status, gap.status) for gap in one.gaps))
            lines.append(f"{names.whole(one)}: no figure in {plural(len(one.gaps), 'run')} ({kinds})")
    return tuple(printable(line) for line in lines)


def false_alarm_line(alarms: Rate | None) -> str:
    """What was counted of `false_alarms`, beside what the test promises; empty where nothing could be counted."""
    if alarms is None:
        return ""
    share, low, high = (significant(100 * value, 2) for value in (alarms.count / alarms.of, alarms.low, alarms.high))
    return (
        f"False alarms: of {alarms.of} series drawn from the scatter of these runs, in which nothing "
        f"changes, {alarms.count} would be marked: {share} % [{low} – {high}]; the test promises "
        f"{100 * SIGNIFICANCE:g} %. They are drawn run by run: where each run resembles the one before "
        "it, more are false (docs/history.md)."
    )


def why(change: LevelChange, between: Between) -> tuple[str, ...]:
    """What differs between the two runs: facts, then commits."""
    facts = [str(item) for item in change.environment if item.key != "git.revision"]
    said = [f"differs: {listed(facts, most=_MOST_FACTS)}"] if facts else ["nothing recorded of the machine differs"]
    found = between.get(change.revisions, Commits())
    if found.commits:
        said.append(f"{plural(found.count, 'commit')} between:")
        said += [f"  {short} {subject}" for short, subject in found.commits[:_MOST_COMMITS]]
        said += [f"  and {found.count - _MOST_COMMITS} more"] if found.count > _MOST_COMMITS else []
    if found.remark:
        said.append(found.remark)
    return tuple(printable(text) for text in said)


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}".replace("-", "−")
