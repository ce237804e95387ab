"""What the gate says: why a test failed, what would decide it, and the table at the end."""

from collections.abc import Sequence

from harness.analysis.comparison.result import Comparison
from harness.analysis.estimates.verdict import Judgement, Margins, judge
from harness.pytest_plugin.options import GateOptions
from harness.pytest_plugin.result import GateResult
from harness.report.comparison.words import count_words, cpu_words, row_words
from harness.report.words.text import NOTHING, listed, ratio, significant
from harness.spec.quantity import SEVERAL
from harness.visible import one_line, plural, printable

HEADINGS = ("test", "cell", "wall time", "CPU time an example", "trials")
UNKNOWN_DRIFT = (
    "how much this machine's speed drifts between the two runs is not known: --gate-delta sets what counts, and "
    "--gate-against needs no such margin"
)
_NO_VERDICT = {
    "failed": "failed",
    "skipped": "skipped",
    "saved": "saved",
    "proved": "right, not timed",
    "unproved": "unproved, not timed",
}


def failure(result: GateResult) -> str:
    """Why a test fails: how much slower, by which rule, and how to see it again."""
    if result.comparison is None or result.row is None:
        return "\n".join([printable(f"{result.name}: {result.reason}"), *_ways(result)])
    lines = [
        one_line(f"{result.name}: {row_words(result.row)} against {result.comparison.title_a}"),
        *_figures(result),
        _labelled("sides", _sides(result.comparison)),
        *(_labelled("note", note) for note in _notes(result)),
        *_ways(result),
    ]
    return "\n".join(lines)


def undecided(result: GateResult) -> str:
    """What is known, and what would decide it."""
    if result.comparison is None or result.row is None:
        return one_line(f"{result.name}: undecided")
    lines = [
        one_line(f"{result.name}: {_wall(result)}; {_in_doubt(result)}"),
        _labelled("sides", _sides(result.comparison)),
        *(_labelled("note", note) for note in _notes(result)),
        *_ways(result),
    ]
    return "\n".join(lines)


def _in_doubt(result: GateResult) -> str:
    if not _drifted(result) or result.believed is None:
        return "no regression is shown or ruled out"
    return f"not by more than {100 * result.believed.delta:.3g} %, which may be the machine's drift"


def _drifted(result: GateResult) -> bool:
    """Whether it is slower, and that is no failure because the machine may have drifted as much."""
    return result.end == "undecided" and result.row is not None and result.row.verdicts.wall.verdict == "slower"


def properties(result: GateResult) -> list[tuple[str, object]]:
    """For pytest's JUnit file: verdict, ratio and its interval."""
    found: list[tuple[str, object]] = [("training_gate.verdict", result.verdict)]
    if result.ratio is not None:
        found.append(("training_gate.ratio", result.ratio))
    if result.ci95 is not None:
        found.append(("training_gate.ci95", f"{result.ci95[0]} {result.ci95[1]}"))
    if result.unproved is not None:
        found.append(("training_gate.unproved", result.unproved))
    if result.cpu is not None:
        found.append(("training_gate.cpu", result.cpu))
    return found


def title(options: GateOptions) -> str:
    """The heading of the table."""
    return {
        "against": f"training gate: the working tree against {options.against}",
        "baseline": f"training gate: the working tree against baseline {options.baseline}",
        "save": f"training gate: saved as baseline {options.save}",
        "prove": "training gate: proved, not timed",
        "off": "training gate",
    }[options.mode]


