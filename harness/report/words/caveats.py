"""What a careful reader of the answer wants to know next: what the figures do not tell, and how far to trust them."""

from collections import defaultdict
from collections.abc import Iterator

from harness.analysis import Interval, Noise, WorkloadSummary
from harness.analysis.estimates.verdict import Margins
from harness.analysis.ops import judge_ops
from harness.analysis.paging import KEEPS_MEMORY, tried_by
from harness.analysis.trends import trend_words
from harness.record.trial import TF32
from harness.report.words.engines import processors_of_engines, told_of
from harness.report.words.headline import as_known, varying
from harness.report.words.over import over_base
from harness.report.words.remedies import trend_remedy
from harness.report.words.separation import ENOUGH
from harness.report.words.text import is_useless, listed, share, significant
from harness.spec.axes import ENGINE
from harness.spec.inputs import BEFORE_CACHE
from harness.spec.naming import key_words
from harness.visible import plural, printable

GAINS = ("pays", "beats_one_device")
"""Verdicts by which distributing gains over something, which nothing beside them calls overhead."""
_NAMED = 3
_WIDE = 0.03
_MUCH = 3.0
_MORE = 1.15
"""As many times another engine's processors are worth a word."""


def caveats(work: WorkloadSummary, throughput: Interval, noise: Noise, margins: Margins) -> tuple[str, ...]:
    """A sentence each, what matters most first; `throughput` is the fastest cell's, and ops are judged by `margins`."""
    return (
        *filter(None, [useless_words(work)]),
        *_ops(work, margins),
        *_paging(work),
        *_remarks(work),
        *_trends(work),
        *cached_words(work),
        *_together(work),
        *_compilers(work),
        *_processors(work),
        *_arithmetic(work),
        *_clocks(work),
        *_limits(work),
        *_drift(work, throughput, noise),
    )


def is_virtual(work: WorkloadSummary) -> bool:
    """Whether the workload ran on virtual devices."""
    return any(cell.trials.device.virtual for cell in work.cells)


def _ops(work: WorkloadSummary, margins: Margins) -> Iterator[str]:
    """Where another op, or packing, is faster beyond the margin than the one that runs where none is chosen."""
    verdicts = judge_ops(work.ops, margins) if work.judged else {}
    of_default = {cell.cell_id for cell in work.cells if cell.trials.cell.get("cross_device_op") == "auto"}
    faster = [
        f"{group.label}: {item.name} has {share(item.relative)} of its throughput"
        for group in work.ops
        if group.reference_id in of_default
        for item in group.results
        if item.relative and item.cell_id in verdicts
        if verdicts[item.cell_id].verdict == "faster"
    ]
    if faster:
        yield f"The default op is not the fastest: {'; '.join(faster[:_NAMED])}{_more(len(faster))}."


def _more(count: int) -> str:
    return f"; and {count - _NAMED} more" if count > _NAMED else ""


def _remarks(work: WorkloadSummary) -> Iterator[str]:
    """What the gate remarks on the fastest cell, and on the one to take where it is not the fastest."""
    told = (work.answer.best_id, work.answer.simplest_id)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for cell in work.ranking:
        if cell.cell_id in told and cell.trials.notes:
            found[cell.trials.notes[0].rstrip(".")].append(cell.label)
    for note, labels in found.items():
        yield printable(f"The gate remarks on {listed(labels)}: {note}.")


def useless_words(work: WorkloadSummary) -> str:
    """What to do where the interval of the fastest cell's throughput says nothing; empty where it says something."""
    throughput = work.answer.throughput
    if throughput is None or not work.judged or not is_useless(throughput):
        return ""
    more = max(ENOUGH, 2 * throughput.count)
    return f"{plural(throughput.count, 'trial')} cannot tell the throughput here: use --trials {more} or more."


def _trends(work: WorkloadSummary) -> Iterator[str]:
    """Cells among those that the answer rests on whose windows still change in the course of a trial."""
    base, best = (as_known(work, words) for words in ("fastest", "fastest cell"))
    leading = {work.answer.base_id: f"the {base} without a strategy", work.answer.best_id: f"the {best}"}
    for cell in work.ranking:
        if (name := leading.get(cell.cell_id)) and cell.measured and cell.measured.trend is not None:
            change = cell.measured.trend
            yield f"In the course of a trial of {name} {trend_words(change)}: {trend_remedy(change)}."


def cached_words(work: WorkloadSummary) -> Iterator[str]:
    """Axes of reading and decoding of which nothing could be seen, because a cache stood behind them."""
    cells = [cell.trials for cell in work.ranking]
    keys = [key for key in BEFORE_CACHE if len({cell.cell.get(key) for cell in cells}) > 1]
    if keys and all(any(stage.startswith("Cache") for stage in cell.executed.input) for cell in cells):
        yield (
            f"In every timed window examples came from the cache, so {listed(map(key_words, keys))} could make no "
            "difference: add --cache none to see one."
        )


def _together(work: WorkloadSummary) -> Iterator[str]:
    """What one ranking holds that is not only another way to distribute."""
    keys = varying(work)
    told = listed(map(key_words, keys))
    if keys:
        yield (
            f"One ranking whatever the {told}, for the work is the same; a cell's "
            f"efficiency and its '{over_base(work)}' are over no strategy of its own {told}."
        )
    if keys and not work.linked:
        yield (
            f"Cells of different {told} did not take turns in this run: what the machine did in between is in their "
            "comparison."
        )
    if "precision" in keys:
        yield "Precision changes the numbers that a step computes: what that does to accuracy was not measured."


