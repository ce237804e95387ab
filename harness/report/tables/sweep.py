"""Tables as plain columns and rows of text: the page, the terminal and Markdown show the same ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.analysis import CellSummary, Noise, RunSummary, Scaling, WorkloadSummary
from harness.analysis.batch import BatchCurve
from harness.analysis.cells import marked
from harness.analysis.estimates.verdict import EPSILON, Margins
from harness.analysis.limits import CellRate
from harness.analysis.ops import axes_of, judge_ops
from harness.analysis.pipelines import FedBy, FedModel, by_cell, fed_models, of_pipelines
from harness.analysis.ranking import references_of
from harness.analysis.scaling import SHARED_LABEL, relate
from harness.analysis.workers import CellTimes, StepTimes, WorkerTimes
from harness.record.trial import TF32, Executed
from harness.record.validation import ValidationRecord
from harness.report.tables.table import Head, Table
from harness.report.tables.validation import turn_words
from harness.report.words.exactness import ranking_note
from harness.report.words.headline import nothing_compared
from harness.report.words.over import base_case, has_whole_machine, over_base
from harness.report.words.pipelines import IS_LIMIT, LIMITS
from harness.report.words.text import (
    FIXED_PARTS,
    NOT_JUDGED,
    NOTHING,
    OWN_INTERVAL,
    PHASE_WORDS,
    STACKED,
    STATUS_WORDS,
    bounds,
    percent,
    plus_minus,
    ratio,
    seconds,
    share,
    share_of,
    significant,
    size,
)
from harness.spec.grouping import THREADS, apart
from harness.spec.work import quantity_of
from harness.visible import plural, printable

OF_LIMIT = "of the limit"
"""The head of the column that says what share a cell has of the FLOP/s of its processors."""
Field = tuple[str, bool, Callable[[CellSummary], str]]


def ranking_table(
    work: WorkloadSummary,
    noise: Noise,
    validation: ValidationRecord | None = None,
    rates: Sequence[CellRate] = (),
) -> Table:
    """The ranked cells, the fastest first; `noise` is the run's, `validation` of the machine that measured, and `rates`
    are beside its limits."""
    quantity = work.workload.quantity
    fields: tuple[Field, ...] = (
        ("#", True, lambda cell: str(cell.place.rank) if cell.place else NOTHING),
        ("cell", False, lambda cell: cell.label),
        (quantity.unit, True, _throughput),
        (OWN_INTERVAL, True, _throughput_bounds),
        ("% of fastest", True, _against_best),
        *_compared(work),
        ("step", True, lambda cell: seconds(cell.measured.step_time_s.value) if cell.measured else NOTHING),
        (f"CPU/{quantity.one}", True, lambda cell: seconds(cell.measured.cpu_seconds_each) if cell.measured else ""),
        ("peak memory", True, lambda cell: size(cell.measured.peak_memory_bytes) if cell.measured else NOTHING),
        ("trials", True, lambda cell: str(cell.measured.trials) if cell.measured else NOTHING),
    )
    ranking = work.ranking
    if with_joules(work):
        fields = (*fields, (f"J/{quantity.one}", True, _joules))
    of_limit = {rate.cell.cell_id: share(rate.share) for rate in rates if rate.share is not None}
    if any(cell.cell_id in of_limit for cell in ranking):
        fields = (*fields, (OF_LIMIT, True, lambda cell: of_limit.get(cell.cell_id, NOTHING)))
    told = () if nothing_compared(work) else ranking
    marked = frozenset(row for row, cell in enumerate(told) if cell.place is not None and cell.place.with_best)
    found = turn_words(validation) if validation is not None and validation.turns else ""
    return _table(work.workload.label, fields, ranking, ranking_note(work, noise, found), marked)


def _compared(work: WorkloadSummary) -> tuple[Field, ...]:
    """What is told of a ranked cell beside its base case; of an input pipeline, beside a model that it feeds."""
    if not of_pipelines(work):
        return ((over_base(work), True, _speed_ups(work)),)
    if all(one.trials.cell.base == one.trials.cell for one in work.ranking):
        return ()
    fed = by_cell(fed_models(work))

    def told(words: Callable[[FedModel, FedBy], str]) -> Callable[[CellSummary], str]:
        return lambda cell: words(*fed[cell.cell_id]) if cell.cell_id in fed else NOTHING

    return (
        ("model takes", True, told(lambda model, _: significant(model.appetite.value))),
        (over_base(work), True, told(lambda _, one: f"{significant(one.headroom.value)}× {plus_minus(one.headroom)}")),
        (IS_LIMIT, False, told(lambda _, one: LIMITS.get(one.limit, NOTHING))),
        ("processors to feed it", True, told(lambda _, one: _processors(one))),
    )


def _processors(one: FedBy) -> str:
    return NOTHING if one.processors is None else significant(one.processors, 2)


def told_of(work: WorkloadSummary, table: Table, summary: RunSummary) -> Table:
    """The table with its ranking's name in the title, where there are several."""
    return replace(table, title=f"{table.title}: {work.workload.label}") if len(summary.workloads) > 1 else table