def table(found: Sequence[tuple[str, GateResult]]) -> list[str]:
    """A row a test, the rule that decided, and where the records are."""
    counted = {result.quantity for _, result in found}
    quantity = counted.pop() if len(counted) == 1 else SEVERAL
    rows = [tuple(map(quantity.worded, HEADINGS)), *((test, *_cells(result)) for test, result in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    judged = [result for _, result in found if result.comparison is not None]
    if judged:
        lines += _rule_lines(judged)
    places = list(dict.fromkeys(result.records for _, result in found if result.records))
    return [*lines, *(f"records: {place}" for place in places)]


def _cells(result: GateResult) -> tuple[str, str, str, str]:
    if result.comparison is not None and result.row is not None:
        trials = count_words(result.comparison, result.row)
        return one_line(result.name), _wall(result), cpu_words(result.row), trials
    said = _NO_VERDICT.get(result.end, result.end)
    if result.end == "unproved":
        said = f"{said}: {one_line(result.reason)}"
    if result.end == "saved" and result.throughput is not None:
        mark = " (unproved)" if result.reason else ""
        said = f"saved: {significant(result.throughput.value)} {result.quantity.unit}{mark}"
        return one_line(result.name), said, NOTHING, plural(result.throughput.count, "trial")
    return one_line(result.name), said, NOTHING, NOTHING


def _wall(result: GateResult) -> str:
    """`undecided: +0.4 % [−0.6 to +1.4]`; `undecided` alone where no block gave a pair."""
    assert result.row is not None
    words = row_words(result.row)
    return result.end if words == "invalid" else words


def _rule_lines(judged: Sequence[GateResult]) -> list[str]:
    first = judged[0].comparison
    assert first is not None
    count = len({result.comparison.rows[0].b.cell.cell_id for result in judged if result.comparison is not None})
    lines = [
        f"{_margins(first.margins)}; {_holm(count)}",
        f"wall time: throughput of B against A [95 % interval]; {one_line(_sides(first))}",
    ]
    cells_of: dict[str, dict[str, None]] = {}
    for result in judged:
        for note in result.comparison.remarks if result.comparison is not None else ():
            cells_of.setdefault(note, {})[result.name] = None
    return [
        *lines,
        *(one_line(note if len(names) == count else f"{listed(names)}: {note}") for note, names in cells_of.items()),
    ]


def _figures(result: GateResult) -> list[str]:
    assert result.comparison is not None
    assert result.row is not None
    wall = result.row.verdicts.wall
    lines = []
    if wall.ratio is not None:
        lines.append(_labelled("wall", f"ratio {ratio(wall.ratio)}: throughput of the working tree over the other's"))
    lines.append(_labelled("CPU", f"processor time {result.quantity.each}: {cpu_words(result.row)}"))
    p = "" if wall.p_different is None else f", p {significant(wall.p_different, 2)}"
    noise = "" if wall.noise is None else f", noise {significant(100 * wall.noise, 2)} %"
    behind = count_words(result.comparison, result.row)
    return [*lines, _labelled("rule", f"{_margins(wall.margins)}; {_holm(wall.comparisons)}{p}; {behind}{noise}")]


def _margins(margins: Margins) -> str:
    delta, epsilon = (f"{100 * share:.3g} %" for share in (margins.delta, margins.epsilon))
    return f"delta {delta} ({margins.source}), epsilon {epsilon}"


def _holm(count: int) -> str:
    return "one cell, so nothing to correct for" if count == 1 else f"Holm over {count} cells"


def _notes(result: GateResult) -> list[str]:
    """What must be said of the comparison besides its figures."""
    assert result.comparison is not None
    assert result.row is not None
    wall = result.row.verdicts.wall
    said = [wall.reason, result.row.disagreement, _to_decide(wall, result.comparison.of_one_run)]
    if _drifted(result):
        said.append(UNKNOWN_DRIFT)
    return [*(note for note in said if note is not None), *result.comparison.remarks]


def _to_decide(wall: Judgement, of_one_run: bool) -> str | None:
    """Of an undecided verdict that has an interval, what would decide it; an earlier run's side is saved again."""
    if wall.verdict != "undecided" or wall.estimate is None or wall.estimate.standard_error is None:
        return None
    alone = judge(wall.estimate, wall.margins).verdict
    saved = "" if of_one_run else ", and save it again with as many"
    if alone != "undecided":
        return (
            f"by itself it would be {alone}; for one of {wall.comparisons} cells Holm asks for more "
            f"(--gate-blocks N{saved})"
        )
    if wall.blocks_needed is None:
        return "no number of blocks up to 1,000 would decide it: a quieter machine would (python -m harness doctor)"
    count = wall.blocks_needed
    flags = f"--gate-blocks {count}{saved}"
    return f"to decide: about {count} blocks, were mean and spread to stay as they are ({flags})"


def _ways(result: GateResult) -> list[str]:
    return [_labelled(name, text) for name, text in (("again", result.again), ("records", result.records)) if text]


def _sides(comparison: Comparison) -> str:
    return f"A is {comparison.title_a}, B is {comparison.title_b}"


def _labelled(name: str, text: str) -> str:
    return f"  {name:<8} {one_line(text)}"
