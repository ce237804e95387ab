"""A validation as tables and sentences: how often the method is wrong here, and what it can see."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.analysis.estimates.intervals import CONFIDENCE
from harness.analysis.estimates.power import clopper_pearson, lower_limit, upper_limit
from harness.record.validation import Effect, PlantSize, Rate, Rule, Spread, TurnCost, ValidationRecord
from harness.report.page.templating import rendered
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, STATUS_MEANING, seconds, sentence, signed, significant
from harness.visible import plural, printable

GOALS = {0.03: 0.90, 0.05: 0.95}
"""The share of planted slow-downs of each size that should be called slower."""
EQUIVALENT_GOAL = 0.80
ALARM_GOAL = 0.05
DECISION_GOAL_S = 180.0
NOT_SHOWN = "not shown"
OF_ZYGOTES = {1: "one zygote", 2: "two zygotes"}
TWO_REVISIONS = "two equal revisions"
HOLD_RANGE = 0.90, 0.99
"""Of intervals that are to hold what is there 95 times in 100."""
SPREAD_RANGE = 0.7, 1.4
"""Of spread² ÷ predicted: intervals are then at most a fifth too narrow or too wide."""
NOT_CONTRADICTED = "not contradicted"


def validation_tables(record: ValidationRecord) -> tuple[Table, ...]:
    """Goals, then every cell and plant, then what the record says of other tools' rules."""
    return (goals_table(record), effects_table(record), *([tools_table(record)] if record.rules else []))


def goals_table(record: ValidationRecord) -> Table:
    """What is promised beside what was measured, all cells together, without plants not known to have their size.

    No goal is met or missed by a validation that has not come to its end.
    """
    rows = _of_goals(record)
    if not record.complete:
        rows = [(*row[:-1], NOTHING) for row in rows]
    columns = (Head("figure", False), Head("goal", False), Head("measured here", False), Head("met", False))
    note = (
        f"Decisions of at most {record.max_blocks} blocks. Limits in brackets: 95 %, Clopper–Pearson; of a spread, F. "
        "A rate meets its goal where its one-sided 95 % limit does, and misses it where the limit on the other side "
        f"does; between, {NOT_SHOWN}: there are too few decisions to say. What should have one value meets its goal "
        f"where its whole interval lies in the range; else it is {NOT_CONTRADICTED} while the interval holds the value."
    )
    return Table("The method, measured", columns, tuple(rows), note)


def _of_goals(record: ValidationRecord) -> list[tuple[str, ...]]:
    """A row a goal: what it is, the goal, what was measured, and whether that meets it."""
    counted = as_stated(record).effects
    rows: list[tuple[str, ...]] = [*_again(record), *_spreads(record.spreads)]
    for share, goal in sorted(GOALS.items(), reverse=True):
        if any(effect.plant is not None and effect.share == share for effect in record.effects):
            found = found_by_verdict(counted, share)
            rows.append((f"{share:.0%} planted, called slower", f"≥ {goal:.0%}", rate(found), _at_least(found, goal)))
    if record.effects:
        longest = max(effect.seconds_most for effect in record.effects)
        typical = max(effect.seconds_median for effect in record.effects)
        words = f"{seconds(typical)} at the slowest cell, {seconds(longest)} at most"
        met = _mark(longest < DECISION_GOAL_S, longest >= DECISION_GOAL_S)
        rows.append(("time of a decision", f"< {DECISION_GOAL_S:.0f} s", words, met))
    return rows


def _again(record: ValidationRecord) -> list[tuple[str, ...]]:
    """The goals of A/A decisions."""
    again = [effect for effect in record.effects if effect.plant is None]
    if not again:
        return []
    equivalent = pooled_rate(one.equivalent for one in again)
    alarms, holds = pooled_rate(one.false_alarms for one in again), pooled_rate(one.holds for one in again)
    rows = [*_errors("A/A", alarms, holds)]
    for spread in record.spreads:
        if spread.revisions:
            rows += _errors(f"A/A of {TWO_REVISIONS}", pooled_rate([spread.false_alarms]), pooled_rate([spread.holds]))
    met = _at_least(equivalent, EQUIVALENT_GOAL)
    rows.append(("A/A, called equivalent", f"≥ {EQUIVALENT_GOAL:.0%}", rate(equivalent), met))
    return rows


