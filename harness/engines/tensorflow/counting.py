"""Updates that a Keras optimizer owes for its steps, where it is not one each, and what is to be said of them."""

import math
from typing import Any


def updates_due(optimizer: Any, steps: int, replicas: int) -> tuple[int, dict[str, str]]:
    """(updates that `steps` steps should have made, remarks by subject).

    Accumulation takes the gradients of several steps to one update, and loss scaling leaves out a step whose gradients
    overflow, which its scale tells: each time it is halved, and doubled after so many steps that were not left out.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    remarks = {}
    taken = int(getattr(inner, "_iterations", inner.iterations).numpy())
    if skipped := _skipped(optimizer, steps, taken):
        remarks["skipped"] = f"{skipped} of {steps} steps were left out by loss scaling: their gradients overflowed"
    together = getattr(inner, "gradient_accumulation_steps", None) or 1
    if together > 1:
        remarks["accumulation"] = f"each update takes the gradients of {together} steps"
    if replicas > 1 and clips(inner):
        remarks["clipping"] = (
            "Keras clips each replica's gradient before the sum, which is another optimisation than clipping the "
            "gradient of the global batch"
        )
    return (steps - skipped) // together, remarks


def clips(optimizer: Any) -> bool:
    """Whether a Keras optimizer, not wrapped in one that scales the loss, clips gradients."""
    return any(getattr(optimizer, name, None) for name in ("clipnorm", "global_clipnorm", "clipvalue"))


def clips_what_it_is_given(optimizer: Any) -> bool:
    """Whether it clips the gradients of one step just as they come: not the mean of several steps', nor, in an own
    class, what it may first have made of them."""
    import keras

    kind, first = type(optimizer), ("apply_gradients", "apply", "_backend_apply_gradients")
    if getattr(optimizer, "gradient_accumulation_steps", None):
        return False
    return all(getattr(kind, name, None) is getattr(keras.optimizers.Optimizer, name) for name in first)


def _skipped(optimizer: Any, steps: int, taken: int) -> int:
    """Steps that loss scaling has left out; 0 where its scale does not bear out that it is all that are missing."""
    if not hasattr(optimizer, "dynamic_scale"):
        return 0
    missing = steps - taken
    doubled = missing + math.log2(float(optimizer.dynamic_scale.numpy()) / optimizer.initial_scale)
    return missing if 0 <= doubled <= taken // optimizer.dynamic_growth_steps else 0
