"""A comparison in plain words: the same sentences on the terminal, in Markdown and on the page."""

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.analysis import Interval
from harness.analysis.comparison import Comparison, Row
from harness.analysis.estimates.verdict import Judgement, Verdict, judge
from harness.environment import Change, fact_words
from harness.record.trial import MEASURED
from harness.report.comparison.phrases import PHRASES
from harness.report.words.text import NOTHING, ratio, shortened, signed
from harness.spec.quantity import Quantity
from harness.spec.work import quantity_of
from harness.visible import plural, printable

_FIRST_TOLD: tuple[Verdict, ...] = ("slower", "faster", "undecided", "equivalent")
_LACKS: dict[str, tuple[str, str]] = {
    "wrong_result": ("gives a wrong result", "give wrong results"),
    "unsupported": ("cannot run here", "cannot run here"),
    "out_of_memory": ("runs out of memory", "run out of memory"),
    "timeout": ("timed out", "timed out"),
    "crashed": ("crashed", "crashed"),
    "interrupted": ("was interrupted", "were interrupted"),
    "missing": ("was not run", "were not run"),
}
"""Of a row without a verdict and of several, by what became of a side."""
_NO_VERDICT = ("cannot be compared", "cannot be compared")
_FACTOR = 2.0
"""From here on a change reads better as `1.88×` than in percent."""
_NAMED = 3
_OF_REASON = 160
"""Characters of the reason why the only row has no verdict; its notes have all of it."""
_OF_PAIRS = ("Stein t", "repeated t")


def sides_line(comparison: Comparison) -> str:
    """Which side is which."""
    run = comparison.manifests[0].run_id
    return printable(PHRASES[comparison.kind].heading.format(a=comparison.title_a, b=comparison.title_b, run=run))


def change_lines(comparison: Comparison) -> tuple[str, ...]:
    """How the sides' environments differ beside what was asked, one line each; empty when they do not."""
    return tuple(printable(str(change)) for change in comparison.unasked)


def change_row(change: Change) -> tuple[str, str, str, bool]:
    """A change for a table: what differs, in A, in B, and whether it decides speed by itself."""
    a, b = (printable(fact_words(value)) for value in (change.a, change.b))
    return printable(change.key), a, b, change.severity == "refuse"


def title(comparison: Comparison) -> str:
    """Which side is held against which: of `ab` as the person set them apart, else `B against A`."""
    if not PHRASES[comparison.kind].one_decision:
        return "B against A"
    return printable(f"{comparison.title_b} against {comparison.title_a}")


def headline(comparison: Comparison) -> str:
    """The verdict without a figure of the measurement: how many comparisons ended how."""
    if len(comparison.rows) == 1:
        mark = " (unproved)" if comparison.rows[0].unproved else ""
        about = title(comparison) if PHRASES[comparison.kind].one_decision else printable(comparison.rows[0].name)
        return f"{comparison.verdict}{mark}: {about}"
    counts = comparison.counts
    valid = [f"{counts[verdict]} {verdict}" for verdict in _FIRST_TOLD if verdict in counts]
    return "; ".join(filter(None, [", ".join(valid), ", ".join(_invalid_words(comparison))]))


