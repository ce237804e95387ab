"""Where a step's time goes: the sentence that answers, and a table for each cell."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.advice import advice
from harness.analysis.estimates.intervals import Interval
from harness.analysis.explain import Explanation
from harness.analysis.parts import COUNTS, PartName, StepPart
from harness.analysis.workers import WorkerTimes
from harness.errors import HarnessError
from harness.record.explain import ARMS
from harness.record.trial import TraceRecord
from harness.report.export.rows import interval_row
from harness.report.tables.table import Head, Table
from harness.report.words.pipelines import LIMITS, limit_of_rate
from harness.report.words.text import IN_THESE_MINUTES, NOTHING, listed, ratio, significant
from harness.spec.cell import cell_names, trained
from harness.trial.engines import catalogue_of
from harness.visible import printable

MEANING: Mapping[PartName, str] = {
    "input": "waiting for batches",
    "communication": "adding up gradients, as far as the step waits for it",
    "update": "the optimizer's update of the weights",
    "pull": "fetching weights from the servers",
    "push": "sending gradients to the servers, which update the weights by them",
    "dispatch": "calling the step: Python, the strategy, the executor",
    "contention": "what forward and backward lose because other replicas compute beside them",
    "compute": "forward and backward of one replica by itself",
    "unexplained": "what the parts do not add up to",
    "forward": "forward, within {within}",
    "backward": "backward, within the same",
    "hidden": "adding up gradients behind the same: what it takes by itself, less what the step waits for",
    "wait": "within communication: waiting until the slowest worker has its gradients, by the sum of one number",
    "host": "what each step is faster by where up to ten are made in one call: Python and the call, beside dispatch",
}
WORDS_OF_TRACE: Mapping[str, str] = {
    "compute": "some op of forward or backward runs",
    "update": "none of these, and some op of the optimizer runs",
    "communication": "nothing but a collective runs",
    "input": "nothing but the fetching of the next batch runs",
    "rest": "none of these runs: Python, the strategy, the executor",
}
METHOD = (
    "Each block has a fresh trial of the step, and of the same with one thing left out, alive together and taking "
    "turns. Every trial of a step proves its first updates; then an instrument goes on with a program that is held "
    "against the step's: it lacks what its name says and nothing else. A part is a difference of their times, its "
    "interval Student's t over blocks. The rate of a pipeline is of batches that are drawn and not trained on, beside "
    "that of the step on batches that lie on the devices."
)


def explain_lines(explanations: Sequence[Explanation]) -> list[str]:
    """One sentence for each cell, then what could not be told."""
    names = cell_names([explanation.cell for explanation in explanations])
    lines = [f"{names[found.cell.cell_id]}{_answer(found)}" for found in explanations]
    for found in explanations:
        lines += [f"{names[found.cell.cell_id]}: {_passed(found.staleness)}"] if found.staleness is not None else []
        lines += [f"{names[found.cell.cell_id]}: {_waited_for(worker)}" for worker in found.slow_workers]
        lines += [f"{names[found.cell.cell_id]}: {words}" for words in _of_pipeline(found)]
        lines += [f"{names[found.cell.cell_id]}: {_of_trace(found, found.trace)}"] if found.trace else []
        lines += [
            f"{names[found.cell.cell_id]}: not told, since '{arm}' ({ARMS[arm]}) was {printable(reason)}"
            for arm, reason in found.lacking.items()
        ]
    return lines


def part_rows(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """A row a part of each cell's step, as `PART_COLUMNS` has them, of cells whose parts are known; those that could
    not be told last, with what they lack and no share."""
    names, rows = cell_names([found.cell for found in explanations]), []
    for found in explanations:
        whole = {
            "cell_id": found.cell.cell_id,
            "cell": names[found.cell.cell_id],
            "bound_by": found.bound_by,
            "step_time_s": found.step_time_s,
            "trials_needed": trials_needed(found),
            **interval_row("input_over_model", found.headroom),
            "input_is_the_limit": found.input_limit and LIMITS.get(found.input_limit),
        }
        words = _advice_of_parts(found)
        for part in (*found.parts, *found.within) if found.step_time_s else ():
            rows.append(
                {
                    **whole,
                    "part": part.name,
                    "seconds": part.value * (found.step_time_s or 0.0),
                    "share": part.value,
                    "share_low": part.low,
                    "share_high": part.high,
                    "most_gain": found.gain_without(part),
                    "advice": words[part.name] if part in found.all_binding else None,
                    "lacks": None,
                }
            )
        for name, arms in found.untold.items() if found.step_time_s else ():
            rows.append({**whole, "part": name, "lacks": " ".join(arms)})
    return rows


def explain_tables(explanations: Sequence[Explanation]) -> list[Table]:
    """The parts of each cell's step, and what a trace has of them."""
    names = cell_names([explanation.cell for explanation in explanations])
    tables = [table for found in explanations if found.parts for table in _tables(names[found.cell.cell_id], found)]
    return tables + [_trace_table(names[found.cell.cell_id], found) for found in explanations if found.traced]