def unproved_table(work: WorkloadSummary) -> Table:
    """The measured cells that are in no ranking, because they are unproved; what was left unproved of each."""
    fields: tuple[Field, ...] = (
        ("cell", False, lambda cell: f"{cell.trials.cell.label} {cell.trials.engine_told}".rstrip()),
        (work.workload.quantity.unit, True, _throughput),
        (OWN_INTERVAL, True, _throughput_bounds),
        ("what is unproved", False, lambda cell: cell.trials.unproved or NOTHING),
    )
    note = "Measured, and nothing was found wrong; but a fault could have gone unseen. --rank-unproved ranks them."
    return _table("Unproved, and left out of the ranking", fields, work.unranked, note if work.unranked else "")


def scaling_table(work: WorkloadSummary) -> Table:
    """Speed-up and efficiency of every measured cell against both base cases."""
    cells = [cell for cell in work.cells if cell.vs_none is not None or cell.vs_own is not None]
    by_id = {cell.cell_id: cell for cell in work.cells}
    of = ", one device" if has_whole_machine(work) else ""
    fields: tuple[Field, ...] = (
        ("cell", False, lambda cell: cell.label),
        (over_base(work), True, _speed_ups(work)),
        (f"E{of}", True, lambda cell: share(cell.vs_none.efficiency) if cell.vs_none else NOTHING),
        (f"E_r{of}", True, lambda cell: share(cell.vs_none.resource_efficiency) if cell.vs_none else NOTHING),
        ("own base n", True, lambda cell: str(cell.vs_own.n0) if cell.vs_own else NOTHING),
        ("× own base", True, lambda cell: ratio(cell.vs_own.speed_up) if cell.vs_own else NOTHING),
        ("E over own", True, lambda cell: share(cell.vs_own.efficiency) if cell.vs_own else NOTHING),
        ("how compared", False, _how_compared),
        ("note", False, lambda cell: "; ".join([*_sharing(cell), *_unproved_bases(cell, by_id)]) or NOTHING),
    )
    note = (
        f"E: efficiency over {base_case(work)} at the same batch. E_r: resource-bounded efficiency, n capped at the "
        "number of processors. Own base: the strategy itself at its smallest replica count."
    )
    return _table("Speed-up and efficiency", fields, cells, note)


def ops_table(work: WorkloadSummary, margins: Margins | None = None) -> Table:
    """Every op of every group in which one was measured, the failed ones with their status.

    `margins` are those of the verdicts; None is the defaults.
    """
    by_id = {cell.cell_id: cell for cell in work.cells}
    verdicts = judge_ops(work.ops, margins or Margins()) if work.judged else {}
    rows = []
    groups = [group for group in work.ops if group.reference_id is not None]
    for group in groups:
        for item in group.results:
            cell = by_id[item.cell_id]
            relative = "the reference" if item.cell_id == group.reference_id else STATUS_WORDS[cell.trials.status]
            if item.relative is not None:
                relative = share(item.relative)
            throughput = _throughput(cell)
            verdict = verdicts[item.cell_id].verdict if item.cell_id in verdicts else NOTHING
            ran, twins = executed_words(cell), _twins(cell, by_id)
            op = marked(item.name, cell.trials)
            rows.append(_clean((group.label, op, relative, verdict, throughput, ran, twins)))
    columns = (
        Head("held fixed", False),
        Head("op asked for", False),
        Head("% of reference"),
        Head("verdict", False),
        Head(work.workload.quantity.unit),
        Head("what ran in one step", False),
        Head("same experiment as", False),
    )
    axes = " or ".join(axes_of(groups))
    undecided = (
        "Undecided: the interval allows a difference that counts as well as none, which is not the same as equal"
        f"{f'; compare RUN --along {axes} says what would decide' if axes else ''}."
    )
    note = (
        f"{undecided if work.judged else NOT_JUDGED} What ran is read from the traced program. Cells "
        "with one fingerprint are the same experiment, whatever they are called: a difference between them is noise."
    )
    return Table("Cross-device ops side by side", columns, tuple(rows), note)


