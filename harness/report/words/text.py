"""Numbers and statuses as a reader sees them, the same on the page, on the terminal and in Markdown."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise, takewhile

from harness.analysis import Interval
from harness.analysis.cells import CellStatus, CellTrials
from harness.spec.work import Cell
from harness.visible import one_line, printable
from harness.visible import percent as percent
from harness.visible import significant as significant

NOTHING = "–"
NOT_JUDGED = "Not judged: the sweep has not finished."
IN_THESE_MINUTES = "in these minutes"
"""Stands by every interval of a throughput or step time by itself, which tells nothing of the machine an hour later."""
OWN_INTERVAL = f"95 % {IN_THESE_MINUTES}"
"""The head of their column."""
STATUS_WORDS: dict[str, str] = {
    "ok": "ok",
    "unproved": "unproved",
    "wrong_result": "wrong result",
    "unsupported": "not supported here",
    "out_of_memory": "out of memory",
    "timeout": "timed out",
    "crashed": "crashed",
    "interrupted": "interrupted",
    "missing": "not run",
}
STATUS_MEANING: dict[CellStatus, str] = {
    "ok": "every check passed and it was measured",
    "unproved": "it was measured and nothing was found wrong, but a fault could have gone unseen",
    "wrong_result": "it computes the wrong thing, so it has no throughput",
    "unsupported": "this machine or the framework cannot run it",
    "out_of_memory": "it needs more memory than there is",
    "timeout": "it made no progress until its time was up",
    "crashed": "its process died or raised an error",
    "interrupted": "the sweep was stopped while it ran",
    "missing": "the sweep ended before its turn came; --resume runs it",
}
CHECK_WORDS = {
    "reduction": "the sum over replicas is not the exact sum",
    "update": "one training step does not give the one-device reference's weights",
    "replicas_agree": "replicas hold different weights afterwards",
    "updates_applied": "updates were lost or made twice",
    "late": "an update after the last window does not give the one-device reference's weights",
    "loss": "the reported loss is not the mean over the global batch",
    "loss_finite": "the loss is not finite",
    "losses_agree": "the losses are not those of the same step run without compiling",
    "own_check": "its own check failed",
}
PHASE_WORDS: dict[str, str] = {
    "start_s": "process start",
    "build_s": "build",
    "first_step_s": "first step",
    "check_s": "checks",
    "warmup_s": "warm-up",
    "steady_s": "steady state",
    "alone_s": "workers alone",
    "waiting_s": "waiting for its turn",
    "exit_s": "exit",
}
STACKED = ("start_s", "build_s", "first_step_s", "check_s", "exit_s", "warmup_s", "steady_s", "alone_s")
"""Phases of a trial in the order in which they are drawn. Waiting is left out: it is the time of the others."""
FIXED_PARTS = "process start, build, first step, checks and exit"
"""Of `Phases.fixed_s`."""
_USELESS = 100
"""An interval whose ends are further apart than this, two trials corrected for many comparisons, says nothing."""


def is_useless(interval: Interval) -> bool:
    """Whether there is an interval, and it is so wide that it says nothing."""
    return interval.low is not None and interval.high is not None and interval.high > _USELESS * interval.low


def bounds(interval: Interval, digits: int = 3) -> str:
    """`[low – high]`, or why there is none."""
    if interval.low is None or interval.high is None:
        return "no interval"
    if is_useless(interval):
        return f"[wider than {_USELESS}-fold]"
    return f"[{significant(interval.low, digits)} – {significant(interval.high, digits)}]"


def bounds_now(interval: Interval) -> str:
    """`[low – high] in these minutes`, of a throughput by itself."""
    return f"{bounds(interval)} {IN_THESE_MINUTES}" if interval.known else bounds(interval)


def plus_minus(interval: Interval) -> str:
    """`± 1.2 %`: half the interval's width on the log scale, or `no interval`."""
    half = interval.relative_half_width
    if half is None:
        return "no interval"
    if is_useless(interval):
        return f"± over {_USELESS}-fold"
    if half > 1:
        return f"×/÷ {significant(math.exp(half), 2)}"
    return f"± {significant(100 * half, 2)} %"


def plus_minus_now(interval: Interval) -> str:
    """`± 1.2 % in these minutes`, of a throughput by itself."""
    return f"{plus_minus(interval)} {IN_THESE_MINUTES}" if interval.known else plus_minus(interval)


def ratio(interval: Interval, digits: int = 3) -> str:
    """`1.88× [1.86 – 1.89]`."""
    return f"{significant(interval.value, digits)}× {_within(interval, digits)}"


def share(interval: Interval) -> str:
    """`94 % [93 – 95]`, for efficiencies."""
    return f"{significant(100 * interval.value, 3)} % {_within(interval.scaled(100))}"