def _answer(found: Explanation) -> str:
    if not found.parts or found.step_time_s is None:
        return ": no block is complete, so nothing can be told"
    step = f"its step of {_ms(found.step_time_s)}"
    match found.bound_by:
        case "not_judged":
            so_far = ", ".join(_sized(share) for share in found.overheads)
            return f": not judged before the run has finished. Of {step} so far: {so_far}"
        case "undecided":
            return f": undecided{_undecided(step, found)}"
        case "mixed":
            several = ", ".join(_sized(share) for share in found.overheads if share.counts)
            return f": bound by several parts of {step}: {several}{_beside(found)}.{_advice(found)}"
    share = found.binding
    assert share is not None
    more = "" if share.most_gain is None else f"; without that at most {share.most_gain:.2f}× as fast"
    if share.name == "compute":
        more = f", and nothing else{' but dispatch' if found.free else ''} takes {COUNTS:.0%}"
    if share.name == "input" and found.input_limit == "now":
        more += ", and until its pipeline is faster nothing else can be won"
    size = f"{_percent(share.value)} {_interval(share)} of {step}"
    return f" is {share.binds_as}-bound: {size} is {_meaning(share, found)}{more}{_beside(found)}.{_advice(found)}"


def _sized(share: StepPart) -> str:
    return f"{share.name} {_percent(share.value)} {_interval(share)}"


def _undecided(step: str, found: Explanation) -> str:
    """Why, and what would decide it: more trials tell nothing of a part that has no instrument."""
    hidden = [*_untold(found), *(_hides(s) for s in found.hiding if s.surely_counts or s.overlaps), *_free_calls(found)]
    why = f", since {listed(hidden, most=7)}" if hidden else ""
    if not found.open_parts:
        return why
    open_ones = ", ".join(f"{s.name} {_interval(s)}" for s in found.open_parts)
    told = [_sized(share) for share in found.overheads if share.counts and share not in found.open_parts]
    beside = f" beside {listed(told)}" if told else ""
    return f"{why}. Of {step} take {open_ones}{beside}; {_more_trials(found)}"


def _more_trials(found: Explanation) -> str:
    if found.too_near:
        near = listed(share.name for share in found.too_near)
        return f"{near}: too near {COUNTS:.0%} for such a scatter, --trials {found.most_trials} would not tell"
    more = "more --trials" if found.blocks_needed is None else f"about --trials {found.blocks_needed}"
    return f"{more} would tell whether any takes {COUNTS:.0%}"


def trials_needed(found: Explanation) -> int | None:
    """How many trials would decide it; None where it is decided, or no number is known."""
    return found.blocks_needed if found.bound_by == "undecided" else None


def _beside(found: Explanation) -> str:
    """What else may bind a step that something binds."""
    return "".join(f"; {text}" for text in (*_untold(found), *map(_hides, found.hiding), *_free_calls(found)))


def _free_calls(found: Explanation) -> list[str]:
    """Why a dispatch that takes much of a step is none of what binds it."""
    return [
        f"dispatch by itself takes {_percent(share.value)} {_interval(share)}, but several steps in one call save at "
        f"most {_percent(max(0.0, found.part('host').high or 0.0))}"
        for share in found.free
    ]