def phases_table(work: WorkloadSummary) -> Table:
    """Median seconds of each phase."""
    cells = [cell for cell in work.cells if cell.trials.phases_s]
    phases = [name for name in (*STACKED, "waiting_s") if any(name in cell.trials.phases_s for cell in cells)]

    def phase(name: str) -> Callable[[CellSummary], str]:
        return lambda cell: seconds(cell.trials.phases_s.get(name))

    fields: tuple[Field, ...] = (
        ("cell", False, lambda cell: cell.label),
        *((PHASE_WORDS[name], True, phase(name)) for name in phases),
        ("fixed cost", True, lambda cell: seconds(cell.trials.fixed_s)),
    )
    note = f"Medians over trials. Fixed cost: {FIXED_PARTS}."
    return _table("Time per phase", fields, cells, note)


def steps_table(work: WorkloadSummary, times: Mapping[str, CellTimes]) -> Table:
    """Step-time percentiles of every measured cell, and of each worker where it has several."""
    rows = []
    for cell in (*work.ranking, *work.unranked):
        if cell.cell_id in times:
            of = times[cell.cell_id]
            rows.append(_clean((cell.label, "all", *_time_words(of.times), NOTHING, NOTHING, NOTHING)))
            for one in of.workers:
                words = f"{share_of(one.last_share)} of windows" + (", straggles" if one.late and work.judged else "")
                alone = _alone(one, work.judged)
                rows.append(_clean((cell.label, f"worker {one.worker}", *_time_words(one.times), words, *alone)))
    columns = (
        Head("cell", False),
        Head("of", False),
        Head("p50"),
        Head("p95"),
        Head("p99"),
        Head("smallest"),
        Head("largest"),
        Head("windows"),
        Head("was last in"),
        Head("alone"),
        Head("÷ the fastest's"),
    )
    note = (
        "Window time ÷ steps over the measured windows; percentiles are the median over trials of each trial's own. "
        "Alone: a step's forward and backward without the reduction, in which workers in lock-step wait for each "
        "other. A worker straggles when the interval of that, against the fastest worker's, lies above 1.02, or when "
        "its median is more than 2 % behind the fastest's and it is last in most windows."
    )
    return Table("Step time", columns, tuple(rows), note)


def _alone(worker: WorkerTimes, judged: bool) -> tuple[str, str]:
    """What a worker computes by itself, and how that is to the fastest worker's."""
    if worker.alone is None:
        return NOTHING, NOTHING
    against = worker.alone.against_fastest
    words = (
        "the fastest" if against.value == 1 else ratio(against) + (", straggles" if worker.slower and judged else "")
    )
    return seconds(worker.alone.seconds), words


def batch_table(curves: Sequence[BatchCurve]) -> Table:
    """Every batch size of every curve, with the gain on the one before."""
    rows = [
        _clean(
            (
                curve.label,
                marked(f"{point.batch_size:,}", point.cell),
                significant(measured.throughput.value),
                bounds(measured.throughput),
                ratio(point.gain) if point.gain else NOTHING,
                "the knee" if point.batch_size == curve.knee else "",
                size(measured.peak_memory_bytes),
                size(measured.peak_device_memory_bytes),
            )
        )
        for curve in curves
        for point in curve.points
        if (measured := point.cell.measured) is not None
    ]
    unit = quantity_of(point.cell.cell for curve in curves for point in curve.points).unit
    columns = (
        Head("held fixed", False),
        Head("batch"),
        Head(unit),
        Head(OWN_INTERVAL),
        Head("× the batch before"),
        Head("knee", False),
        Head("peak memory"),
        Head("device memory"),
    )
    note = (
        f"The knee: the smallest batch such that no larger one gains more than {percent(EPSILON)}, with its whole "
        "paired 95 % interval."
    )
    return Table("Batch size", columns, tuple(rows), note)


def _time_words(times: StepTimes) -> tuple[str, ...]:
    values = (times.p50_s, times.p95_s, times.p99_s, times.smallest_s, times.largest_s)
    return (*map(seconds, values), f"{times.windows:,}")


def failed_table(summary: RunSummary) -> Table:
    """Cells without a throughput, with how many trials ended how, and the first reason of their status."""
    cells = [cell for cell in summary.cells if cell.measured is None]
    names = summary.names
    fields: tuple[Field, ...] = (
        ("cell", False, lambda cell: names[cell.cell_id]),
        ("status", False, lambda cell: STATUS_WORDS[cell.trials.status]),
        ("trials", True, lambda cell: f"{cell.trials.trials} of {cell.trials.planned}"),
        ("reason", False, lambda cell: cell.trials.problem.reason if cell.trials.problem else NOTHING),
    )
    return _table("Without a throughput", fields, cells)