def _errors(what: str, alarms: Rate, holds: Rate) -> Iterator[tuple[str, ...]]:
    """How often decisions on the same thing are wrong, and how many of their intervals hold 0."""
    limit = upper_limit(alarms.count, alarms.of)
    yield (
        f"{what}, false alarms",
        f"≤ {ALARM_GOAL:.0%}",
        f"{rate(alarms)}, at most {limit:.1%} (one-sided 95 %)",
        _mark(limit <= ALARM_GOAL, lower_limit(alarms.count, alarms.of) > ALARM_GOAL),
    )
    if holds.of:
        goal = f"{CONFIDENCE:.0%}, within {HOLD_RANGE[0]:.0%} – {HOLD_RANGE[1]:.0%}"
        met = _within(holds.low, holds.high, CONFIDENCE, HOLD_RANGE)
        yield f"{what}, intervals that hold 0", goal, rate(holds, 1), met


def source_of(spread: Spread) -> str:
    """What the two sides of its decisions were forked from."""
    return TWO_REVISIONS if spread.revisions else OF_ZYGOTES.get(spread.zygotes, f"{spread.zygotes} zygotes")


def _spreads(spreads: Sequence[Spread]) -> list[tuple[str, ...]]:
    return [
        (
            f"A/A, spread² ÷ predicted{f', {source_of(spread)}' if len(spreads) > 1 else ''}",
            f"1, within {SPREAD_RANGE[0]} – {SPREAD_RANGE[1]}",
            f"{spread.ratio:.2f} [{spread.low:.2f} – {spread.high:.2f}], {plural(spread.decisions, 'decision')}",
            _within(spread.low, spread.high, 1.0, SPREAD_RANGE),
        )
        for spread in spreads
    ]


def as_stated(record: ValidationRecord) -> ValidationRecord:
    """The record without decisions on plants that are not known to have their size, by whatever rule they were made."""
    out = {plant.plant for plant in record.plants if not plant.counted}
    effects = [effect for effect in record.effects if effect.plant not in out]
    rules = [rule for rule in record.rules if rule.plant not in out]
    return record.model_copy(update={"effects": effects, "rules": rules})


def effects_table(record: ValidationRecord) -> Table:
    """One row a cell and plant."""
    fields: tuple[tuple[str, bool, Callable[[Effect], str]], ...] = (
        ("cell", False, lambda effect: record.named(effect.cell)),
        ("planted", False, _planted),
        ("decisions", True, lambda effect: str(effect.slower.of)),
        ("slower", True, lambda effect: rate(effect.slower)),
        ("equivalent", True, lambda effect: rate(effect.equivalent)),
        ("undecided", True, lambda effect: str(effect.verdicts.get("undecided", 0))),
        ("intervals that hold it", True, lambda effect: rate(effect.holds) if effect.holds else NOTHING),
        ("step time, measured", True, _measured),
        ("paired sd", True, lambda effect: NOTHING if effect.deviation is None else f"{effect.deviation:.1%}"),
        ("90 % power from", True, lambda effect: _found_from(record, effect)),
        ("blocks", True, lambda effect: f"{significant(effect.blocks_median, 2)} (≤ {effect.blocks_most})"),
        ("seconds", True, lambda effect: f"{effect.seconds_median:.0f} (≤ {effect.seconds_most:.0f})"),
    )
    rows = tuple(tuple(read(effect) for _, _, read in fields) for effect in record.effects)
    note = f"Unproved: {STATUS_MEANING['unproved']}." if record.unproved else ""
    return Table("Every cell and slow-down", tuple(Head(name, number) for name, number, _ in fields), rows, note)