def _untold(found: Explanation) -> list[str]:
    """Why each arm gave nothing is in a line of its own."""
    lacks = {name: listed(f"'{arm}'" for arm in arms) for name, arms in found.untold.items()}
    return [f"{name} could not be told, for lack of {arms}" for name, arms in lacks.items()]


def _hides(share: StepPart) -> str:
    size = f"{_percent(share.value)} {_interval(share)}"
    if share.name != "unexplained":
        return f"{share.name} is {size}, below 0, so that parts overlap"
    if share.overlaps:
        return f"parts overlap: together they take {_percent(1 - share.value)} of the step ({size} are unexplained)"
    return f"{size} are unexplained{', so that parts may overlap' if share.may_overlap else ''}"


def _advice(found: Explanation) -> str:
    words = advised(found) or ""
    if found.bound_by != "mixed":
        return f" Try {words}." if words else ""
    return f" {words[0].upper()}{words[1:]}." if words else ""


def advised(found: Explanation) -> str | None:
    """What makes the part that binds the step smaller, of what the cell's engine has; of several that do which part
    each is for."""
    of_parts = _advice_of_parts(found)
    if found.bound_by != "mixed":
        return next(iter(of_parts.values()), None)
    by_words: dict[str, list[str]] = {}
    for name, words in of_parts.items():
        by_words.setdefault(words or "", []).append(name)
    return "; ".join(f"for {listed(names)} try {words}" for words, names in by_words.items() if words) or None


def _advice_of_parts(found: Explanation) -> dict[PartName, str | None]:
    """Of each part that binds the step, the largest first."""
    if not found.all_binding:
        return {}
    try:
        catalogue = catalogue_of(trained(found.cell).engine)
        return {part.name: advice(part.name, found, catalogue) or None for part in found.all_binding}
    except (HarnessError, KeyError):  # an engine of somebody's own that is not here, or an op or a strategy that is not
        return dict.fromkeys([part.name for part in found.all_binding])


def _of_pipeline(found: Explanation) -> Iterator[str]:
    """What the pipeline gives by itself, beside the rate of the step on batches that lie there already."""
    if found.headroom is None or found.input_limit is None:
        return
    told = f"by the rate of its pipeline, {limit_of_rate(found.input_limit, found.headroom)}"
    if found.outpaced:
        told += "; the step was faster, on batches that waited since the turns of others: a longer --window shows it"
    if found.input_limit == "later" and any(share.name == "input" for share in found.all_binding):
        told += "; what input costs is not its rate: cores taken from the step, bursts, or bringing batches to devices"
    if found.input_limit == "now":
        told += "; sweep --work pipeline --cut source,decode,cache,shuffle says which stage that is"
    yield told


def _of_trace(found: Explanation, trace: TraceRecord) -> str:
    """What the profile says beside the arms, and why it is not there."""
    why_not = "" if trace.path is not None else printable(trace.reason or "no reason was recorded")
    if not found.traced and why_not:
        return f"no trial was traced, since {why_not}"
    return _differences(found) + (f". The trace was not kept: {why_not}" if why_not else "")


def _differences(found: Explanation) -> str:
    apart = [part for part in found.traced if part.differs]
    if not found.traced:
        return "one trial was traced, and its profile tells no part of the step that the arms tell"
    if any(part.by_arms.low is None for part in found.traced):
        return "one traced trial is beside the arms, which have no intervals of one block"
    if not apart:
        only = {part.by_arms.name for part in found.traced} == {"input"}
        told = "can be compared by its input alone, which is within the arms' interval"
        return f"one traced trial {told if only else 'agrees with the arms within their intervals'}"
    told = "; ".join(
        f"{part.by_arms.name} {_percent(part.share)} where the arms have {_percent(part.by_arms.value)} "
        f"{_interval(part.by_arms)}"
        for part in apart
    )
    return f"one traced trial disagrees with the arms: {told}"