def _invalid_words(comparison: Comparison) -> Iterator[str]:
    """Why rows have no verdict: `2 give wrong results in B`."""
    why = Counter(_lacks(row) for row in comparison.rows if row.verdicts.wall.verdict == "invalid")
    order = [*_LACKS, *MEASURED]
    for (status, side), count in sorted(why.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        one, several = _LACKS.get(status, _NO_VERDICT)
        yield f"{count} {one if count == 1 else several}{side}"


def _lacks(row: Row) -> tuple[str, str]:
    """What became of a side that was not measured, and which it is where the other was."""
    a, b = row.a.status in MEASURED, row.b.status in MEASURED
    side = "" if a == b else " in B" if a else " in A"
    return row.a.status if b and not a else row.b.status, side


def verdict_sentences(comparison: Comparison) -> tuple[str, ...]:
    """The comparisons that stand out, with size and interval: the slower ones, then the faster ones."""
    if len(comparison.rows) == 1:
        row = comparison.rows[0]
        wall = row.verdicts.wall
        why = f": {shortened(printable(wall.reason.rstrip('.')), _OF_REASON)}" if wall.reason and not wall.ratio else ""
        return (f"B against A, {printable(row.name)}: {row_words(row)}{why}.",)
    sentences = []
    for verdict in ("slower", "faster"):
        rows = [row for row in comparison.rows if row.verdicts.wall.verdict == verdict]
        rows.sort(key=lambda row: abs(row.verdicts.wall.estimate.mean) if row.verdicts.wall.estimate else 0.0)
        named = [f"{printable(row.name)}, {row_words(row)}" for row in reversed(rows)]
        if named:
            more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            sentences.append(f"{'; '.join(named[:_NAMED])}{more}.")
    return tuple(sentences)


def row_words(row: Row) -> str:
    """The verdict on a row, with a mark where a side is unproved: `slower by 3.1 % [2.2 – 4.0] (unproved)`."""
    return verdict_words(row.verdicts.wall) + (" (unproved)" if row.unproved else "")


def verdict_words(judgement: Judgement) -> str:
    """`slower by 3.1 % [2.2 – 4.0]`, `equivalent: +0.4 % [−0.6 to +1.4]`, `invalid`."""
    if judgement.ratio is None:
        return judgement.verdict
    return _with_size(judgement.verdict, judgement.ratio, {"faster": 1, "slower": -1})


def quantity_of_rows(rows: Sequence[Row]) -> Quantity:
    """What the work of both sides of all rows is counted in."""
    return quantity_of(side.cell for row in rows for side in (row.a, row.b))


def cpu_words(row: Row) -> str:
    """The same of processor time for the same work: `more by 3.0 % [2.1 – 3.9]`; a dash where it was not recorded."""
    verdict, interval = row.verdicts.cpu_verdict, row.verdicts.cpu_ratio
    if verdict is None or interval is None:
        return NOTHING
    return _with_size(verdict, interval, {"more": 1, "less": -1})


def row_notes(comparison: Comparison, row: Row) -> tuple[str, ...]:
    """What must be said of one row: why it is invalid, where the clocks differ, what would decide it."""
    wall = row.verdicts.wall
    notes = [text.rstrip(".") for text in (wall.reason, row.disagreement) if text is not None]
    if wall.verdict == "undecided" and wall.estimate is not None:
        notes += filter(None, [_what_would_decide(comparison, wall)])
    return tuple(printable(f"{row.name}: {note}.") for note in notes)


def count_words(comparison: Comparison, row: Row) -> str:
    """The trials or pairs behind a row: `8 pairs`, `5 + 5 trials`."""
    estimate = row.verdicts.wall.estimate
    if estimate is not None and (estimate.method.startswith("paired") or estimate.method in _OF_PAIRS):
        return plural(estimate.count, "pair")
    if PHRASES[comparison.kind].one_decision:
        return plural(comparison.blocks, "pair")
    counts = (side.measured.trials if side.measured else 0 for side in (row.a, row.b))
    return f"{' + '.join(str(count) for count in counts)} trials"


def _decimals(low: float, high: float) -> int:
    """Decimals for percents that lie `low` to `high`: two significant digits of half the interval, at most two."""
    half = abs(high - low) / 2
    return 0 if half >= 10 else 1 if half >= 0.1 else 2


def _with_size(verdict: str, interval: Interval, signs: dict[str, int]) -> str:
    extremes = [value for value in (interval.value, interval.low, interval.high) if value is not None]
    if max(extremes) >= _FACTOR or min(extremes) <= 1 / _FACTOR:
        return f"{verdict}: {ratio(interval)}"
    sign = signs.get(verdict)
    low, high = interval.low, interval.high
    if low is None or high is None:
        return f"{verdict}: {_signed(100 * (interval.value - 1), 1)} %, no interval"
    low, high, value = 100 * (low - 1), 100 * (high - 1), 100 * (interval.value - 1)
    decimals = _decimals(low, high)
    if sign is None:
        bounds = f"[{_signed(low, decimals)} to {_signed(high, decimals)}]"
        return f"{verdict}: {_signed(value, decimals)} % {bounds}"
    low, high = sorted((sign * low, sign * high))
    return f"{verdict} by {sign * value:.{decimals}f} % [{low:.{decimals}f} – {high:.{decimals}f}]"


def _signed(value: float, decimals: int) -> str:
    return signed(value, decimals).replace("-", "−")


def _what_would_decide(comparison: Comparison, wall: Judgement) -> str:
    assert wall.estimate is not None
    phrases = PHRASES[comparison.kind]
    if wall.estimate.standard_error is None:
        return phrases.least_in_words and f"the least is {phrases.least_in_words}"
    alone = judge(wall.estimate, wall.margins).verdict
    if alone != "undecided":
        return f"judged alone it would be {alone}, among {wall.comparisons} comparisons it is not"
    if wall.blocks_needed is None:
        return phrases.no_count if comparison.measured else ""
    return phrases.to_decide.format(count=wall.blocks_needed)
