"""What the shell may complete: run ids, and the names that a key of a spec takes. Imports little, and no TensorFlow."""

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

RUN_HELP = "A run's folder, its id, the beginning of either, or 'latest'."


def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """`latest` and the runs of the results folder that the line names, newest first."""
    folder = ctx.params.get("results") or Path("results")
    try:
        entries = sorted(
            (entry.name for entry in Path(folder).iterdir() if (entry / "run.json").is_file()), reverse=True
        )
    except OSError:
        entries = []
    return [name for name in ("latest", *entries) if name.startswith(incomplete)]


def strategies(incomplete: str) -> list[str]:
    """Strategies: a cell's name begins with one."""
    return [name for name in _names("strategy") if name.startswith(incomplete)]


def values_of(key: str) -> Callable[[str], list[str]] | None:
    """Completes comma-separated values of a key whose values are names; None for one that takes numbers or text."""
    if key not in _NAMED:
        return None

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = set(before.split(","))
        return [f"{before}{comma}{name}" for name in _names(key) if name.startswith(last) and name not in given]

    return complete


_NAMED = (
    "device", "strategy", "cross_device_op", "model", "data", "optimizer", "loop", "precision", "batch_scope", "xla",
    "partitioner", "updates",
)  # fmt: skip


def _names(key: str) -> Iterable[str]:
    from typing import get_args

    from harness.spec.cell import BatchScope, Partitioner, Precision, Updates

    closed = {"precision": Precision, "batch_scope": BatchScope, "partitioner": Partitioner, "updates": Updates}
    if key in closed:
        return [str(name) for name in get_args(closed[key])]
    if key == "xla":
        return ["true", "false"]
    from harness.engines.tensorflow.catalogue import load_catalogue

    catalogue = load_catalogue()
    found = {
        "device": catalogue.devices, "strategy": catalogue.strategies, "cross_device_op": catalogue.cross_device_ops,
        "model": catalogue.models, "data": catalogue.data, "optimizer": catalogue.optimizers, "loop": catalogue.loops,
    }  # fmt: skip
    return list(found[key])
