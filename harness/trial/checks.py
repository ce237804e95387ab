"""The correctness gate: a cell that computes the wrong thing has no throughput (`protocol.md`).

Each check returns None when it passes, else the evidence in plain words.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.trial.reference import Reference
from harness.trial.state import VariableState

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

REDUCTION_SIZES = ((1,), (10,), (3, 3, 1, 32), (64, 10), (1600, 64))
"""Shapes of the tensors that the reduction check sends together, as a model's gradients are sent."""

STATE_TOLERANCE = {"float32": 2e-3, "mixed_bfloat16": 8e-2, "mixed_float16": 3e-2}
"""Largest relative error ‖got − expected‖ / ‖expected change‖ of a variable, by precision.

Measured here over all models, strategies and 1–8 replicas (docs/figures.md): see the gate's
benchmark, `benchmarks/gate_margins.py`, which prints the largest error of right answers and the
smallest of planted faults."""

NOISE = 1e-3
"""Gradients below this share of the model's root-mean-square gradient are left out of the comparison
of weights: there rounding decides an adaptive optimizer's sign."""


def check_reduction(strategy: "tf.distribute.Strategy") -> str | None:
    """Sum known values, distinct per replica, through the batched path that gradients take.

    Replica r sends 2^r times a pattern of small integers, so sums are exact in float32 and the sum
    itself tells whose value is missing or counted twice.
    """
    import numpy as np
    import tensorflow as tf

    n = strategy.num_replicas_in_sync
    patterns = [(np.arange(math.prod(s), dtype=np.float32) % 7 + 1).reshape(s) for s in REDUCTION_SIZES]

    def replica() -> Any:
        context = tf.distribute.get_replica_context()
        power = tf.pow(2.0, tf.cast(context.replica_id_in_sync_group, tf.float32))
        return context.all_reduce(tf.distribute.ReduceOp.SUM, [power * pattern for pattern in patterns])

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def reduce_all() -> Any:
        return strategy.run(replica)

    reduced = reduce_all()
    for position, (result, pattern) in enumerate(zip(reduced, patterns, strict=True)):
        for r, value in enumerate(strategy.experimental_local_results(result)):
            factors = np.unique(value.numpy() / pattern)
            if factors.size != 1 or factors[0] != 2**n - 1:
                return _explain_sum(position, r, n, factors)
    return None


def _explain_sum(position: int, replica: int, n: int, factors: "np.ndarray[Any, Any]") -> str:
    where = f"tensor {position + 1} of {len(REDUCTION_SIZES)}, as replica {replica} received it"
    whole = 2**n - 1
    if factors.size != 1:
        return f"{where}: the sum differs between elements ({factors.size} different factors; expected {whole})"
    got = float(factors[0])
    text = f"{where}: got {got:g} where the sum over {n} replicas is {whole}"
    if got.is_integer() and 0 <= got < whole:
        missing = [str(r) for r in range(n) if not int(got) >> r & 1]
        return f"{text}: the value of replica {', '.join(missing)} is missing"
    if math.isclose(got * n, whole, rel_tol=1e-5):
        return f"{text}: that is the mean, not the sum"
    if got > whole and (got - whole) == 2 ** round(math.log2(got - whole)):
        return f"{text}: the value of replica {round(math.log2(got - whole))} is counted twice"
    return text


def check_update(
    state: Sequence[VariableState], initial: Sequence[VariableState], reference: Reference, precision: str
) -> str | None:
    """Compare weights, statistics and optimizer state of every replica with the reference.

    Optimizer state is compared too because Adam's step hides the gradient's scale: a mean where a
    sum belongs moves the weights alike, but not the moments.
    """
    import numpy as np

    tolerance = STATE_TOLERANCE[precision]
    significant = _significant(reference)
    scales = _scales(initial, reference.state)
    worst: tuple[float, str] = (0.0, "")
    weight = -1
    for now, start, expected in zip(state, initial, reference.state, strict=True):
        mask = None
        if now.kind == "weight":
            weight += 1
            mask = significant[weight]
            if not mask.any():
                continue
        wanted = expected.copies[0].astype(np.float64)
        change = wanted - start.copies[0].astype(np.float64)
        copies = now.copies if now.mirrored else (np.mean(np.stack(now.copies), axis=0),)
        for r, copy in enumerate(copies):
            got = copy.astype(np.float64)
            error = _relative_error(got, wanted, change, mask, scales[now.kind])
            if not error <= tolerance and not error <= worst[0]:
                worst = (error, _explain_update(now, r, got, wanted, start, error, tolerance))
    return worst[1] or None


