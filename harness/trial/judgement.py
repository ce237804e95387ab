"""The gate's judgement: a cell that computes the wrong thing has no throughput (`docs/protocol.md#correctness-gate`).

Arrays come in, evidence goes out; which framework computed them does not matter here. Each check returns None when it
passes, else the evidence in plain words.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.protocol.state import Reference, VariableState

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

STATE_TOLERANCE = {"float32": 1e-3, "tf32": 1e-2, "mixed_bfloat16": 3e-2, "mixed_float16": 1e-2}
"""Largest relative error ‖got − expected‖ / ‖expected change‖ of a variable, by arithmetic, beyond its noise.

One replica's gradient missing among n changes the gradient by about 1/n."""
STORED = {"float64": 2**-53, "float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}
"""By how much of itself storing a value rounds it, by the variable's type; others are exact."""
LOSS_TOLERANCE = 0.1
"""The loss is one number, in which rounding averages out: it is allowed so much of what a variable is."""
NOISE_FACTOR = 10
"""How many times the noise that the perturbed references show is allowed on top."""


@dataclass(frozen=True)
class UpdateCheck:
    """How the updates compare: `share` is the worst difference as a share of what is allowed for it.

    `evidence` describes it where it is more than is allowed, and is None where everything is within.
    """

    share: float
    evidence: str | None


def check_update(
    states: Sequence[Sequence[VariableState]],
    initial: Sequence[VariableState],
    reference: Reference,
    first: int = 1,
) -> UpdateCheck:
    """Compare weights, statistics and optimizer state of every replica with the reference, after each update.

    Optimizer state is compared too because Adam's step hides the gradient's scale: a mean where a
    sum belongs moves the weights alike, but not the moments. The worst offender is the evidence, which counts updates
    from `first` on.
    """
    worst = UpdateCheck(0.0, None)
    for update, state in enumerate(states):
        masks = iter(reference.trusted)
        for v, now in enumerate(state):
            mask = next(masks) if now.kind == "weight" else None
            allowed = _Allowed(STATE_TOLERANCE[reference.arithmetic], reference.noise[update][v], update + 1)
            found = _compare(now, initial[v], reference.states[update][v], mask, allowed)
            if found.share > worst.share:
                evidence = found.evidence and f"after update {first + update} {found.evidence}"
                worst = UpdateCheck(found.share, evidence)
    return worst


def sight_of(
    wrong: "Mapping[str, Sequence[Array]]", initial: Sequence[VariableState], reference: Reference
) -> dict[str, float]:
    """How many times its limit each state would be that a fault in the last update leaves behind, by the fault's name.

    `wrong[fault]` has an array a variable, as `reference.states[-1]` has. A fault that begins earlier shows at least as
    much: it has all updates to show in.
    """

    def as_trained(state: "Sequence[Array]") -> list[VariableState]:
        return [
            VariableState(now.name, now.kind, tuple(value) if now.kind == "statistic" else (value,))
            for value, now in zip(state, initial, strict=True)
        ]

    right = [as_trained(state) for state in reference.states[:-1]]
    return {
        fault: check_update([*right, as_trained(state)], initial, reference).share for fault, state in wrong.items()
    }


@dataclass(frozen=True)
class _Allowed:
    """What a variable may differ by after so many updates (`docs/protocol.md#correctness-gate`)."""

    tolerance: float
    noise: float
    updates: int

    def limit(self, change: float, stored: float) -> float:
        """Of a variable that the reference changes by a norm, where storing it once rounds by another.

        Both sides have stored it after every update.
        """
        return self.tolerance * change + NOISE_FACTOR * self.noise + 2 * self.updates * stored


def _compare(
    now: VariableState, start: VariableState, expected: "Array", mask: "Array | None", allowed: _Allowed
) -> UpdateCheck:
    """The worst replica's copy of one variable.

    A statistic is compared with what its own replica's share gives.
    """
    import numpy as np

    worst = UpdateCheck(0.0, None)
    for r, copy in enumerate(now.copies):
        wanted = (expected[r] if now.kind == "statistic" else expected).astype(np.float64)
        chosen = np.ones(wanted.shape, dtype=bool) if mask is None else mask
        got = copy.astype(np.float64)
        error = _norm((got - wanted)[chosen])
        change = _norm((wanted - start.copies[min(r, len(start.copies) - 1)].astype(np.float64))[chosen])
        limit = allowed.limit(change, STORED.get(copy.dtype.name, 0.0) * _norm(wanted[chosen]))
        share = _share(error, limit)
        if share > worst.share:
            seen = np.where(chosen, wanted, got)
            told = None if share <= 1 else _explain_update(now, r, got, seen, start, error, limit, change)
            worst = UpdateCheck(share, told)
    return worst


def _norm(values: "Array") -> float:
    """‖values‖. Not by NumPy's own, whose threads wait for cores that other workers of the trial keep busy."""
    import numpy as np

    return math.sqrt(float(np.square(values).sum()))


def _share(error: float, limit: float) -> float:
    """error ÷ limit; infinite where the error is not a number or nothing at all is allowed."""
    if error == 0:
        return 0.0
    return error / limit if limit > 0 and math.isfinite(error) else math.inf


def _explain_update(
    now: VariableState,
    replica: int,
    got: "Array",
    wanted: "Array",
    start: VariableState,
    error: float,
    limit: float,
    change: float,
) -> str:
    import numpy as np

    of_size = f"of {got.size} elements"
    on = f" on replica {replica}" if len(now.copies) > 1 else ""
    if bad := int(np.isnan(wanted).sum()):
        return (
            f"{now.kind} '{now.name}'{on} is not a number in {bad} {of_size} of the single-device reference, and in "
            f"{int(np.isnan(got).sum())} here: model and optimizer give that without tf.distribute too"
        )
    if bad := int((~np.isfinite(got)).sum()):
        return f"{now.kind} '{now.name}'{on} is not finite in {bad} {of_size}, and the single-device reference is"
    where = np.unravel_index(int(np.argmax(np.abs(got - wanted))), got.shape)
    index = ",".join(str(int(i)) for i in where)
    of = f" ({100 * error / change:.3g} % of its change)" if change > 0 else ""
    return (
        f"{now.kind} '{now.name}'{on} is {error:.3g} away from the single-device reference{of}, "
        f"where {limit:.3g} is allowed; element [{index}]: started at {float(start.copies[0][where]):.6g}, "
        f"expected {float(wanted[where]):.6g}, got {float(got[where]):.6g}"
    )


def check_agreement(state: Sequence[VariableState]) -> str | None:
    """Trained weights and optimizer state are identical on every replica, bit for bit."""
    return _difference([variable for variable in state if variable.kind != "statistic"])


def digests_of(state: Sequence[VariableState]) -> dict[str, str]:
    """SHA-256 of each variable that must be the same in every process of a cluster, by kind and name."""
    return {
        f"{variable.kind} '{variable.name}'": hashlib.sha256(variable.copies[0].tobytes()).hexdigest()[:16]
        for variable in state
        if variable.kind != "statistic"
    }


def note_statistics(state: Sequence[VariableState]) -> str | None:
    """A remark, not a fault: Keras 3 does not average batch normalisation's statistics over replicas."""
    found = _difference([variable for variable in state if variable.kind == "statistic"])
    if found is None:
        return None
    return f"each replica keeps its own untrained statistics, and replica 0's are what is saved: {found}"


def _difference(state: Sequence[VariableState]) -> str | None:
    import numpy as np

    for variable in state:
        first = variable.copies[0]
        for r, copy in enumerate(variable.copies[1:], start=1):
            if not np.array_equal(first, copy, equal_nan=np.issubdtype(first.dtype, np.floating)):
                different = int(np.sum(first != copy))
                largest = np.max(np.abs(first.astype(np.float64) - copy.astype(np.float64)))
                return (
                    f"{variable.kind} '{variable.name}' on replica {r} differs from replica 0 in "
                    f"{different} of {first.size} elements (largest difference {largest:.3g})"
                )
    return None


def check_mean_losses(losses: Sequence[float], reference: Reference, first: int = 1) -> str | None:
    """Each reported loss is the mean over the global batch that the reference has."""
    tolerance = LOSS_TOLERANCE * STATE_TOLERANCE[reference.arithmetic]
    for position, (loss, wanted, noise) in enumerate(
        zip(losses, reference.losses, reference.loss_noise, strict=True), start=first
    ):
        limit = tolerance * abs(wanted) + NOISE_FACTOR * noise
        if not abs(loss - wanted) <= limit:
            return (
                f"the loss reported of update {position} is {loss:.6g}, and the mean over the global batch is "
                f"{wanted:.6g}, where {limit:.2g} is allowed"
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
