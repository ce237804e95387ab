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
    return not getattr(optimizer, "gradient_accumulation_steps", None) and not _changes_by(optimizer)


def sums_what_it_is_given(optimizer: Any) -> bool:
    """Whether one that does not clip sums over replicas what each was given: an own class may first make something else
    of it, and so does one of keras.optimizers.MultiOptimizer that clips."""
    inner = getattr(optimizer, "optimizers", ())
    if any(clips(one) or not sums_what_it_is_given(one) for one in inner):
        return False
    return not _changes_by(optimizer, "_clip_gradients")


def _changes_by(optimizer: Any, *more: str) -> list[str]:
    """What of an optimizer, of the methods that gradients go through on each replica, and `more`, is not Keras' own."""
    methods = ("apply_gradients", "apply", "_backend_apply_gradients", "_backend_update_step", *more)
    of = {name: getattr(getattr(type(optimizer), name, None), "__module__", "keras") for name in methods}
    return [name for name, module in of.items() if module.partition(".")[0] != "keras"]


def _skipped(optimizer: Any, steps: int, taken: int) -> int:
    """Steps that loss scaling has left out; 0 where its scale does not bear out that it is all that are missing."""
    if not hasattr(optimizer, "dynamic_scale"):
        return 0
    missing = steps - taken
    doubled = missing + math.log2(float(optimizer.dynamic_scale.numpy()) / optimizer.initial_scale)
    return missing if 0 <= doubled <= taken // optimizer.dynamic_growth_steps else 0