def _within(interval: Interval, digits: int = 3) -> str:
    """The bounds, as they stand behind a value in a sentence."""
    return bounds(interval, digits=digits) if interval.known else "(no interval)"


def share_of(part: float) -> str:
    """A plain share: `12 %`."""
    return f"{significant(100 * part, 2)} %"


def signed(value: float, decimals: int) -> str:
    """`+0.4`, `-1.2`; what rounds to nothing has no sign."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text


def seconds(value: float | None) -> str:
    """Seconds, milliseconds or microseconds, three significant digits."""
    if value is None:
        return NOTHING
    if value >= 1 or value == 0:
        return f"{significant(value)} s"
    return f"{significant(value * 1e3)} ms" if value >= 1e-3 else f"{significant(value * 1e6)} µs"


def size(value: int | None) -> str:
    """Bytes in binary units."""
    if value is None:
        return NOTHING
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{value} B"


def shortened(text: str, limit: int = 120) -> str:
    """At most `limit` characters, whatever somebody called it; the middle goes. One line."""
    text = one_line(text)
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def names_apart(names: Sequence[str], limit: int) -> list[str]:
    """The names of what stands side by side, a line each, of `limit` characters where they can be told apart by so few.

    Where one is longer, words that all share go from all of them; then what several have in common at both ends.
    """
    lines = [one_line(name) for name in names]
    if max(map(len, lines), default=0) <= limit:
        return lines
    without = _own_words(lines)
    if len(lines) > 1 and all(without) and len(set(without)) == len(set(lines)):
        lines = without
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for line in lines:
        alike[shortened(line, limit)].add(line)
    cut = {line: short for short, of in alike.items() for line in of} | {
        line: short for of in alike.values() if len(of) > 1 for line, short in _without_ends(of, limit).items()
    }
    return [cut[line] for line in lines]


def _own_words(lines: Sequence[str]) -> list[str]:
    """Each line's words without those that all have. A key goes only with its value and a number only with what it is
    of: words and numbers with the same neighbour in every line."""
    words_of = [["", *line.split(), ""] for line in lines]
    shared = set.intersection(*map(_once, words_of))
    kept = ([w for b, w, a in zip(of, of[1:], of[2:], strict=False) if _told(b, w, a) not in shared] for of in words_of)
    return [" ".join(words).strip(",") for words in kept]


def _told(before: str, word: str, after: str) -> tuple[str, ...]:
    """The word, and the one beside it without which it says nothing."""
    if word.rstrip(",").isdecimal():
        return before, word
    return (word, after) if word.islower() and word.replace("_", "").isalpha() else (word,)


def _once(words: Sequence[str]) -> set[tuple[str, ...]]:
    """The words and pairs of neighbours that stand there once."""
    counts: Counter[tuple[str, ...]] = Counter([*((word,) for word in words), *pairwise(words)])
    return {told for told, count in counts.items() if count == 1}


def _without_ends(lines: Collection[str], limit: int) -> dict[str, str]:
    """Each line without most of what all begin and end with: what is between these tells them apart."""
    begin = _in_common(lines)
    end = _in_common([line[begin:][::-1] for line in lines])
    middles = {line: line[begin : len(line) - end] for line in lines}
    room = max(0, limit - max(map(len, middles.values())) - 2) // 2
    return {
        line: f"{line[: min(room, begin)]}…{middle}…{line[len(line) - min(room, end) :]}"
        for line, middle in middles.items()
    }


def _in_common(lines: Collection[str]) -> int:
    """With how many of the same letters all begin."""
    letters = (len(set(each)) for each in zip(*lines, strict=False))
    return sum(1 for _ in takewhile(lambda count: count == 1, letters))


def sentence(text: str) -> str:
    """The text with a capital at its beginning; `data_parallel` and `package.module:function` are names and stay."""
    first = text.split(" ", 1)[0]
    return text if ":" in first[:-1] or "_" in first else text[:1].upper() + text[1:]


def listed(names: Iterable[str], most: int = 4) -> str:
    """`a, b and c`, or `a, b, c and 7 more`."""
    items = list(names)
    if len(items) > most:
        return f"{', '.join(items[: most - 1])} and {len(items) - most + 1} more"
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]])) if items else ""


def described(cell: CellTrials) -> str:
    """As `describe`; *no strategy on all 2 cores* where the records show that one process had them all."""
    words = describe(cell.cell, cell.all_cores)
    return f"{words}, {cell.engine_told}" if cell.engine_told else words


def describe(cell: Cell, all_cores: int = 0) -> str:
    """The cell in a few plain words: what to type after `tf.distribute`, in effect."""
    return printable(cell.in_words(all_cores))
