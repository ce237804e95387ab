"""References that trials of one sweep share: what one trial has computed, later ones are held against."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.protocol.state import Reference
from harness.trial.array_cache import cached_arrays

if TYPE_CHECKING:
    from harness.protocol.state import Array
    from harness.trial.array_cache import Arrays

SIGHT = "sight-"
"""What the names of the kept numbers of `Reference.sight` begin with."""


def cached_reference(
    folder: str, key: bytes, compute: Callable[[], Reference], others_limit_s: float = 0.0
) -> Reference:
    """The reference in `folder` under a key that names all that it depends on; see `cached_arrays`."""
    arrays = cached_arrays(folder, "reference", key, lambda: _stored(compute()), others_limit_s)
    updates, variables = arrays["noise"].shape

    def masks(kind: str) -> "list[Array]":
        return [arrays[f"{kind}-{w}"] for w in range(sum(name.startswith(f"{kind}-") for name in arrays))]

    return Reference(
        states=[[arrays[f"state-{u}-{v}"] for v in range(variables)] for u in range(updates)],
        noise=arrays["noise"].tolist(),
        trusted=masks("trusted"),
        idle=masks("idle"),
        losses=arrays["losses"].tolist(),
        loss_noise=arrays["loss_noise"].tolist(),
        arithmetic=str(arrays["arithmetic"]),
        sight={name.removeprefix(SIGHT): float(of) for name, of in arrays.items() if name.startswith(SIGHT)},
        few=float(arrays["few"]),
    )


def _stored(reference: Reference) -> "Arrays":
    import numpy as np

    def storable(array: Any) -> Any:
        """NumPy's files do not know bfloat16, all of whose numbers float32 has."""
        return array.astype(np.float32) if array.dtype.name == "bfloat16" else array

    arrays = {f"state-{u}-{v}": storable(a) for u, state in enumerate(reference.states) for v, a in enumerate(state)}
    arrays |= {f"trusted-{w}": mask for w, mask in enumerate(reference.trusted)}
    arrays |= {f"idle-{w}": mask for w, mask in enumerate(reference.idle)}
    numbers = ("noise", "losses", "loss_noise", "arithmetic", "few")
    arrays |= {name: np.array(getattr(reference, name)) for name in numbers}
    return arrays | {f"{SIGHT}{fault}": np.array(share) for fault, share in (reference.sight or {}).items()}
