"""Cache, parallel calls and batches ahead on the devices: are they found to help where they do, and nowhere else?

Each is decided by `ab` twice: where the step waits for its input, and where it does not. Promise: *faster* in the first
place and *equivalent* in the second, three times each.

    python benchmarks/goals/input_axes.py

A quarter of an hour on two cores. Each decision is told as it is made.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common import scratch, table
from crossing import BATCH_SIZE, MODULE, fed, swept

import harness

Keys = Mapping[str, Any]
PHOTOGRAPHS: Keys = {"work": "pipeline", "data": "photographs", "cache": "none"}
OF_MODEL: Keys = {"model": f"{MODULE}:model", "batch_size": BATCH_SIZE, "batch_scope": "global"}
"""Beside its step what decoding the digits takes of the same cores is little."""
ALONE: Keys = {**OF_MODEL, "strategy": "none", "replicas": 1}
TWO_REPLICAS: Keys = {**OF_MODEL, "strategy": "mirrored", "replicas": 2}
FASTER = 2
"""Between two gulps of input passes the time in which the model takes the share of one that is 1 over this."""


def cases(appetite: float) -> Iterator[tuple[str, Keys, Keys, Keys, str]]:
    """(where, the keys of both sides, those of A, those of B, the verdict that is right)."""
    cache, calls, ahead = ("cache", "none", "memory"), ("parallel_calls", 1, 0), ("device_prefetch", 1, 8)
    gulps = f"{MODULE}:gulps(rate={round(FASTER * appetite)})"
    slow = {**TWO_REPLICAS, "data": gulps, "cache": "none", "prefetch": 0}
    trials = [
        ("photographs, by themselves", PHOTOGRAPHS, cache, "faster"),
        ("photographs, by themselves", PHOTOGRAPHS, calls, "faster"),
        ("input in gulps, two replicas", slow, ahead, "faster"),
        ("digits, whose step does not wait", ALONE, cache, "equivalent"),
        ("digits, whose step does not wait", {**ALONE, "cache": "none"}, calls, "equivalent"),
        ("digits, two replicas", TWO_REPLICAS, ahead, "equivalent"),
    ]
    for where, keys, (key, a, b), right in trials:
        yield where, {other: value for other, value in keys.items() if other != key}, {key: a}, {key: b}, right


def main() -> None:
    """Measure and print; exit code 1 where the promise is missed."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows, missed = [("where", "A", "B", "B ÷ A", "verdict", "right")], 0
    with scratch() as folder:
        [model] = fed(swept([10_000], 2, Path(folder), OF_MODEL["model"]))
        for where, keys, a, b, right in cases(model.appetite.value):
            result = harness.ab(a=a, b=b, results=folder, quiet=True, **keys)
            missed += result.verdict != right
            found = result.ratio
            between = "none" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
            rows.append((where, _said(a), _said(b), between, result.verdict, right))
            print(*rows[-1], sep=" · ", file=sys.stderr, flush=True)
    table(rows)
    print(f"\n{len(rows) - 1 - missed} of {len(rows) - 1} right; promised: all")
    sys.exit(bool(missed))


def _said(keys: Keys) -> str:
    return ", ".join(f"{key}={value}" for key, value in keys.items())


if __name__ == "__main__":
    main()
