"""The limits of a machine as a table and as JSON: the best that was seen, and what a fresh process comes to."""

from typing import Any

from harness.analysis.limits import reached
from harness.record.limits import Limit, LimitKind, LimitsRecord
from harness.report.tables.table import Head, Table
from harness.report.values import Keys, document
from harness.report.words.text import bounds, listed, significant
from harness.visible import plural

WHAT: dict[LimitKind, str] = {
    "products": "matrix product",
    "memory": "memory, STREAM's add",
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
    rows = tuple(row for limit in record.limits for row in _rows(limit))
    missing: dict[str, list[str]] = {}
    for limit in record.limits:
        if limit.reason is not None:
            missing.setdefault(limit.reason, []).append(f"{WHAT[limit.quantity]} ({limit.type}, {place_of(limit)})")
    left_out = [f"Not measured: {listed(names)}: {reason}." for reason, names in missing.items()]
    return Table("What this machine can do at most", columns, rows, "\n".join([NOTE, *left_out]))


def _rows(limit: Limit) -> list[tuple[str, ...]]:
    """Of a limit that was measured its row."""
    comes_to = reached(limit)
    if limit.best is None or comes_to is None:
        return []
    prefix, factor = scale_of(limit.best)
    scaled, unit = comes_to.scaled(1 / factor), f" {prefix}{limit.unit}"
    return [
        (
            WHAT[limit.quantity],
            limit.type,
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
