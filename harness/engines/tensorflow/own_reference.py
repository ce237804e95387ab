"""What a user's own training step is held against: the same step, built anew and run uncompiled.

It runs in a process of its own, forked before TensorFlow's runtime has started: the process that is
timed then holds one copy of everything, and nothing that it did not ask for. So do its runs with a fault in their
gradients, which tell what such a fault would look like.
"""

import contextlib
import functools
import gc
import json
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import let_memory_grow, set_threads
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.own_draws import other_draws
from harness.engines.tensorflow.own_sight import OF_SEVERAL, LossesAndState, Optimizers, PlantedGradients, furthest
from harness.engines.tensorflow.reference.arithmetic import OF_LAYERS
from harness.errors import Unprovable, UsageError
from harness.protocol.messages import Request
from harness.record.checks import FAULTS
from harness.registry import is_script
from harness.trial.array_cache import cached_arrays
from harness.trial.judgement import LARGEST_SHARE, STATE_TOLERANCE
from harness.trial.own_function import own_function, wants_arguments
from harness.trial.parent import die_with_parent
from harness.trial.script import Script
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    import numpy as np

LIMIT_S = 60.0
"""Uncompiled steps of a large model are slow; beyond this the comparison is not made, nor a fault tried."""
_SLOW = f"the step run uncompiled gave no loss within {LIMIT_S:g} s"


@dataclass(frozen=True)
class OwnReference:
    """What the step run uncompiled showed at first, or the `reason` why nothing.

    `sight` is that of `Checks`, None where it is not known, with the reason `unseen`.
    """

    shown: LossesAndState = field(default_factory=LossesAndState)
    reason: str | None = None
    precision: str = "float32"
    replicas: int = 0
    """Of which it took gradients with a `tf.GradientTape`; 0 where it took none."""
    sight: dict[str, float] | None = None
    unseen: str = ""


def build_step(path: str) -> Callable[[], Any]:
    """What the user's function at `path` returns, called without arguments; of a script, its marked step.

    Raises UsageError when the function cannot be loaded, raises, or returns nothing that can be called, and when a
    script ends before its first step, or its mark is inside of a function that is traced.
    """
    if is_script(path):
        import tensorflow as tf

        return Script(path, tf.inside_function)
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
    """The first `steps` uncompiled, then with each fault. Call it before TensorFlow's runtime has started.

    What faults look like is the same in all trials that one process was forked for, so the first of them finds out.
    """
    reference = _apart(request, steps)
    if reference.reason is not None:
        return reference
    if not reference.replicas:
        return replace(reference, unseen="it took no gradient with a tf.GradientTape in which a fault could be planted")
    try:
        key = repr((request.cell, request.seed, reference.precision)).encode()
        compute = functools.partial(_sight, request, steps, reference)
        found = cached_arrays(request.scratch, "own-sight", key, compute, request.others_limit_s)
    except Unprovable as error:
        return replace(reference, unseen=str(error))
    return replace(reference, sight={fault: float(share) for fault, share in found.items()})


def _sight(request: Request, steps: int, reference: OwnReference) -> "dict[str, np.ndarray[Any, Any]]":
    """How many times its limit each fault would be. Raises Unprovable where they cannot all be tried in time."""
    import numpy as np

    found = {}
    for fault in FAULTS:
        if reference.replicas == 1 and fault in OF_SEVERAL:
            continue
        sign_of_life()
        wrong = _apart(request, steps, fault)
        if wrong.reason == _SLOW:
            raise Unprovable(f"with a fault in its gradients {_SLOW}")
        share = furthest(wrong.shown, reference.shown, reference.precision).share
        found[fault] = np.array(LARGEST_SHARE if wrong.reason else min(share, LARGEST_SHARE))
    return found