def _found_from(record: ValidationRecord, effect: Effect) -> str:
    """The smallest slow-down that is found with 90 % power, in the row of the A/A decisions that it follows from."""
    found = (floor.smallest_effect for floor in record.floors if effect.plant is None and floor.cell == effect.cell)
    smallest = next(found, None)
    return NOTHING if smallest is None else f"{smallest:.1%}"


def tools_table(record: ValidationRecord) -> Table:
    """The same windows judged by other tools' own rules, beside ours: false alarms, then slow-downs found."""
    record = as_stated(record)
    shares = sorted({effect.share for effect in record.effects})
    tools = list(dict.fromkeys((rule.tool, rule.rule) for rule in record.rules))
    apart = [floor.unpaired_false_alarms for floor in record.floors]
    ours = (rate(found_by_verdict(record.effects, share)) for share in shares)
    rows = [("this project", "95 % interval beyond δ", rate(pooled_rate(apart)), *ours)]
    for tool, words in tools:
        mine = [rule for rule in record.rules if (rule.tool, rule.rule) == (tool, words)]
        after = pooled_rate(rule.alarms for rule in mine if rule.apart)

        def found(share: float, mine: Sequence[Rule] = mine) -> Rate:
            return pooled_rate(rule.alarms for rule in mine if rule.share == share and not rule.apart)

        rows.append((tool, words, rate(after), *(rate(found(share)) for share in shares)))
    heads = ["taking turns, A/A: false alarms" if share == 0 else f"{share:.0%} planted: found" for share in shares]
    names = ("tool", "rule", "one after the other, A/A: false alarms")
    columns = (
        Head(names[0], False),
        Head(names[1], False),
        Head(names[2]),
        *(Head(head) for head in heads),
    )
    note = (
        "One after the other: side A of one decision against side B of the next, minutes apart, which is how these "
        "tools' users measure. Taking turns: our windows, their rules. Of slow-downs only those whose size is known "
        "to be about what was stated."
    )
    return Table("The same decisions by other tools' rules, on the same windows", columns, tuple(rows), note)


def turn_words(record: ValidationRecord) -> str:
    """What taking turns does to an absolute throughput, of a record that has it."""
    costly = [_turn(record, one) for one in record.turns if one.low > 0]
    rest = [_turn(record, one) for one in record.turns if one.low <= 0]
    told = (
        "a window that follows another trial's takes longer than one that follows the trial's own, by "
        f"{'; '.join(costly)}: absolute throughputs are lower by up to as much, and ratios are not"
    )
    unshown = f"no cost of following another trial's window was shown of {'; '.join(rest)}"
    return "; ".join([*([told] if costly else []), *([unshown] if rest else [])])


def _turn(record: ValidationRecord, one: TurnCost) -> str:
    """`mirrored ×2 b32 +2.7% [+2.5%, +3.0%]`."""
    return f"{record.named(one.cell)} {_change(one.longer)} [{_change(one.low)}, {_change(one.high)}]"


def _plant_words(plant: PlantSize) -> str:
    """What a kind of slow-down came to, and whether it is counted."""
    ends = "" if plant.low is None or plant.high is None else f" [{plant.low:.3f} – {plant.high:.3f}]"
    out = (
        ""
        if plant.counted
        else "; how large it is is not known closely enough, so these are not counted with the others"
    )
    if plant.missed:
        out = "; that is another size, so these are not counted with the others"
    name = plant.plant.replace("_", " ")
    return f"{name} came to {plant.ratio:.3f}{ends} of what was stated, over {plural(plant.decisions, 'decision')}{out}"


