"""A run of faults as tables, sentences, JSON and a page: which strategy, and how often to make a checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.analysis.estimates.intervals import Interval
from harness.analysis.faults import Advice, CostSummary, FaultsSummary, MedianRange, ScenarioSummary
from harness.record.faults import FaultsPlan
from harness.record.manifest import RunManifest
from harness.report.figures.faults import faults_figure, trained_by
from harness.report.page.templating import rendered
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, seconds, signed, significant, size
from harness.visible import plural, printable

A_DAY_S = 86400.0
FAULT_WORDS: dict[str, str] = {
    "kill_worker": "worker killed",
    "kill_ps": "parameter server killed",
    "freeze_worker": "worker frozen",
    "freeze_ps": "parameter server frozen",
    "cut_link": "worker's link cut",
    "sigterm": "SIGTERM to a worker",
    "restart": "every process killed",
}
DETECTED_WORDS = {
    "tensorflow": "TensorFlow",
    "engine": "the engine",
    "process_end": "its end",
    "stalled_steps": "no steps",
    "heartbeat": "no answer",
    "preemption_handler": "handler",
}
STATUS_WORDS = {
    "recovered": "recovered",
    "lost_state": "lost state",
    "wrong_weights": "WRONG WEIGHTS",
    "hung": "HUNG",
    "failed": "FAILED",
    "unsupported": "not possible",
    "undisturbed": "undisturbed",
}


def faults_tables(summary: FaultsSummary, plan: FaultsPlan) -> tuple[Table, ...]:
    """What became of the jobs, where the time went, what checkpoints cost, how often to make one, what was not run."""
    tables = (outcome_table(summary), time_table(summary, plan), cost_table(summary), advice_table(summary))
    return tuple(table for table in (*tables, not_run_table(summary)) if table.rows)


def outcome_table(summary: FaultsSummary) -> Table:
    """One row a scenario: did it end, did it end right, what did it lose."""
    fields: tuple[tuple[str, bool, Callable[[ScenarioSummary], str]], ...] = (
        ("strategy", False, lambda s: trained_by(s.cell)),
        ("fault", False, lambda s: s.fault),
        ("saves", True, lambda s: _every(s.checkpoint_every)),
        ("jobs", True, lambda s: str(s.ran)),
        ("ended", False, _outcomes),
        ("right", True, lambda s: f"{s.weights_right}/{s.weights_judged}" if s.weights_judged else NOTHING),
        ("twice", True, _updates),
        ("again", True, lambda s: _counts(s.steps_lost)),
        ("useful again", True, lambda s: spread_words(s.useful_step_s)),
    )
    shown = [scenario for scenario in summary.scenarios if scenario.ran]
    marked = frozenset(
        number for number, s in enumerate(shown) if s.statuses.keys() & {"wrong_weights", "hung", "failed"}
    )
    note = (
        "Medians over jobs, with their range in brackets. Saves: a checkpoint every so many steps. Lost state: it had "
        "to begin at step 0, and ended right. Right: jobs with the right final state; synchronous strategies are held "
        "against undisturbed jobs, asynchronous updates have no order to compare, so there it is whether every update "
        "came exactly once. Twice: updates that were applied twice. Again: steps that were done again. Useful again: "
        "from the fault to the first step that had not been done before. Marked: at least one job did not end right."
    )
    return _table("What became of the jobs", fields, shown, note, marked)


def time_table(summary: FaultsSummary, plan: FaultsPlan) -> Table:
    """The parts of the time until the next useful step."""
    fields: tuple[tuple[str, bool, Callable[[ScenarioSummary], str]], ...] = (
        ("strategy", False, lambda s: trained_by(s.cell)),
        ("fault", False, lambda s: s.fault),
        ("saves", True, lambda s: _every(s.checkpoint_every)),
        ("noticed", True, lambda s: spread_words(s.detection_s)),
        ("first by", False, lambda s: _by(s.detected_by)),
        ("by the engine", True, lambda s: spread_words(s.engine_s)),
        ("restart", True, lambda s: spread_words(s.restart_s)),
        ("replay", True, lambda s: spread_words(s.replay_s)),
        ("all back", True, lambda s: spread_words(s.all_back_s)),
        ("standstill", True, lambda s: spread_words(s.standstill_s)),
    )
    settings = plan.settings
    note = (
        "Noticed: by whom first, and when the engine did in a process that nothing was done to. The supervisor starts "
        "a job again when a process ends, when the engine raises in another, or after "
        f"{settings.stall:g} s without a step or an answer; frozen processes thaw and cut links are mended after "
        f"{settings.outage:g} s. Restart: from the notice until training begins again. Replay: from there to the next "
        "useful step, tracing included. Processes are forked from one that has the framework imported: elsewhere a "
        "restart costs an import more. All back: every process that was started again is ready. Standstill: the "
        "longest time without a step that had not been done before. A dash: it went on without, or nobody said so."
    )
    return _table("Where the time went", fields, [s for s in summary.scenarios if s.ran], note)


def cost_table(summary: FaultsSummary) -> Table:
    """What checkpoints cost when nothing fails."""
    fields: tuple[tuple[str, bool, Callable[[CostSummary], str]], ...] = (
        ("strategy", False, lambda c: trained_by(c.cell)),
        ("saves", True, lambda c: _every(c.every)),
        ("time with / without", True, lambda c: overhead_words(c.overhead)),
        ("one checkpoint", True, lambda c: spread_words(c.checkpoint_s)),
        ("size", True, lambda c: size(c.bytes)),
        ("a step without", True, lambda c: spread_words(c.step_s)),
        ("jobs", True, lambda c: str(c.overhead.count)),
        ("pairs of windows", True, lambda c: str(c.pairs)),
    )
    note = (
        "Undisturbed jobs; windows with a checkpoint at their end and without took turns in one process. The "
        "interval, 95 %, is over jobs."
    )
    return _table("Checkpoints when nothing fails", fields, summary.costs, note)


def advice_table(summary: FaultsSummary) -> Table:
    """How often to make a checkpoint, from what was measured here."""
    fields: tuple[tuple[str, bool, Callable[[Advice], str]], ...] = (
        ("strategy", False, lambda a: trained_by(a.cell)),
        ("a fault every", False, lambda a: _long(a.between_faults_s)),
        ("a checkpoint every", True, lambda a: _long(a.every_s)),
        ("that is steps", True, lambda a: f"{a.every_steps:,}"),
        ("time lost in all", True, lambda a: f"{significant(100 * a.lost_share, 2)} %"),
    )
    note = (
        "Young's first-order optimum: T = √(2·c·M), c seconds a checkpoint, M seconds between faults; lost is "
        "c/T + (T/2 + R)/M with R the time to notice and start again, as measured here after a process was killed "
        "(J. W. Young, CACM 17(9), 1974). Put in your own c and R: a larger state costs more to save, and a restart "
        "elsewhere costs an import, and a queue."
    )
    return _table("How often to make a checkpoint", fields, summary.advice, note)


def not_run_table(summary: FaultsSummary) -> Table:
    """Scenarios that make no sense or cannot be done here, with the reason."""
    fields: tuple[tuple[str, bool, Callable[[ScenarioSummary], str]], ...] = (
        ("strategy", False, lambda s: trained_by(s.cell)),
        ("fault", False, lambda s: s.fault),
        ("saves", True, lambda s: _every(s.checkpoint_every)),
        ("reason", False, lambda s: printable(s.reason or "")),
    )
    return _table("Not possible", fields, [s for s in summary.scenarios if not s.ran], "")


def faults_lines(summary: FaultsSummary) -> tuple[str, ...]:
    """The findings in sentences, a strategy of an engine each."""
    lines = []
    for name in dict.fromkeys(trained_by(s.cell) for s in summary.scenarios):
        mine = [s for s in summary.scenarios if trained_by(s.cell) == name and s.ran]
        if mine:
            lines.append(f"{name}: {'; '.join(_findings(mine, summary))}.")
    missing = summary.planned - summary.recorded
    if missing:
        lines.append(f"Not complete: {plural(missing, 'job')} of {summary.planned} not run; --resume runs them.")
    return tuple(lines)


def _findings(mine: Sequence[ScenarioSummary], summary: FaultsSummary) -> list[str]:
    jobs = sum(s.ran for s in mine)
    bad = {status: sum(s.statuses.get(status, 0) for s in mine) for status in ("wrong_weights", "hung", "failed")}
    lost = sum(s.statuses.get("lost_state", 0) for s in mine)
    ended = jobs - bad["hung"] - bad["failed"]
    exact = sum(s.identical for s in mine)
    right = f"{ended - bad['wrong_weights']} with the right state" + (f" ({exact} bit for bit)" if exact else "")
    found = [f"{ended} of {plural(jobs, 'job')} came to their end, {right}"]
    if lost:
        found.append(f"{lost} had to begin again at step 0")
    twice = sum(s.updates_repeated for s in mine)
    if twice:
        found.append(f"{plural(twice, 'update')} of {sum(s.updates_scheduled for s in mine):,} came twice")
    # where it began again, the next useful step, as in the figure
    times = [(s.useful_step_s if s.restart_s is not None else s.standstill_s, s) for s in mine]
    slow = [(time.median, s) for time, s in times if time is not None]
    if slow:
        longest, worst = max(slow, key=lambda pair: pair[0])
        found.append(f"the longest median wait for a useful step is {seconds(longest)} ({FAULT_WORDS[worst.fault]})")
    for cost in summary.costs:
        if cost.cell == mine[0].cell:
            found.append(f"a checkpoint every {_steps(cost.every)} costs {overhead_words(cost.overhead)} of the time")
    for advice in summary.advice:
        if advice.cell == mine[0].cell and advice.between_faults_s == A_DAY_S:
            found.append(
                f"with a fault a day, one every {_long(advice.every_s)} ({advice.every_steps:,} steps) loses least: "
                f"{significant(100 * advice.lost_share, 2)} % of the time"
            )
    return found


def faults_page(manifest: RunManifest, summary: FaultsSummary) -> str:
    """The same as one self-contained page, with a figure."""
    plan = manifest.part(FaultsPlan)
    return rendered(
        "faults.html.j2",
        run=manifest,
        page_kind="faults",
        settings=plan.settings,
        headline=faults_headline(summary),
        lines=faults_lines(summary),
        tables=faults_tables(summary, plan),
        picture=faults_figure(summary, FAULT_WORDS),
        printable=printable,
    )


def faults_headline(summary: FaultsSummary) -> str:
    """One sentence: of all jobs, how many ended right."""
    jobs = sum(s.ran for s in summary.scenarios)
    ok = sum(s.statuses.get("recovered", 0) + s.statuses.get("lost_state", 0) for s in summary.scenarios)
    lost = sum(s.statuses.get("lost_state", 0) for s in summary.scenarios)
    tail = f", {lost} of them by beginning again" if lost else ""
    return f"{ok} of {plural(jobs, 'disturbed job')} reached the last step with the right state{tail}."


def spread_words(spread: MedianRange | None) -> str:
    """`3.1 s [2.8–3.4]`, all in one unit; one value alone has no range."""
    if spread is None:
        return NOTHING
    factor, unit = (1.0, "s") if spread.median >= 1 or spread.median == 0 else (1e3, "ms")
    middle = f"{significant(factor * spread.median, 2)} {unit}"
    if spread.count == 1:
        return middle
    return f"{middle} [{significant(factor * spread.low, 2)}–{significant(factor * spread.high, 2)}]"


def overhead_words(overhead: Interval) -> str:
    """`+4.2 % [+3.1, +5.3]`."""
    change = f"{signed(100 * (overhead.value - 1), 1)} %"
    if overhead.low is None or overhead.high is None:
        return change
    return f"{change} [{signed(100 * (overhead.low - 1), 1)}, {signed(100 * (overhead.high - 1), 1)}]"


def _counts(spread: MedianRange | None) -> str:
    if spread is None:
        return NOTHING
    middle = f"{spread.median:g}"
    return middle if spread.low == spread.high else f"{middle} [{spread.low:g}–{spread.high:g}]"


def _every(steps: int) -> str:
    return f"every {steps:,}" if steps else "none"


def _steps(steps: int) -> str:
    return f"{steps:,} steps" if steps else "never"


def _outcomes(scenario: ScenarioSummary) -> str:
    if len(scenario.statuses) == 1:
        return STATUS_WORDS[next(iter(scenario.statuses))]
    return ", ".join(f"{count} {STATUS_WORDS[status]}" for status, count in scenario.statuses.items())


def _updates(scenario: ScenarioSummary) -> str:
    if not scenario.updates_scheduled:
        return NOTHING
    lost = f", {scenario.updates_lost} lost" if scenario.updates_lost else ""
    return f"{scenario.updates_repeated}{lost}"


def _by(detected: Mapping[str, int]) -> str:
    if not detected:
        return "nobody"
    if len(detected) == 1:
        return DETECTED_WORDS[next(iter(detected))]
    return ", ".join(f"{count}× {DETECTED_WORDS[by]}" for by, count in detected.items())


def _long(value: float) -> str:
    """A time of seconds to a week."""
    for unit, length in (("week", 604800.0), ("day", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if value >= length:
            return f"{float(significant(value / length, 2)):g} {unit}"
    return f"{significant(value, 2)} s"


def _table(
    title: str,
    fields: Sequence[tuple[str, bool, Callable[[Any], str]]],
    items: Sequence[Any],
    note: str,
    marked: frozenset[int] = frozenset(),
) -> Table:
    rows = tuple(tuple(read(item) for _, _, read in fields) for item in items)
    return Table(title, tuple(Head(name, number) for name, number, _ in fields), rows, note, marked)