class Apart:
    """A process of its own that runs the step uncompiled once it is asked to, with a `fault` in its gradients.

    Make it before TensorFlow's runtime has started.
    """

    def __init__(self, request: Request, steps: int, fault: str | None = None) -> None:
        self._answer, writing = os.pipe()
        asked, self._question = os.pipe()
        parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._answer)
            os.close(self._question)
            _be_the_reference(parent, request, steps, fault, asked, writing)
        os.close(writing)
        os.close(asked)

    def ask(self) -> OwnReference:
        """What the step showed; that can be asked once."""
        with contextlib.suppress(BrokenPipeError):  # it is gone, which its silence tells
            os.write(self._question, b"!")
        text = _read_all(self._answer, time.monotonic() + LIMIT_S)
        if text is None:
            return OwnReference(reason=_SLOW)
        if not text:
            return OwnReference(reason="the step run uncompiled ended its process")
        answer = json.loads(text)
        return OwnReference(
            **{**answer, "shown": LossesAndState(**{of: tuple(found) for of, found in answer["shown"].items()})}
        )

    def end(self) -> None:
        """Whether it was asked or not."""
        os.close(self._answer)
        os.close(self._question)
        os.kill(self._child, signal.SIGKILL)  # it leaves by itself, unless it hangs
        os.waitpid(self._child, 0)


def _apart(request: Request, steps: int, fault: str | None = None) -> OwnReference:
    """The step run uncompiled in a process of its own, with a fault in its gradients."""
    reference = Apart(request, steps, fault)
    try:
        return reference.ask()
    finally:
        reference.end()


def _be_the_reference(parent: int, request: Request, steps: int, fault: str | None, asked: int, writing: int) -> None:
    """Never returns: leaves by os._exit, as a trial does."""
    try:
        die_with_parent(parent)
        if os.read(asked, 1):
            found = asdict(_uncompiled(request, steps, fault))
            os.write(writing, json.dumps(found).encode())
    finally:
        os._exit(0)


def _uncompiled(request: Request, steps: int, fault: str | None = None) -> OwnReference:
    import keras
    import tensorflow as tf

    path = request.cell.subject
    set_threads(request)
    let_memory_grow()
    tf.config.run_functions_eagerly(True)
    keras.utils.set_random_seed(request.seed)
    try:
        made = Optimizers()
        with PlantedGradients(fault) as planted:
            step = build_step(path)
            if not getattr(step, "eager_reference", True):
                return OwnReference(reason="the step says eager_reference = False")
            losses = tuple(as_number(path, step()) for _ in range(steps))
        shown = LossesAndState(losses, made.slots())
        return OwnReference(shown, precision=_coarsest_precision(), replicas=planted.replicas)
    except Exception as error:  # noqa: BLE001  a step that cannot run uncompiled may be right all the same
        return OwnReference(reason=f"the step cannot run uncompiled: {classify(error)[1]}")


def _coarsest_precision() -> str:
    """Of Keras' policy and of each layer that there is, which may compute in a type of its own."""
    import keras

    layers = [found for found in gc.get_objects() if issubclass(type(found), keras.Layer)]
    types = {keras.config.dtype_policy().compute_dtype, *(getattr(layer, "compute_dtype", None) for layer in layers)}
    names = [name for kind, name in OF_LAYERS.items() if kind in types]
    return max(names, key=STATE_TOLERANCE.__getitem__, default=keras.config.dtype_policy().name)


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


def why_untold(reference: OwnReference, again: OwnReference) -> str | None:
    """Why a step may be right that differs from its reference, which was run `again`; None where it is wrong.

    Call it in the process that took the compiled steps.
    """
    if again.reason is None and (differs := furthest(again.shown, reference.shown, reference.precision)).share > 1:
        return (
            f"run uncompiled twice from the same seed, {differs.name} is {differs.wanted:.6g} and then "
            f"{differs.value:.6g} ({differs.allowed:.2g} is allowed): something in it is random that no seed settles"
        )
    if drawn := other_draws():
        return f"compiled it draws other random numbers than uncompiled ({drawn})"
    return None


def evidence_against(got: LossesAndState, expected: LossesAndState, precision: str) -> str | None:
    """None when what was shown agrees within the tolerance of `precision`, else the evidence in words."""
    worst = furthest(got, expected, precision)
    if worst.share <= 1:
        return None
    return (
        f"{worst.name} is {worst.value:.6g}, and {worst.wanted:.6g} when the same step is built anew from the same "
        f"seed and run uncompiled ({worst.allowed:.2g} is allowed); if the step draws random numbers that a compiled "
        "program draws differently, set eager_reference = False on it and give it a check()"
    )