def validation_lines(record: ValidationRecord) -> tuple[str, ...]:
    """The findings in sentences."""
    lines = [_plant_words(plant) for plant in record.plants]
    if record.turns:
        lines.append(turn_words(record))
    for floor in record.floors:
        unpaired = f", {floor.unpaired:.1%} for runs at different times" if floor.unpaired is not None else ""
        effect = "not known" if floor.smallest_effect is None else f"{floor.smallest_effect:.1%}"
        lines.append(
            f"{record.named(floor.cell)}: noise floor for δ {floor.paired:.1%} taking turns{unpaired}; "
            f"smallest slow-down found with 90 % power: {effect}"
        )
    if record.revisions_left_out:
        lines.append(f"Two equal revisions were not compared: {record.revisions_left_out}.")
    if not record.complete:
        lines.append(
            f"Not judged, since it is not complete; go on with: python -m harness validate --resume {record.run_id}"
        )
    if record.quick:
        lines.append("A quick validation: the limits are wide. Without --quick they are narrow.")
    return tuple(lines)


def rate(value: Rate, digits: int = 0) -> str:
    """`58 of 60 [89 – 100 %]`."""
    if not value.of:
        return NOTHING
    return f"{value.count} of {value.of} [{100 * value.low:.{digits}f} – {100 * value.high:.{digits}f} %]"


def pooled_rate(rates: Iterable[Rate | None]) -> Rate:
    """Several rates as one."""
    known = [value for value in rates if value is not None]
    return clopper_pearson(sum(value.count for value in known), sum(value.of for value in known))


def summary_words(record: ValidationRecord) -> str:
    """One sentence for a comparison to cite: what is known of the method on this machine."""
    return f"validated on this machine (run {record.run_id}): {again_words(record)}"


def again_words(record: ValidationRecord) -> str:
    """What deciding about the same thing against itself came to."""
    again = [effect for effect in record.effects if effect.plant is None]
    alarms, holds = pooled_rate(effect.false_alarms for effect in again), pooled_rate(effect.holds for effect in again)
    limit = upper_limit(alarms.count, alarms.of)
    held = f", and {rate(holds, 1)} intervals hold 0, as 95 % should" if holds.of else ""
    return (
        f"{plural(alarms.count, 'false alarm')} in {plural(alarms.of, 'decision')} of the same thing against itself, "
        f"at most {limit:.1%}{held}"
    )


def found_by_verdict(effects: Sequence[Effect], share: float) -> Rate:
    """How often our verdicts found a slow-down of `share`, all kinds and cells together; of 0 the false alarms."""
    of = [effect for effect in effects if effect.share == share]
    return pooled_rate(effect.slower if effect.plant else effect.false_alarms for effect in of)


def _planted(effect: Effect) -> str:
    return "the same twice (A/A)" if effect.plant is None else f"{effect.plant.replace('_', ' ')} {effect.share:.0%}"


def _measured(effect: Effect) -> str:
    """The change of the step time as measured, B over A: what was planted is a share of it, not a logarithm."""
    change = _change(math.expm1(-effect.measured))
    if effect.measured_low is None or effect.measured_high is None:
        return change
    return f"{change} [{_change(math.expm1(-effect.measured_high))}, {_change(math.expm1(-effect.measured_low))}]"


def _change(share: float) -> str:
    """`+9.5%`."""
    return f"{signed(100 * share, 1)}%"


def _at_least(found: Rate, goal: float) -> str:
    return _mark(lower_limit(found.count, found.of) >= goal, upper_limit(found.count, found.of) < goal)


def _mark(met: bool, missed: bool) -> str:
    """By the one-sided limits of a rate: that the goal is met, that it is missed, or neither."""
    return "met" if met else "NOT MET" if missed else NOT_SHOWN


def _within(low: float, high: float, value: float, wanted: tuple[float, float]) -> str:
    """By an interval for a figure that should be `value`: met where all of it lies in the range `wanted`."""
    if wanted[0] <= low and high <= wanted[1]:
        return "met"
    return NOT_CONTRADICTED if low <= value <= high else "NOT MET"


def validation_page(record: ValidationRecord) -> str:
    """The same as one self-contained page."""
    return rendered(
        "validation.html.j2",
        run=record,
        page_kind="validation",
        headline=f"{sentence(summary_words(record))}.",
        lines=validation_lines(record),
        tables=validation_tables(record),
        percent=lambda share: f"{100 * share:.3g} %",
        printable=printable,
    )
