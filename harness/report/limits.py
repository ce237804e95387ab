"""The limits of a machine as a table and as JSON: the best that was seen, and what a fresh process comes to."""

import functools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.analysis import CellSummary, RunSummary, summarise
from harness.analysis.limits import CellRate, cell_rates, computed_in, limits_of, numbers_told, reached
from harness.environment import Fact
from harness.errors import UsageError
from harness.record.limits import Limit, LimitKind, LimitsRecord
from harness.record.reading import Run
from harness.report.export.rows import ExportRow, interval_row
from harness.report.tables.sweep import OF_LIMIT
from harness.report.tables.table import Head, Table
from harness.report.values import Keys, document
from harness.report.words.text import NOTHING, OWN_INTERVAL, bounds, listed, share, significant
from harness.spec.cell import cell_names
from harness.visible import message, plural

WHAT: dict[LimitKind, str] = {
    "products": "matrix product",
    "memory": "memory, STREAM's add",
    "between_processes": "from process to process, TCP",
    "host_to_device": "copy from host to device",
    "device_to_host": "copy from device to host",
    "device_to_device": "copy from device to device",
}
PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6))
NOTE = (
    "The limit is the best of all repetitions, as STREAM reports it: other work on the machine makes one slower, never "
    "faster. Beside it the best repetition of a fresh process, the mean of processes with its 95 % interval. A product "
    "of two n × n matrices counts 2·n³ operations, memory a = b + c 24 bytes an element, a copy each byte once."
)
ON_GPUS = (
    "On GPUs from Ampere on, TensorFlow multiplies float32 as TensorFloat-32 unless told not to, here as in a step. "
    "Host memory that is copied is pageable, as where a step gets its batch."
)


RATES_NOTE = (
    "FLOP/s are the operations of the step's matrix products and convolutions by what the step takes; elementwise "
    "work, updates and sums count as time only. FLOP a byte are those operations by the bytes that the same products "
    "read and write, each once: what a cache holds need not come from memory, so a cell may be faster than memory "
    "allows. The limits are the best that 'doctor --limits' saw here."
)
ON_GPUS_MFU = " Of GPUs the share of the limit is what is called MFU (model FLOPs utilization)."
RATES_ROOM = (
    (110, ("cell", "FLOP/s", OWN_INTERVAL, OF_LIMIT, "limit", "on", "FLOP a byte", "below")),
    (0, ("cell", "FLOP/s", OF_LIMIT)),
)
"""As `Rooms` of a terminal."""


def known_limits(run: Run, results: Path) -> LimitsRecord | None:
    """The limits of the run's machine in `results`, for what goes on without them: standard error names a record that
    cannot be read."""
    return limits_of(run.manifest.facts, results, _say_passed_over)


def results_of(run: Run) -> Path:
    """Where the limits of its machine are looked for: beside it, or where the reader says."""
    return run.results or run.path.resolve().parent


def known_rates(run: Run, summary: RunSummary) -> list[CellRate]:
    """How near the run's cells come to the limits of its machine, which are beside it or where the reader looks for
    them; none where nobody measured them. Tells of a record as `known_limits` does."""
    limits = known_limits(run, results_of(run))
    return [] if limits is None else cell_rates(summary.cells, limits, run.manifest.sweep.launcher)


@functools.cache  # of each record once
def _say_passed_over(problem: str) -> None:
    print(f"harness: {message(problem)}; it is passed over here", file=sys.stderr, flush=True)


def rates_table(rates: Sequence[CellRate]) -> Table:
    """A row a cell, the closest to its limit first."""
    columns = (
        Head("cell", False),
        Head("FLOP/s"),
        Head(OWN_INTERVAL),
        Head(OF_LIMIT),
        Head("limit"),
        Head("on", False),
        Head("FLOP a byte"),
        Head("below", False),
    )
    names = _names(rates)
    rows = tuple(_rate_row(names[rate.cell.cell_id], rate) for rate in sorted(rates, key=_closest))
    note = f"{RATES_NOTE}{ON_GPUS_MFU if any(map(_mfu, rates)) else ''}"
    return Table("How far from the limit", columns, rows, note if rows else "")