def _compilers(work: WorkloadSummary) -> Iterator[str]:
    """Engines that compile what TensorFlow was not asked to, where both are ranked."""
    ranked = [(cell.trials.cell, cell.trials.executed) for cell in work.ranking]
    compile_all = sorted({str(cell.get("engine")) for cell, ran in ranked if "XLA" in ran.unlike.get("compiler", "")})
    of_tensorflow = {bool(cell.get("xla")) for cell, _ in ranked if cell.get("engine") == ENGINE}
    if compile_all and False in of_tensorflow:
        more = "" if True in of_tensorflow else ": --xla false,true measures what that gives"
        yield (
            f"{listed(compile_all)} compiled the whole step with XLA, and TensorFlow runs a graph of ops, each by "
            f"itself, unless it is asked to compile{more}."
        )
    if compile_all:
        beside = (told_of(str(cell.get("engine"))).uncompiled for cell, _ in ranked)
        yield from (words.format(listed(compile_all)) for words in dict.fromkeys(filter(None, beside)))


def _processors(work: WorkloadSummary) -> Iterator[str]:
    """Engines of which one device takes more of the machine than another's."""
    busy = sorted(processors_of_engines(work).items(), key=lambda item: item[1])
    if len(busy) > 1 and busy[-1][1] > _MORE * busy[0][1]:
        (few, least), (many, most) = busy[0], busy[-1]
        yield (
            f"Without a strategy {many} keeps {most:.2f} processors busy and {few} {least:.2f}: some of the difference "
            "between them, and between their efficiencies, is of processors and not of the engine (the table of what "
            "differs has each)."
        )


def _arithmetic(work: WorkloadSummary) -> Iterator[str]:
    """What float32 was computed in, where that is not float32."""
    found = [cell.trials for cell in work.ranking if cell.trials.executed.arithmetic == TF32]
    if found:
        engines = {trials.executed.engine for trials in found}
        others = [told.does_tf32 for engine in sorted(engines) if (told := told_of(engine)).does_tf32]
        other = f", as {listed(others)}" if others else ""
        variables = "".join(told_of(engine).tf32 for engine in sorted(engines))
        yield (
            "float32 was computed as TF32, with 10 bits of fraction in place of 23, which TensorFlow does by itself on "
            f"GPUs that can{other}; NVIDIA_TF32_OVERRIDE=0 in the environment forbids it{variables}."
        )


def _clocks(work: WorkloadSummary) -> Iterator[str]:
    """GPUs that were slowed down while ranked cells were timed."""
    read = [(cell, cell.trials.gpus) for cell in work.ranking if cell.trials.gpus is not None]
    slowed, windows = sum(gpus.slowed for _, gpus in read), sum(gpus.read for _, gpus in read)
    if slowed:
        cell, most = max(read, key=lambda item: item[1].slowed / max(1, item[1].read))
        yield (
            f"A GPU's clock was held down in {slowed:,} of {windows:,} windows, most often those of {cell.label}: "
            f"{most.words}. What that cost is in the figures."
        )


def _paging(work: WorkloadSummary) -> Iterator[str]:
    """That the fastest distributed cell, or where none is ranked the fastest, pays for memory it need not give back."""
    answer, found = work.answer, {cell.cell_id: cell for cell in work.ranking}
    cell, base = (found.get(one or "") for one in (answer.best_distributed_id or answer.best_id, answer.base_id))
    told = None if cell is None or cell.measured is None else cell.measured.paging
    if cell is None or told is None or not told.is_much:
        return
    beside = None if base is None or base is cell or base.measured is None else base.measured.paging
    of_base = "" if base is None or beside is None else f" ({base.label}: {beside.share_words})"
    yield (
        f"{cell.label} spends {told.words}{of_base}: memory that glibc gives back and takes again. {KEEPS_MEMORY} in "
        f"the environment keeps it; {tried_by(cell.trials.cell)} measures what that gives."
    )


def _limits(work: WorkloadSummary) -> Iterator[str]:
    """What was measured is not what a reader may take it for. Where distributing gains, nothing calls it overhead."""
    answer = work.answer
    if answer.verdict in GAINS and (is_virtual(work) or answer.shared):
        yield "The gain is of these processors: what more devices would give, replicas that share them do not tell."
    elif is_virtual(work) and answer.distributed:
        yield "Virtual devices: this shows overhead, not hardware scaling."
    elif answer.shared:
        yield "Cells with more replicas than processors show the strategy's overhead only, not hardware scaling."
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    if answer.best_id is not None and answer.base_id is not None:
        ours, theirs = cells[answer.best_id].work.amount, cells[answer.base_id].work.amount
        quantity = work.workload.quantity
        if ours > theirs:
            best, base = (as_known(work, words) for words in ("fastest cell", "fastest"))
            yield (
                f"The {best} takes {ours} {quantity.many} a step where the {base} without a strategy takes {theirs}: "
                f"more {quantity.unit} is not the same as fewer seconds to a given accuracy."
            )


def _drift(work: WorkloadSummary, throughput: Interval, noise: Noise) -> Iterator[str]:
    """Why a throughput may be known to ± 20 % where comparisons are known to ± 1 %."""
    half, paired, alone = throughput.relative_half_width, noise.paired_deviation, noise.cell_deviation
    if half is None or paired is None or alone is None or half < _WIDE or alone < _MUCH * paired:
        return
    compared = "comparisons" if work.linked else "comparisons of cells that took turns"
    yield (
        f"The machine's own speed varied by {significant(100 * alone, 2)} % between blocks, which is what makes the "
        f"interval of the throughput wide; {compared} are made within a block, where cells agree to "
        f"{significant(100 * paired, 2)} %."
    )
