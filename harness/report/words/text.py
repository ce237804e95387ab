"""Numbers and statuses as a reader sees them, the same on the page, on the terminal and in Markdown."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise, takewhile

from harness.analysis import Interval
from harness.analysis.cells import UNPROVED, CellStatus, CellTrials
from harness.spec.naming import parts_of
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
_FEWEST = 12
"""Characters that names are cut to at least."""
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
    "input": "a process was fed other examples than the seed gives it",
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
_EVEN = 0.15
"""Half an interval's width on the log scale, up to which it lies nearly evenly about its value."""
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
    """`± 1.2 %`: half the interval's width on the log scale; its bounds where it lies unevenly about its value."""
    half = interval.relative_half_width
    if half is None or half > _EVEN:
        return bounds(interval)
    return f"± {significant(100 * half, 2)} %"


def plus_minus_now(interval: Interval) -> str:
    """The same `in these minutes`, of a throughput by itself."""
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
    unit, factor = unit_of(value)
    return f"{significant(value * factor)} {unit}"


def unit_of(value: float) -> tuple[str, float]:
    """The unit that so many seconds are told in, and how many of it a second has."""
    if value >= 1 or value == 0:
        return "s", 1.0
    return ("ms", 1e3) if value >= 1e-3 else ("µs", 1e6)


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
    return _cut(one_line(text), limit)


def _cut(text: str, limit: int) -> str:
    tail = limit // 3
    return text if len(text) <= limit else f"{text[: limit - tail - 1]}…{text[-tail:]}"


def names_apart(names: Sequence[str], limit: int) -> list[str]:
    """The names of what stands side by side, a line each, of `limit` characters where they can be told apart by so few.

    Where one is longer, what all say goes from all of them; then what several have in common. The mark of what is
    unproved stays.
    """
    lines = [one_line(name) for name in names]
    if max(map(len, lines), default=0) <= limit:
        return lines
    marks = [UNPROVED if line.endswith(UNPROVED) else "" for line in lines]
    bare = [line.removesuffix(mark) for line, mark in zip(lines, marks, strict=True)]
    without = _own_parts(bare)
    if len(bare) > 1 and all(without) and len(set(without)) == len(set(bare)):
        bare = without
    cut = _cut_apart(set(bare), limit - max(map(len, marks)))
    return [cut[name] + mark for name, mark in zip(bare, marks, strict=True)]


def _own_parts(names: Sequence[str]) -> list[str]:
    """What each says and not all: a thing is left out with all its words, or not at all."""
    parts_in = [["", *parts_of(name), ""] for name in names]
    shared = set.intersection(*map(_once, parts_in))
    own = ([part for part, after in pairwise(of[1:]) if _told(part, after) not in shared] for of in parts_in)
    return [" ".join(parts).strip(",") for parts in own]


def _told(part: str, after: str) -> tuple[str, ...]:
    """The part, and with a plain word, such as a strategy's name, the one behind it, which it may belong to."""
    part, after = part.rstrip(","), after.rstrip(",")
    return (part, after) if part.islower() and part.replace("_", "").isalpha() else (part,)


def _once(parts: Sequence[str]) -> set[tuple[str, ...]]:
    """The parts and pairs of neighbours that stand there once."""
    plain = [part.rstrip(",") for part in parts]
    counts: Counter[tuple[str, ...]] = Counter([*((part,) for part in plain), *pairwise(plain)])
    return {told for told, count in counts.items() if count == 1}


def _cut_apart(names: Collection[str], limit: int) -> dict[str, str]:
    """Each of these names in `limit` characters, or in a few more where so few would not tell them apart."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_cut(name, limit)].append(name)
    return {
        name: short
        for cut, of in alike.items()
        for name, short in (_without_ends(of, limit) if len(of) > 1 else {of[0]: cut}).items()
    }


def _without_ends(names: Collection[str], limit: int) -> dict[str, str]:
    """Each name without most of what all begin and end with: what is between these tells them apart. Of that the middle
    goes, too, where it is long."""
    begin = _in_common(names)
    end = _in_common([name[begin:][::-1] for name in names])
    middles = {name: name[begin : len(name) - end] for name in names}
    short = _cut_apart(middles.values(), max(limit - 2, _FEWEST))
    room = max(0, limit - max(map(len, short.values())) - 2) // 2
    return {
        name: f"{name[: min(room, begin)]}…{short[middle]}…{name[len(name) - min(room, end) :]}"
        for name, middle in middles.items()
    }


def _in_common(lines: Collection[str]) -> int:
    """With how many of the same letters all begin."""
    letters = (len(set(each)) for each in zip(*lines, strict=False))
    return sum(1 for _ in takewhile(lambda count: count == 1, letters))


def not_tried_again(trials: int) -> str:
    """What so many planned trials are of that nothing will run."""
    one = trials == 1
    cells = "is of a cell that is" if one else "are of cells that are"
    return f"{trials:,} {cells} not supported here, which {'is' if one else 'are'} not tried again"


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