def _mfu(rate: CellRate) -> str:
    """What the share of the limit is called besides, where it is of GPUs."""
    return " (MFU)" if rate.roof is not None and not rate.cell.trials.device.on_processors else ""


def _names(rates: Sequence[CellRate]) -> dict[str, str]:
    """What tells each cell from the others, its engine included where the run has several."""
    names = cell_names([rate.cell.trials.cell for rate in rates])
    return {rate.cell.cell_id: f"{names[rate.cell.cell_id]} {rate.cell.trials.engine_told}".rstrip() for rate in rates}


def _closest(rate: CellRate) -> float:
    return -rate.of_roof.value if rate.of_roof is not None else 0.0


def _rate_row(name: str, rate: CellRate) -> tuple[str, ...]:
    roof = rate.roof
    limited = (NOTHING, "not measured", NOTHING)
    if roof is not None and rate.share is not None:
        limited = (share(rate.share), flops(roof.compute), f"{roof.place}, {roof.numbers}")
    return (
        name,
        flops(rate.rate.value),
        bounds(rate.rate.scaled(1 / scale_of(rate.rate.value)[1])),
        *limited,
        significant(rate.intensity),
        f"the {rate.bound} limit" if rate.bound else NOTHING,
    )


def limit_rows(run: Run, results: Path) -> list[ExportRow]:
    """`rate_rows` of a run, by the limits of its machine that are in `results`. UsageError where nobody counted the
    operations of its cells, StorageError where the limits are damaged."""
    summary, limits = summarise(run.manifest, run.trials, run.rank_unproved), limits_of(run.manifest.facts, results)
    rates = cell_rates(summary.cells, limits, run.manifest.sweep.launcher)
    if not rates:
        raise UsageError(f"RUN: '{run.manifest.run_id}' has no measured cell whose operations were counted")
    return rate_rows(rates)


def rate_rows(rates: Sequence[CellRate]) -> list[ExportRow]:
    """A row a cell, as `RATE_COLUMNS` have them, without a limit where none was measured."""
    names = _names(rates)
    return [_export_row(names[rate.cell.cell_id], rate) for rate in rates]


def _export_row(name: str, rate: CellRate) -> ExportRow:
    roof, executed = rate.roof, rate.cell.trials.executed
    return {
        "cell_id": rate.cell.cell_id,
        "cell": name,
        "flops_per_step": executed.flops_per_step,
        "bytes_per_step": executed.bytes_per_step,
        "flop_per_byte": rate.intensity,
        **interval_row("flop_per_s", rate.rate),
        **interval_row("share_of_limit", rate.share),
        "limit_on": roof and roof.place,
        "limit_type": roof and roof.type,
        "limit_flop_per_s": roof and roof.compute,
        "limit_bytes_per_s": roof and roof.memory,
        "roof_flop_per_s": roof and roof.at(rate.intensity),
    }


def flops(rate: float, digits: int = 3) -> str:
    """`12.3 GFLOP/s`."""
    prefix, factor = scale_of(rate)
    return f"{significant(rate / factor, digits)} {prefix}FLOP/s"


def rates_words(rates: Sequence[CellRate]) -> str:
    """How close the closest cell and the one furthest away come to their limits; empty where no limit is known."""
    known = sorted((rate for rate in rates if rate.share is not None), key=_closest)
    if not known:
        return ""
    names = _names(rates)
    told = [
        f"{names[rate.cell.cell_id]} comes to {share(rate.share)}{_mfu(rate)} of what {rate.roof.place} can compute in "
        f"{rate.roof.numbers}{_of_memory(rate)}"
        for rate in (known[0], *known[1:][-1:])
        if rate.share is not None and rate.roof is not None
    ]
    if len(told) == 1:
        return f"{told[0]}."
    return f"Closest to its limit: {told[0]}. Furthest from it: {told[1]}."