def executed_words(cell: CellSummary) -> str:
    """Reduction and collective ops of one traced step, how they are packed, and in what its float32 was computed."""
    return executed_text(cell.trials.executed)


def executed_text(executed: Executed) -> str:
    """The same of what one trial recorded."""
    if not executed.fingerprint:
        return NOTHING
    operations = ", ".join(f"{count} × {name}" for name, count in sorted(executed.operations.items()))
    packs = f"; {plural(executed.packs, 'pack')}" if executed.packs else ""
    largest = f", the largest {size(executed.pack_bytes[0])}" if executed.pack_bytes else ""
    clusters = f"; {plural(executed.xla_clusters, 'XLA cluster')}" if executed.xla_clusters else ""
    ways = f"; NCCL {executed.nccl}" if executed.nccl else ""
    computed = "; float32 computed as TF32" if executed.arithmetic == TF32 else ""
    differs = f" — differs from the request: {executed.differs_from_request}" if executed.differs_from_request else ""
    return f"{operations or 'no reduction'}{packs}{largest}{clusters}{ways}{computed}{differs}"


def _twins(cell: CellSummary, by_id: dict[str, CellSummary]) -> str:
    return ", ".join(by_id[other].label for other in cell.same_experiment_as) or NOTHING


def _table(
    title: str,
    fields: Sequence[Field],
    cells: Sequence[CellSummary],
    note: str = "",
    marked: frozenset[int] = frozenset(),
) -> Table:
    columns = tuple(Head(name, numeric) for name, numeric, _ in fields)
    rows = tuple(_clean(tuple(read(cell) for _, _, read in fields)) for cell in cells)
    return Table(title, columns, rows, note, marked)


def _clean(row: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(printable(text) for text in row)


def _throughput(cell: CellSummary) -> str:
    return significant(cell.measured.throughput.value) if cell.measured else NOTHING


def _throughput_bounds(cell: CellSummary) -> str:
    return bounds(cell.measured.throughput) if cell.measured else NOTHING


def _against_best(cell: CellSummary) -> str:
    if cell.place is None:
        return NOTHING
    return "100 %" if cell.place.against_best is None else share(cell.place.against_best)


def with_joules(work: WorkloadSummary) -> bool:
    """Whether GPUs counted what some cell took."""
    return any(_joules(cell) != NOTHING for cell in work.ranking)


def _joules(cell: CellSummary) -> str:
    """By the GPUs' own counters, of their windows."""
    gpus = cell.trials.gpus
    return NOTHING if gpus is None or gpus.joules_each is None else significant(gpus.joules_each)


def _speed_ups(work: WorkloadSummary) -> Callable[[CellSummary], str]:
    """Over one device at the same batch: of a cell without a strategy on the whole machine, too."""
    bases = [cell.trials for cell in work.cells if cell.trials.cell.is_base]
    one_device = {apart(base.cell, THREADS): base for base in bases if base.all_cores <= 1}

    def told(cell: CellSummary) -> str:
        of, scaling = cell.trials, cell.vs_none
        if of.cell.is_base and of.all_cores <= 1:
            return "1×"
        if of.cell.is_base and (base := one_device.get(apart(of.cell, THREADS))):
            scaling = relate(of, base, "no_strategy", references_of(bases))
        return f"{significant(scaling.speed_up.value)}× {plus_minus(scaling.speed_up)}" if scaling else NOTHING

    return told


def _unproved_bases(cell: CellSummary, by_id: Mapping[str, CellSummary]) -> list[str]:
    """A ratio to a base that is unproved is no better known than that base."""
    bases = {"no strategy": cell.vs_none, "own base": cell.vs_own}
    return [
        f"{name} is unproved"
        for name, scaling in bases.items()
        if scaling is not None and by_id[scaling.base_id].trials.unproved is not None
    ]


def _how_compared(cell: CellSummary) -> str:
    scaling: Scaling | None = cell.vs_none or cell.vs_own
    if scaling is None or scaling.log_ratio.method == "none":
        return "one trial: no interval"
    pairs = "pairs" if scaling.log_ratio.method.startswith("paired") else "trials a side"
    return f"{scaling.log_ratio.method}, {scaling.log_ratio.count} {pairs}"


def _sharing(cell: CellSummary) -> list[str]:
    return [SHARED_LABEL] if cell.trials.shared else []