def _relative_error(
    got: "np.ndarray[Any, Any]",
    wanted: "np.ndarray[Any, Any]",
    change: "np.ndarray[Any, Any]",
    mask: "np.ndarray[Any, Any] | None",
    scale: float,
) -> float:
    """‖got − wanted‖ / (‖change‖ + floor) over the masked elements; the floor absorbs noise around zero."""
    import numpy as np

    difference = got - wanted
    if mask is not None:
        difference, change = difference[mask], change[mask]
    floor = NOISE * scale * math.sqrt(difference.size)
    size = float(np.linalg.norm(change)) + floor
    error = float(np.linalg.norm(difference))
    if not math.isfinite(error):
        return math.inf
    return error / size if size > 0 else (0.0 if error == 0 else math.inf)


def _significant(reference: Reference) -> "list[np.ndarray[Any, Any]]":
    import numpy as np

    squares = sum(float(np.sum(np.square(g, dtype=np.float64))) for g in reference.gradients)
    count = sum(g.size for g in reference.gradients)
    threshold = NOISE * math.sqrt(squares / max(1, count))
    return [g > threshold for g in reference.gradients]


def _scales(initial: Sequence[VariableState], final: Sequence[VariableState]) -> dict[str, float]:
    """Root-mean-square change of each kind of variable."""
    import numpy as np

    squares: dict[str, float] = {}
    counts: dict[str, int] = {}
    for a, b in zip(initial, final, strict=True):
        change = b.copies[0].astype(np.float64) - a.copies[0].astype(np.float64)
        squares[a.kind] = squares.get(a.kind, 0.0) + float(np.sum(np.square(change)))
        counts[a.kind] = counts.get(a.kind, 0) + change.size
    return {kind: math.sqrt(squares[kind] / counts[kind]) for kind in squares}


def _explain_update(
    now: VariableState, replica: int, got: Any, wanted: Any, start: VariableState, error: float, tolerance: float
) -> str:
    import numpy as np

    where = np.unravel_index(int(np.argmax(np.abs(np.nan_to_num(got - wanted, nan=np.inf)))), got.shape)
    index = ",".join(str(int(i)) for i in where)
    on = f" on replica {replica}" if len(now.copies) > 1 else ""
    return (
        f"after 2 updates {now.kind} '{now.name}'{on} differs from the single-device reference by "
        f"{error:.3g} of its change (tolerance {tolerance:g}); element [{index}]: started at "
        f"{float(start.copies[0][where]):.6g}, expected {float(wanted[where]):.6g}, got {float(got[where]):.6g}"
    )


def check_agreement(state: Sequence[VariableState]) -> str | None:
    """Mirrored variables are identical on every replica, bit for bit."""
    import numpy as np

    for variable in state:
        first = variable.copies[0]
        for r, copy in enumerate(variable.copies[1:], start=1):
            if variable.mirrored and not np.array_equal(first, copy, equal_nan=True):
                different = int(np.sum(first != copy))
                return (
                    f"{variable.kind} '{variable.name}' on replica {r} differs from replica 0 in "
                    f"{different} of {first.size} elements (largest difference {np.max(np.abs(first - copy)):.3g})"
                )
    return None


def check_losses(losses: Sequence[float]) -> str | None:
    """Every loss that was read is finite."""
    for position, loss in enumerate(losses):
        if not math.isfinite(loss):
            return f"the loss at the end of window {position} is {loss}"
    return None


def check_applied(applied: int, scheduled: int) -> str | None:
    """The optimizer counted as many updates as there were steps."""
    if applied == scheduled:
        return None
    return f"{scheduled} updates were scheduled and {applied} were applied"
