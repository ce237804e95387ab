"""The gate's judgement: a cell that computes the wrong thing has no throughput (`docs/protocol.md#correctness-gate`).

Arrays come in, evidence goes out; which framework computed them does not matter here. Each check returns None when it
passes, else the evidence in plain words.
"""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.trial.norms import apart_each, change_of, distance, distance_but_for_few, furthest, same

if TYPE_CHECKING:
    from harness.protocol.state import Array

_Gradients = TypeVar("_Gradients")
"""Of all trained weights, as an engine has them."""
STATE_TOLERANCE = {"float32": 1e-3, "tf32": 1e-2, "mixed_bfloat16": 3e-2, "mixed_float16": 1e-2}
"""Largest relative error ‖got − expected‖ / ‖expected change‖ of a variable, by arithmetic, beyond its noise.

One replica's gradient missing among n changes the gradient by about 1/n."""
STORED = {"float64": 2**-53, "float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}
"""By how much of itself storing a value rounds it, by the variable's type; others are exact."""
LOSS_TOLERANCE = 0.1
"""The loss is one number, in which rounding averages out: it is allowed so much of what a variable is."""
LARGEST_SHARE = 1e9
"""Of what is allowed: JSON has no infinity."""
CLEAR = 10
"""A fault is beyond doubt where it would be so many times what is allowed. Where one is not, a network amplifies what
rounding does: of ResNet-50 on images of 32 by 32 a fault in the second update would be 0.1 to 3 times what is allowed,
and 280 to 3,000 times where each update begins from the step's own state."""
FEW = 1e-4
"""Share of a variable's elements that may be anything where updates are held one by one: that networks amplify what
rounding does is because a value near 0 lies on the other side of a ReLU, and so all that hangs on it jumps. Of a kernel
of ResNet-50, with images of 32 by 32, 14 of 2.4 million weights went the other way under Adam. What replicas add up is
looked at element by element, by another check."""
REACH = 10
"""How many times the furthest that any trained weight moves one may be off that has no gradient. No less: where a unit
is dead or saturated for a whole batch a gradient is exactly 0, of which another order of additions may make a little,
and Adam moves by that as far as by any other."""
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
    worst = _Found(0.0)
    told = None
    for update, state in enumerate(states):
        for now, wanted in zip(state, _wanted(initial, reference, update), strict=True):
            found = wanted.furthest(now, worst)
            if found is not worst:
                worst = found
                told = f"after update {first + update} {_explain(now, wanted, found)}" if found.share > 1 else None
    return UpdateCheck(worst.share, told)


def must_be_real(state: Sequence[VariableState]) -> None:
    """Raises Unprovable where a variable is complex: limits and noise are those of real numbers."""
    import numpy as np

    for variable in state:
        if np.iscomplexobj(variable.copies[0]):
            raise Unprovable(f"{variable.kind} '{variable.name}' is complex, which no reference is compared with")


def sight_of(
    wrong: "Iterable[tuple[str, Iterable[Array]]]", initial: Sequence[VariableState], reference: Reference
) -> dict[str, float]:
    """How many times its limit each state would be that a fault in the last update leaves behind, by the fault's name.

    `wrong` has each fault with an array a variable, as `reference.states[-1]` has; one state is held at a time. A fault
    that begins earlier shows at least as much: it has all updates to show in.
    """

    wanted = _wanted(initial, reference, len(reference.states) - 1)

    def as_trained(value: "Array", now: VariableState) -> VariableState:
        return VariableState(now.name, now.kind, tuple(value) if now.kind == "statistic" else (value,))

    sight = {}
    for fault, state in wrong:
        worst = _Found(0.0)
        for value, of in zip(state, wanted, strict=True):
            worst = of.furthest(as_trained(value, of.start), worst)
        sight[fault] = worst.share
    return sight


def is_clear(reference: Reference) -> bool:
    """Whether each fault would be far beyond what rounding may do, as far as the engine tells."""
    return min((reference.sight or {}).values(), default=math.inf) >= CLEAR


def faults_of(
    whole: _Gradients,
    without_last: _Gradients,
    earlier: _Gradients | None,
    replicas: int,
    times: Callable[[_Gradients, float], _Gradients],
) -> Iterator[tuple[str, _Gradients]]:
    """The faults (`Checks.sight`) that the last update of a cell can have, and the gradients that its optimizer would
    get: `whole` are their sums over all replicas, `earlier` those of the update before, if there was one."""
    if replicas > 1:
        yield "missing", without_last
        yield "averaged", times(whole, 1 / replicas)
    yield "doubled", times(whole, 2.0)
    if earlier is not None:
        yield "delayed", earlier


@dataclass(frozen=True)
class _Allowed:
    """What a variable may differ by after so many updates (`docs/protocol.md#correctness-gate`)."""

    tolerance: float
    noise: float
    updates: int
    reach: float = 0.0
    """The furthest that an element of any trained weight moves."""

    def limit(self, change: float, stored: float) -> float:
        """Of a variable that the reference changes by a norm, where storing it once rounds by another.

        Both sides have stored it after every update.
        """
        return self.tolerance * change + NOISE_FACTOR * self.noise + 2 * self.updates * stored


@dataclass(frozen=True)
class _Found:
    """How far a replica's copy of a variable is from the reference's: `error`, as a share of the limit."""

    share: float
    replica: int = 0
    error: float = 0.0
    idle: bool = False
    """Whether it is the furthest element of those that have no gradient."""


class _Wanted:
    """What a variable, which was `start`, is to be after an update; what that takes is worked out once.

    `values` has a leading axis of replicas for a statistic, which is compared with what its own replica's share gives.
    """

    def __init__(
        self,
        start: VariableState,
        values: "Array",
        mask: "Array | None",
        allowed: _Allowed,
        few: float = 0.0,
        idle: "Array | None" = None,
    ) -> None:
        self.start, self._few = start, few
        self._values = values
        self.mask = None if mask is None or mask.all() else mask
        self.idle = idle if idle is not None and idle.any() else None
        self.nans_alike = start.kind != "weight"
        """A sentinel that nothing has touched yet; a weight that is no number is a fault, wherever it comes from."""
        self._allowed = allowed
        self._alike = start.kind != "statistic" and all(copy is start.copies[0] for copy in start.copies)
        """Whether what is wanted, and what the reference changes it by, is the same on every replica."""
        self._known: dict[tuple[int, str], tuple[float, float]] = {}

    def of(self, replica: int) -> "Array":
        """The values on a replica."""
        found: Array = self._values[replica] if self.start.kind == "statistic" else self._values
        return found

    def limit(self, replica: int, dtype: str) -> tuple[float, float]:
        """(what a copy of a type may be away from the values, by what norm the reference changes them)."""
        if (replica, dtype) not in self._known:
            values, copies = self.of(replica), self.start.copies
            change = change_of(values, copies[min(replica, len(copies) - 1)], self.mask)
            stored = STORED.get(dtype, 0.0)
            limit = self._allowed.limit(change, stored * self._length(values) if stored else 0.0)
            self._known[replica, dtype] = limit, change
        return self._known[replica, dtype]

    def _length(self, values: "Array") -> float:
        """‖values‖, of those that are finite."""
        import numpy as np

        return change_of(values, np.broadcast_to(np.float64(0), values.shape), self.mask)

    def furthest(self, now: VariableState, worst: _Found) -> _Found:
        """The replica whose copy is the worst, or `worst` where none is worse."""
        for r, copy in enumerate(now.copies):
            if r and self._alike and copy is now.copies[0]:
                continue  # as far away as that one, and so no worse
            if error := distance(copy, self.of(r), self.mask, self.nans_alike):  # which is true of what is not a number
                limit = self.limit(r, copy.dtype.name)[0]
                if self._few and error > limit * max(worst.share, 1.0):  # without those few it is no further away
                    error = distance_but_for_few(copy, self.of(r), self.mask, self._few, self.nans_alike)
                share = share_of_limit(error, limit)
                worst = _Found(share, r, error) if share > worst.share else worst
            if self.idle is not None and (error := furthest(copy, self._values, self.idle)):
                share = share_of_limit(error, self.idle_limit(self.idle, copy.dtype.name))
                worst = _Found(share, r, error, idle=True) if share > worst.share else worst
        return worst

    def idle_limit(self, idle: "Array", dtype: str) -> float:
        """How far off an element of a copy of a type may be that has no gradient."""
        import numpy as np

        largest = furthest(self._values, np.broadcast_to(np.float64(0), idle.shape), idle & np.isfinite(self._values))
        return REACH * self._allowed.reach + 2 * self._allowed.updates * STORED.get(dtype, 0.0) * largest


def _wanted(initial: Sequence[VariableState], reference: Reference, update: int) -> list[_Wanted]:
    """Of every variable, what it is to be after an update, from 0."""
    masks = zip(reference.trusted, reference.idle or itertools.repeat(None), strict=False)
    tolerance, reach = STATE_TOLERANCE[reference.arithmetic], _reach(initial, reference, update)
    allowed = [_Allowed(tolerance, noise, update + 1, reach) for noise in reference.noise[update]]
    wanted = []
    for start, values, of in zip(initial, reference.states[update], allowed, strict=True):
        mask, idle = next(masks) if start.kind == "weight" else (None, None)
        wanted.append(_Wanted(start, values, mask, of, reference.few, idle))
    return wanted


def _reach(initial: Sequence[VariableState], reference: Reference, update: int) -> float:
    """The furthest that an element of any trained weight moves until an update; 0 where no element needs it."""
    import numpy as np

    if not any(idle.any() for idle in reference.idle):
        return 0.0
    pairs = zip(initial, reference.states[update], strict=True)
    weights = [(values, start.copies[0]) for start, values in pairs if start.kind == "weight"]
    moves = (furthest(values, start, np.isfinite(values) & np.isfinite(start)) for values, start in weights)
    return max(moves, default=0.0)


def share_of_limit(error: float, limit: float) -> float:
    """error ÷ limit, of an error that is not 0; infinite where it is no number or nothing at all is allowed."""
    return error / limit if limit > 0 and math.isfinite(error) else math.inf


def _explain(now: VariableState, aim: _Wanted, found: _Found) -> str:
    import numpy as np

    replica, error = found.replica, found.error
    dtype = now.copies[replica].dtype.name
    limit, change = aim.limit(replica, dtype)
    mask, nans_alike = aim.mask, aim.nans_alike or found.idle
    if found.idle and aim.idle is not None:
        limit, mask = aim.idle_limit(aim.idle, dtype), aim.idle
    got, wanted = (values.astype(np.float64) for values in (now.copies[replica], aim.of(replica)))
    if mask is not None:
        wanted = np.where(mask, wanted, got)
    of_size = f"of {got.size} elements"
    on = f" on replica {replica}" if len(now.copies) > 1 else ""
    other = ~same(got, wanted, nans_alike)
    if bad := int((np.isnan(wanted) & other).sum()):
        return (
            f"{now.kind} '{now.name}'{on} is not a number in {bad} {of_size} of the single-device reference, and in "
            f"{int(np.isnan(got).sum())} here: model and optimizer give that on one device, too"
        )
    if bad := int((~np.isfinite(got) & other).sum()):
        return f"{now.kind} '{now.name}'{on} is not finite in {bad} {of_size}, and the single-device reference is"
    where = np.unravel_index(int(np.argmax(apart_each(got, wanted, nans_alike))), got.shape)
    index = ",".join(str(int(i)) for i in where)
    of = f" ({100 * error / change:.3g} % of its change)" if change > 0 else ""
    of = " where it has no gradient" if found.idle else of
    return (
        f"{now.kind} '{now.name}'{on} is {error:.3g} away from the single-device reference{of}, "
        f"where {limit:.3g} is allowed; element [{index}]: started at {float(aim.start.copies[0][where]):.6g}, "
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
        floats = bool(np.issubdtype(first.dtype, np.floating))
        agrees_with_itself = floats or first.dtype.kind in "biu"  # whatever it holds
        for r, copy in enumerate(variable.copies[1:], start=1):
            if agrees_with_itself and copy is first:
                continue
            if not (np.array_equal(first, copy) or np.array_equal(first, copy, equal_nan=floats)):
                different = int(np.sum(first != copy))
                wide = np.complex128 if np.iscomplexobj(first) else np.float64
                largest = np.max(np.abs(first.astype(wide) - copy.astype(wide)))
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
