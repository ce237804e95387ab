"""What a reader of a comparison must know besides the verdicts, in plain sentences."""

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.analysis.cells import CellTrials
from harness.analysis.comparison.pairs import Pair
from harness.analysis.comparison.result import Row
from harness.analysis.comparison.standing import Standing
from harness.analysis.estimates.verdict import Margins
from harness.analysis.likeness import engine_that_ran, not_like_with_like, not_told_of_engines, otherwise_words
from harness.analysis.trends import trend_words
from harness.environment import Change
from harness.record import Run, RunManifest, TrialRecord
from harness.record.trial import TF32
from harness.record.validation import ValidationRecord
from harness.spec.grouping import experiment
from harness.visible import percent

VALIDATE = "python -m harness validate"
_MOST_BLOCKS_NAMED = 12


def on_validation(validation: ValidationRecord | None, margins: Margins, unpaired: bool) -> list[str]:
    """Whether the noise floor of this machine is known, and whether δ lies below it."""
    if validation is None:
        return [
            "No validation of this machine was found, so delta rests on no measured noise floor; "
            f"`{VALIDATE}` measures it."
        ]
    floor = validation.floor(unpaired)
    kind = "for sides measured at different times" if unpaired else "for sides that take turns"
    if floor is None:
        return [f"The validation of this machine (run {validation.run_id}) measured no noise floor {kind}."]
    if margins.delta < floor:
        rounded = percent(float(f"{floor:.2g}"))
        return [
            f"Delta, {percent(margins.delta)}, is below the noise floor of {rounded} {kind} (run "
            f"{validation.run_id}): differences of nothing but noise will be called faster or slower more often."
        ]
    return []


def on_runs(runs: Mapping[str, Run]) -> list[str]:
    """Runs that are not complete."""
    remarks = []
    for name, run in runs.items():
        if run.live:
            remarks.append(f"{name} ({run.manifest.run_id}) is still being measured; this is what it holds so far.")
        elif run.manifest.status != "finished":
            remarks.append(f"{name} ({run.manifest.run_id}) did not finish; `--resume` runs the rest.")
        if run.torn:
            remarks.append(f"{name} ({run.manifest.run_id}): the last record was cut off by a kill and is left out.")
    return remarks


def on_times(a: RunManifest, b: RunManifest, changes: Sequence[Change], drift_known: bool) -> list[str]:
    """What two runs at different times, or of different machines, cannot tell. `drift_known`: a floor allows for it."""
    same_machine = all(change.key != "machine.id" for change in changes)
    spans = [(_moment(item.created_utc), _moment(item.finished_utc)) for item in (a, b)]
    (start_a, end_a), (start_b, end_b) = spans
    remarks = []
    if not same_machine or any(change.severity == "refuse" for change in changes):
        remarks.append("The machines differ: a ratio compares them as much as anything else.")
    if same_machine and start_a and end_a and start_b and end_b and max(start_a, start_b) < min(end_a, end_b):
        remarks.append("The two runs overlapped in time on one machine: each disturbed the other.")
    allowed = "delta at the noise floor for sides at different times allows for minutes, not for days"
    if not drift_known:
        allowed = "how far that goes on this machine `python -m harness validate` finds out"
    apart = f" ({_duration(abs(start_b - start_a))} apart)" if start_a and start_b else ""
    remarks.append(
        f"The sides were measured at different times{apart}. How the machine drifted in between is in no interval: "
        f"{allowed}. `python -m harness ab` measures both sides taking turns and is free of it."
    )
    return remarks


def on_rows(rows: Sequence[Row], one_cell: bool, alone: bool = False) -> list[str]:
    """Lost and unproved trials, trends within trials, and what really ran. `one_cell`: both sides ask for the same;
    `alone`: they took turns with each other and with no other cell."""
    valid = [row for row in rows if row.a.measured is not None and row.b.measured is not None]
    sides = {(side, cell.cell_id): cell for row in valid for side, cell in (("A", row.a), ("B", row.b))}
    many = len({cell_id for _, cell_id in sides}) > 1
    # each is relative to what it took turns with: where that is the other side, one sentence says it of both
    mirrored = alone and all(cell.measured and cell.measured.trend for cell in sides.values())
    against = "the other's" if alone else "those of the trials that took turns with it"
    lost = []
    for (side, _), cell in sides.items():
        name = f"{side}'s {cell.cell.label}" if many else side
        if cell.unproved is not None:
            lost.append(f"{name} is unproved ({cell.unproved}): the verdict is about speed, not about right or wrong.")
        problems = [problem for problem in cell.problems if problem.status != "unproved"]
        if problems:
            first, failed = problems[0], sum(problem.trials for problem in problems)
            ended = f"{first.status.replace('_', ' ')}: {first.reason}"
            lost.append(f"{name}: {failed} of {cell.trials} trials did not end well ({ended}); the rest is compared.")
        if cell.measured is not None and cell.measured.trend is not None and not (mirrored and side == "B"):
            lost.append(
                f"{name}: {trend_words(cell.measured.trend)} in the course of a trial, relative to {against}. "
                "If that is warm-up, --max-warmup should be larger."
            )
    ran = (text for row in valid for text in (*_on_programs(row, one_cell), *_on_arithmetic(row), *_on_clocks(row)))
    return [*lost, *ran, *_on_engines(valid)]


def _on_programs(row: Row, one_cell: bool) -> list[str]:
    a, b = row.a, row.b
    if not (a.executed.fingerprint and b.executed.fingerprint):
        return []
    same = a.executed.fingerprint == b.executed.fingerprint
    if one_cell and not same:
        return [f"{row.name}: the traced program differs: A runs {_ran(a)}, B runs {_ran(b)}."]
    if not one_cell and same and a.cell_id != b.cell_id and experiment(a.cell) == experiment(b.cell):
        return [f"{row.name}: both sides trace to one program ({_ran(a)}): the same experiment twice."]
    return []


