"""How far right answers stay below the gate's limit, and planted faults above it.

1 is the limit: `update_error` of the record is the largest difference from the reference as a share
of what is allowed. The planted fault is the mildest kind, hidden from the reduction check: one
replica's gradient is missing, in all tensors, only where a real model's gradients are reduced.
"""

from pathlib import Path

from common import scratch, table

from harness.record import TrialRecord
from harness.run.kinds.measure import measure
from harness.spec import Sweep, expand
from harness.trial.engines import catalogue_of

RIGHT = Sweep(
    name="right",
    strategy=["none", "mirrored", "central_storage"],
    replicas=[1, 2, 3, 4, 8],
    cross_device_op=["auto", "hierarchical_copy", "reduction_to_one_device"],
    batch_size=[16],
    model=["mnist_cnn", "transformer"],
    trials=1,
    windows=5,
    max_warmup=0,
    window=0.01,
)
NORMALISED = RIGHT.model_copy(
    update={"name": "resnet", "model": ["resnet20"], "replicas": [1, 2], "strategy": ["none", "mirrored"]}
)
MIXED = RIGHT.model_copy(
    update={
        "name": "mixed",
        "precision": ["mixed_bfloat16", "mixed_float16"],
        "replicas": [1, 2],
        "model": ["mnist_cnn", "transformer"],
        "cross_device_op": ["auto"],
    }
)
WRONG = RIGHT.model_copy(
    update={
        "name": "wrong",
        "strategy": ["mirrored"],
        "replicas": [2, 4, 8],
        "cross_device_op": ["tests.planted:quietly_dropped_op"],
        "precision": ["float32", "mixed_bfloat16"],
    }
)


def main() -> None:
    """Measure and print."""
    rows = [("answers", "precision", "model", "cells", "status", "smallest error", "largest error")]
    ops: dict[tuple[str, int], set[str]] = {}
    for name, sweep in (("right", RIGHT), ("right", NORMALISED), ("right", MIXED), ("planted fault", WRONG)):
        with scratch() as folder:
            trials = measure(sweep, expand(sweep, catalogue_of()).cells, Path(folder)).trials
        if name == "planted fault":
            trials = [t for t in trials if t.cell.strategy == "mirrored"]
        else:
            for t in trials:
                if t.cell.strategy == "mirrored":
                    ops.setdefault((t.cell.cross_device_op, t.cell.replicas), set()).add(t.status)
        rows += _rows(name, trials)
    table(rows)
    print("\n1 is the limit. TensorFlow's own ops, by replicas (— is not run):")
    names = sorted({op for op, _ in ops})
    grid = [("op", *map(str, range(1, 9)))]
    grid += [(op, *("/".join(sorted(ops.get((op, n), {"—"}))) for n in range(1, 9))) for op in names]
    table(grid)


def _rows(name: str, trials: list[TrialRecord]) -> list[tuple[str, ...]]:
    rows = []
    keys = sorted({(t.cell.precision, t.cell.model, t.status) for t in trials})
    for precision, model, status in keys:
        mine = [t for t in trials if (t.cell.precision, t.cell.model, t.status) == (precision, model, status)]
        errors = [t.checks.update_error for t in mine if t.checks.update_error is not None]
        spread = (f"{min(errors):.2g}", f"{max(errors):.2g}") if errors else ("–", "–")
        rows.append((name, precision, model, str(len(mine)), status, *spread))
    return rows


if __name__ == "__main__":
    main()