def _trace_table(name: str, found: Explanation) -> Table:
    rows = [
        (
            part.by_arms.name,
            _ms(part.seconds),
            _percent(part.share),
            _percent(part.by_arms.value),
            _interval(part.by_arms),
            WORDS_OF_TRACE[part.by_arms.name],
        )
        for part in found.traced
    ]
    heads = (Head("part", numeric=False), Head("time"), Head("share"), Head("by arms"), Head("95 %"))
    return Table(
        f"The same read from one trace: {name}",
        (*heads, Head("when", numeric=False)),
        tuple(rows),
        "A few steps of one trial, each moment of which belongs to the first row that fits. The profiler itself takes "
        "time: compare shares.",
        frozenset(number for number, part in enumerate(found.traced) if part.differs),
    )


def _passed(staleness: Interval) -> str:
    ends = "not known" if staleness.low is None else f"{max(0.0, staleness.low):.2f} – {staleness.high:.2f}"
    return f"between its pull and its push {staleness.value:.2f} [{ends}] updates of other workers are made"


def _waited_for(worker: WorkerTimes) -> str:
    """Every arm of all workers is as slow as it is; one replica by itself is one process, here."""
    assert worker.alone is not None
    slower = ratio(worker.alone.against_fastest)
    return (
        f"worker {worker.worker} is always slow: its own forward and backward take {slower} as long as the fastest "
        "worker's. The others wait for it, which is in contention, or in compute where one replica by itself was as "
        "slow, and not in wait"
    )


def _tables(name: str, found: Explanation) -> Iterator[Table]:
    """What the step consists of, and apart from it what lies within that: each of these is in the first table, too."""
    adds_up = "They add up to it"
    if found.untold:
        adds_up = f"They do not add up to it without {listed(found.untold, most=7)}, which could not be told"
    whole = f"A step takes {_ms(found.step_time_s or 0.0)} {IN_THESE_MINUTES}; {_blocks(found)}. {adds_up}."
    yield _table(f"Where the step's time goes: {name}", found, found.parts, whole)
    if found.within:
        fewer = [f"{share.name} {share.blocks}" for share in found.within if share.blocks < found.blocks]
        blocks = f" Of {found.blocks} blocks these have {listed(fewer, most=7)}." if fewer else ""
        note = f"Another look at the same step: nothing here adds to the parts above.{blocks}"
        yield _table(f"Within and behind these parts: {name}", found, found.within, note)


def _table(title: str, found: Explanation, shares: Sequence[StepPart], note: str) -> Table:
    step_s = found.step_time_s or 0.0
    rows = [
        (
            share.name,
            _ms(share.value * step_s),
            _percent(share.value),
            _interval(share),
            _gain(found.gain_without(share)),
            _meaning(share, found),
        )
        for share in shares
    ]
    heads = (Head("part", numeric=False), Head("time"), Head("share"), Head("95 %"), Head("without it, at most"))
    marked = frozenset(number for number, share in enumerate(shares) if _binds_alone(share, found))
    return Table(title, (*heads, Head("what it is", numeric=False)), tuple(rows), note, marked)


def _binds_alone(share: StepPart, found: Explanation) -> bool:
    return share == found.binding and share.binds_as == found.bound_by


def _blocks(found: Explanation) -> str:
    """How many, of how many that were begun."""
    of = f"of {found.of_blocks} " if found.blocks < found.of_blocks else ""
    return f"{found.blocks} {of}blocks"


def _meaning(share: StepPart, found: Explanation) -> str:
    """Of forward and backward with the parts that the step has."""
    has = {*(part.name for part in found.parts), *found.untold}
    return MEANING[share.name].format(within=listed(n for n in ("dispatch", "contention", "compute") if n in has))


def _gain(most: float | None) -> str:
    return NOTHING if most is None else f"{most:.2f}×"


def _ms(seconds: float) -> str:
    return f"{significant(1e3 * seconds)} ms"


def _percent(value: float) -> str:
    return f"{100 * value:z.1f} %"  # z: what rounds to nothing has no sign


def _interval(share: StepPart) -> str:
    if share.low is None or share.high is None:
        return "[not known]"
    return f"[{100 * share.low:z.1f} – {100 * share.high:z.1f} %]"
