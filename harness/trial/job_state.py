"""The state that a job ended with, as a file, and how two of them compare."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.protocol.state import VariableState
from harness.trial.judgement import NOISE_FACTOR, STATE_TOLERANCE

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class StateDifference:
    """`share`: the worst variable's difference as a share of what is allowed; infinite for what is no number."""

    share: float
    identical: bool
    worst: str
    """The variable, and its difference in words."""


def write_state(path: Path, initial: Sequence[VariableState], final: Sequence[VariableState]) -> None:
    """Keep every variable's first copy, as it was and as it is, under `path`, whole or not at all."""
    import numpy as np

    arrays = {f"{i}|{state.kind} {state.name}": state.copies[0] for i, state in enumerate(final)}
    arrays |= {f"initial|{i}": state.copies[0] for i, state in enumerate(initial)}
    unfinished = path.with_suffix(".unfinished.npz")
    np.savez(unfinished, allow_pickle=False, **arrays)
    unfinished.rename(path)


def read_state(path: Path) -> "Arrays":
    """What `write_state` kept."""
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def compare_states(got: "Arrays", expected: "Arrays", noise: "dict[str, float]", precision: str) -> StateDifference:
    """Each variable's ‖got − expected‖ against the correctness gate's margin for it.

    The margin is a share of ‖expected − initial‖ by precision (`STATE_TOLERANCE`), and NOISE_FACTOR times `noise`,
    the largest norm by which undisturbed jobs differ in that variable.
    """
    import numpy as np

    worst = StateDifference(0.0, True, "no variable differs")
    for name, value in expected.items():
        if name.startswith("initial|"):
            continue
        if np.array_equal(got[name], value, equal_nan=np.issubdtype(value.dtype, np.floating)):
            continue
        initial = expected[f"initial|{name.partition('|')[0]}"].astype(np.float64)
        difference = float(np.linalg.norm(got[name].astype(np.float64) - value.astype(np.float64)))
        change = float(np.linalg.norm(value.astype(np.float64) - initial))
        limit = STATE_TOLERANCE[precision] * change + NOISE_FACTOR * noise.get(name, 0.0)
        share = difference / limit if limit > 0 and math.isfinite(difference) else math.inf
        of = f"{100 * difference / change:.3g} % of its change" if change > 0 else f"{difference:.3g}"
        words = f"{name.partition('|')[2]} differs by {of}"
        worst = StateDifference(max(share, worst.share), False, words if share >= worst.share else worst.worst)
    return worst


def differences(one: "Arrays", other: "Arrays") -> "dict[str, float]":
    """‖one − other‖ of every variable that differs, by its key: the noise that comes with no fault."""
    import numpy as np

    norms = {
        name: float(np.linalg.norm(value.astype(np.float64) - other[name].astype(np.float64)))
        for name, value in one.items()
        if not name.startswith("initial|")
    }
    return {name: norm for name, norm in norms.items() if norm}
