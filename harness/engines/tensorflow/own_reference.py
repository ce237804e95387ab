"""What a user's own training step is held against: the same step, built anew and run uncompiled.

It runs in a process of its own, forked before TensorFlow's runtime has started: the process that is
timed then holds one copy of everything, and nothing that it did not ask for.
"""

import json
import math
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.engines.tensorflow.devices.base import let_memory_grow, set_threads
from harness.engines.tensorflow.ending import classify
from harness.errors import UsageError
from harness.protocol.messages import Request
from harness.trial.judgement import STATE_TOLERANCE
from harness.trial.own_function import own_function, wants_arguments
from harness.trial.parent import die_with_parent

LIMIT_S = 60.0
"""Uncompiled steps of a large model are slow; beyond this the comparison is not made."""


@dataclass(frozen=True)
class OwnReference:
    """The first losses of the step run uncompiled, or the reason why there are none."""

    losses: tuple[float, ...] = ()
    reason: str | None = None


def build_step(path: str) -> Callable[[], Any]:
    """What the user's function at `path` returns, called without arguments.

    Raises UsageError when the function cannot be loaded, raises, or returns nothing that can be called.
    """
    function = own_function("step", path)
    try:
        step: Any = function()
    except Exception as error:
        status, reason = classify(error)
        if status != "crashed":
            raise
        raise UsageError(f"step: '{path}' raised {reason}; expected a function that builds a training step") from error
    if not callable(step):
        given = f"{type(step).__module__}.{type(step).__qualname__}"
        raise UsageError(f"step: '{path}' returned {given}, expected a callable that does one training step")
    if fault := wants_arguments(step):
        raise UsageError(f"step: '{path}' returned a step that has {fault}; expected one without arguments")
    checked: Callable[[], Any] = step
    return checked


def as_number(path: str, loss: Any) -> float:
    """A step's loss on the host; UsageError when it is not one number."""
    try:
        return float(loss)
    except (TypeError, ValueError):
        given = f"{type(loss).__module__}.{type(loss).__qualname__}"
        raise UsageError(
            f"step: '{path}': a step returned {given}, expected the loss: a scalar tensor or a float"
        ) from None


def run_own_reference(request: Request, steps: int) -> OwnReference:
    """The first `steps` losses, uncompiled. Call it before TensorFlow's runtime has started."""
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_reference(parent, request, steps, writing)
    os.close(writing)
    try:
        text = _read_all(reading, time.monotonic() + LIMIT_S)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)  # it leaves by itself, unless it hangs
        os.waitpid(child, 0)
    if text is None:
        return OwnReference(reason=f"the step run uncompiled gave no loss within {LIMIT_S:g} s")
    if not text:
        return OwnReference(reason="the step run uncompiled ended its process")
    answer = json.loads(text)
    return OwnReference(tuple(answer["losses"]), answer["reason"])


def _be_the_reference(parent: int, request: Request, steps: int, writing: int) -> None:
    """Never returns: leaves by os._exit, as a trial does."""
    try:
        die_with_parent(parent)
        found = asdict(_uncompiled(request, steps))
        os.write(writing, json.dumps(found).encode())
    finally:
        os._exit(0)


def _uncompiled(request: Request, steps: int) -> OwnReference:
    import keras
    import tensorflow as tf

    path = request.cell.subject
    set_threads(request)
    let_memory_grow()
    tf.config.run_functions_eagerly(True)
    keras.utils.set_random_seed(request.seed)
    try:
        step = build_step(path)
        if not getattr(step, "eager_reference", True):
            return OwnReference(reason="the step says eager_reference = False")
        return OwnReference(tuple(as_number(path, step()) for _ in range(steps)))
    except Exception as error:  # noqa: BLE001  a step that cannot run uncompiled may be right all the same
        return OwnReference(reason=f"the step cannot run uncompiled: {classify(error)[1]}")


def _read_all(reading: int, deadline: float) -> bytes | None:
    """What comes through a pipe until its end; None when the deadline passes first."""
    text = b""
    while True:
        readable, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return None
        data = os.read(reading, 1 << 16)
        if not data:
            return text
        text += data


def compare_losses(got: Sequence[float], expected: Sequence[float], precision: str) -> str | None:
    """None when the first losses agree within the tolerance of `precision`, else the evidence in words."""
    tolerance = STATE_TOLERANCE.get(precision, STATE_TOLERANCE["float32"])
    largest = max((abs(loss) for loss in expected if math.isfinite(loss)), default=0.0)
    for number, (loss, wanted) in enumerate(zip(got, expected, strict=True), start=1):
        if not abs(loss - wanted) <= tolerance * largest:
            return (
                f"loss {number} is {loss:.6g}, and {wanted:.6g} when the same step is built anew from the same seed "
                f"and run uncompiled ({tolerance * largest:.2g} is allowed); if the step draws random numbers that a "
                "compiled program draws differently, set eager_reference = False on it and give it a check()"
            )
    return None