def _on_arithmetic(row: Row) -> list[str]:
    """float32 that GPUs computed otherwise on one side: a difference in speed may be that of the arithmetic."""
    a, b = row.a.executed.arithmetic, row.b.executed.arithmetic
    if not (a and b) or a == b:
        return []
    tf32, full = ("A", "B") if a == TF32 else ("B", "A")
    return [f"{row.name}: {tf32} computed float32 as TF32, {full} in full: the sides differ in their arithmetic."]


def _on_engines(rows: Iterable[Row]) -> Iterator[str]:
    """What two engines do otherwise beside their speed, and what their comparison does not tell."""
    rows = [row for row in rows if engine_that_ran(row.a) != engine_that_ran(row.b)]
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(" ".join(_otherwise(row)), []).append(row.name)
    for words, names in said.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from [f"{names[0]}{more}: {words}"] if words else []
    if any(row.a.cell.get("model") is not None for row in rows):
        yield not_told_of_engines("comparison", all(row.on_processors for row in rows))


def _otherwise(row: Row) -> Iterator[str]:
    """`jax does otherwise than TensorFlow: compiler none.`, as far as the other side does not, and what that is of."""
    yield from filter(None, [not_like_with_like([row.a, row.b])])
    a, b = row.a.executed.unlike, row.b.executed.unlike
    for side, own, beside in ((row.a, a, b), (row.b, b, a)):
        if words := otherwise_words({subject: text for subject, text in own.items() if text != beside.get(subject)}):
            yield f"{engine_that_ran(side)} does otherwise than TensorFlow: {words}."


def _on_clocks(row: Row) -> list[str]:
    """GPUs whose clock was held down while a side was timed."""
    sides = {"A": row.a.gpus, "B": row.b.gpus}
    if not any(side is not None and side.slowed for side in sides.values()):
        return []
    told = [f"in {side.words} of {name}" for name, side in sides.items() if side is not None and side.read]
    return [f"{row.name}: a GPU's clock was held down {' and '.join(told)}: what that cost is in the comparison."]


def on_blocks(run: Run, pairs: Sequence[Pair]) -> list[str]:
    """Blocks of an A/B comparison that gave no pair, and why."""
    paired = {pair.block for pair in pairs}
    tried: defaultdict[int, list[TrialRecord]] = defaultdict(list)
    for trial in run.trials:
        tried[trial.block].append(trial)
    reasons: defaultdict[str, list[int]] = defaultdict(list)
    planned = {plan.first_block + offset for plan in run.manifest.plans for offset in range(len(plan.blocks))}
    for block in sorted((planned | set(tried)) - paired):
        reasons[_why_no_pair(tried[block])].append(block)
    return [f"{_blocks(blocks)} gave no pair: {reason}." for reason, blocks in reasons.items()]


def on_looks(standing: Standing | None) -> list[str]:
    """At which look it stands, and whether more could come; nothing of a plan without looks, or with one look."""
    if standing is not None and standing.number and standing.looks.after[-1] < standing.planned:
        there = f"the {standing.looks.after[-1]} pairs it has"
        return [f"It was over before its first look, after {standing.planned} blocks: {there} are judged, once."]
    if standing is None or len(standing.looks.after) == 1 or not standing.number:
        return []
    after = standing.looks.after
    at = f"look {standing.number} of {len(after)}, after {after[standing.number - 1]} blocks"
    if standing.ended:
        return [f"Decided at {at}." if standing.decided else f"Not decided at {at}, the last."]
    more = f", and {standing.blocks} are there" if standing.blocks > after[standing.number - 1] else ""
    return [f"Not decided at {at}; the next look is after {after[standing.number]}{more}."]


def on_windows(standing: Standing | None, margins: Margins) -> list[str]:
    """That ε is smaller, where a share of each window is no steps."""
    if standing is None or not standing.number or standing.looks.steps == 1:
        return []
    share, shown = standing.looks.steps, math.expm1(standing.looks.steps * margins.log_epsilon)
    return [
        f"About {100 * (1 - share):.0f} % of a window is no steps and hides as much of a difference: equivalent is "
        f"within {100 * shown:.3g} %, so that steps are within {100 * margins.epsilon:.3g} %."
    ]


def _why_no_pair(trials: Sequence[TrialRecord]) -> str:
    if not trials:
        return "not run"
    last = {trial.side: trial for trial in trials}
    parts = []
    for key, name in (("a", "A"), ("b", "B")):
        trial = last.get(key)
        if trial is None:
            parts.append(f"{name} has no trial")
        elif not trial.measured:
            parts.append(f"{name} ended {trial.status.replace('_', ' ')} ({trial.reason or 'no reason was recorded'})")
    return " and ".join(parts) or "its sides were not alive together"


def _blocks(blocks: Sequence[int]) -> str:
    if len(blocks) == 1:
        return f"Block {blocks[0]}"
    if len(blocks) > _MOST_BLOCKS_NAMED:
        return f"{len(blocks)} blocks"
    return f"Blocks {', '.join(map(str, blocks[:-1]))} and {blocks[-1]}"


def _ran(cell: CellTrials) -> str:
    operations = ", ".join(f"{count} × {name}" for name, count in sorted(cell.executed.operations.items()))
    return f"{operations or 'no reduction'} [{cell.executed.fingerprint[:12]}]"


def _moment(text: str | None) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)


def _duration(length: datetime.timedelta) -> str:
    seconds = length.total_seconds()
    units: Iterable[tuple[str, float]] = (("days", 86400), ("hours", 3600), ("minutes", 60))
    for unit, size in units:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