def _of_memory(rate: CellRate) -> str:
    """How close it comes to its roof where that is the slanted part; empty elsewhere."""
    if rate.bound != "memory" or rate.of_roof is None:
        return ""
    return f", and to {share(rate.of_roof)} of what memory lets it do at {significant(rate.intensity)} FLOP a byte"


def uncounted(cells: Sequence[CellSummary], rates: Sequence[CellRate]) -> str:
    """How many measured cells of which engines are not among `rates`; empty where all are, or nobody counted any."""
    counted = {rate.cell.cell_id for rate in rates}
    left_out = Counter(
        str(cell.trials.cell.get("engine"))
        for cell in cells
        if counted and cell.measured is not None and cell.cell_id not in counted
    )
    told = listed([f"{plural(count, 'cell')} of {engine}" for engine, count in sorted(left_out.items())])
    return f"Left out, since their operations are not counted: {told}." if told else ""


def limits_table(record: LimitsRecord) -> Table:
    """A row a limit, and below them what could not be measured, with the reason."""
    columns = (
        Head("what", False),
        Head("numbers", False),
        Head("on", False),
        Head("limit"),
        Head("a process comes to"),
        Head("processes"),
    )
    rows = tuple(row for limit in record.limits for row in _rows(limit, record.machine.facts))
    missing: dict[str, list[str]] = {}
    for limit in record.limits:
        if limit.reason is not None:
            missing.setdefault(limit.reason, []).append(f"{WHAT[limit.quantity]} ({limit.type}, {place_of(limit)})")
    left_out = [f"Not measured: {listed(names)}: {reason}." for reason, names in missing.items()]
    of_gpus = [ON_GPUS] if any(limit.device == "gpu" and limit.rates for limit in record.limits) else []
    return Table("What this machine can do at most", columns, rows, "\n".join([NOTE, *of_gpus, *left_out]))


def _rows(limit: Limit, facts: Mapping[str, Fact]) -> list[tuple[str, ...]]:
    """Of a limit that was measured its row."""
    comes_to = reached(limit)
    if limit.best is None or comes_to is None:
        return []
    prefix, factor = scale_of(limit.best)
    scaled, unit = comes_to.scaled(1 / factor), f" {prefix}{limit.unit}"
    return [
        (
            WHAT[limit.quantity],
            numbers_told(computed_in(limit, facts)),
            place_of(limit),
            f"{significant(limit.best / factor)}{unit}",
            f"{significant(scaled.value)} {bounds(scaled)}{unit}",
            str(len(limit.rates)),
        )
    ]


def place_of(limit: Limit) -> str:
    """`2 threads`, or `GPU`."""
    return plural(limit.threads, "thread") if limit.device == "cpu" else "GPU"


def scale_of(rate: float) -> tuple[str, float]:
    """The prefix that a rate reads best with, and its factor: a power of ten, as FLOP/s and bytes/s are given."""
    return next(((prefix, factor) for prefix, factor in PREFIXES if rate >= factor), ("", 1.0))


def _value(limit: Limit) -> float | None:
    found = reached(limit)
    return None if found is None else found.value


def _ends(limit: Limit) -> list[float] | None:
    found = reached(limit)
    return None if found is None or found.low is None or found.high is None else [found.low, found.high]


LIMIT: Keys = {
    "quantity": "",
    "type": "",
    "arithmetic": "",
    "device": "",
    "threads": "",
    "unit": "",
    "limit": "best",
    "reached": _value,
    "reached_interval": _ends,
    "processes": lambda limit: len(limit.rates),
    "reason": "",
}
"""Keys of a limit as JSON: `limit` is the largest rate that was seen, `reached` what a fresh process comes to, with its
95 % interval."""


def limits_json(record: LimitsRecord) -> dict[str, Any]:
    """What `doctor --limits --json` prints."""
    return {
        "machine_id": record.machine_id,
        "created_utc": record.created_utc,
        "harness_version": record.harness_version,
        "seconds": record.seconds,
        "limits": [document(limit, LIMIT) for limit in record.limits],
    }
