"""A trial of a user's own training step: `package.module:function`, which builds whatever it likes.

The clock, its windows and its turns are those of any trial. Of what is inside, the harness sees the
losses and how large the state of Keras' optimizers is, so less can be proved: losses are finite; the first of
them, and that state, agree with the same step run uncompiled; and the step's own `check()`, if it has one, is
satisfied before and after timing. The record says which of these was shown, and what a fault in the gradients
would have looked like.
"""

import gc
from collections.abc import Callable
from typing import Any

from harness.engines.tensorflow.cards import cards_in_use
from harness.engines.tensorflow.devices.base import let_memory_grow, set_threads, threads_here
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.memory import forget_peak, peak_device_memory_bytes
from harness.engines.tensorflow.own_reference import (
    Apart,
    OwnReference,
    as_number,
    build_step,
    evidence_against,
    run_own_reference,
    why_untold,
)
from harness.engines.tensorflow.own_sight import LossesAndState, Optimizers
from harness.engines.tensorflow.plants import check_loop
from harness.engines.tensorflow.trace import tracer_of
from harness.errors import UsageError
from harness.protocol.engine import GATE_UPDATES
from harness.record.checks import Checks
from harness.record.trial import Resources
from harness.registry import is_script
from harness.trial.attempt import Attempt
from harness.trial.clock import Clock
from harness.trial.judgement import check_losses

GATE_STEPS = GATE_UPDATES + 1
"""The loss of step 1 shows no update yet, so one more shows them all."""
_NOT_COMPARED = "the first losses were not compared with an uncompiled run"
_OTHERWISE = "the first losses differ from an uncompiled run's, which is no proof of a fault"


class OwnStep(Attempt):
    """A trial of the step that the function at `cell.step` returns."""

    def _measure(self) -> None:
        import keras

        check_loop(self._request.plant, None)
        self._checks.gate = "own_step"
        self._path = self._request.cell.subject
        self._enter("check")
        reference = run_own_reference(self._request, GATE_STEPS)
        # it waits: once TensorFlow's runtime has started there, this process can make none
        again = Apart(self._request, GATE_STEPS) if reference.reason is None else None
        self._enter("build")
        set_threads(self._request)
        let_memory_grow()
        keras.utils.set_random_seed(self._request.seed)
        self._optimizers = Optimizers()
        self._step = build_step(self._path)
        self._done = 0
        self._loss: Any = None

        def gate(step: int) -> None:
            if step >= GATE_STEPS:
                self._before_timing(clock.losses, reference, again)

        tracer = tracer_of(self._request, leads=True)
        clock = Clock(self._channel, self._synchroniser(), self._request.window_s, GATE_STEPS, gate, tracer=tracer)
        self._enter("first_step")
        while steps := clock.begin():
            for _ in range(steps):
                self._loss = self._one_step()
            clock.end(self._loss)
        self._outcome.trace = tracer.record if tracer else None
        self._after_timing(clock.losses)

    def _before_timing(self, losses: list[float], reference: OwnReference, again: Apart | None) -> None:
        """Judge the gate's steps, all of which were taken."""
        self._enter("check")
        self._outcome.resources = self._resources()
        self._judge("loss_finite", check_losses(losses))
        self._judge_first(losses, reference, again)
        self._judge_own("before timing")
        gc.enable()
        forget_peak(self._devices())
        self._enter("warmup")

    def _after_timing(self, losses: list[float]) -> None:
        """Judge what the timed steps came to."""
        self._enter("check")
        self._outcome.final_loss = losses[-1]
        self._outcome.peak_device_memory_bytes = peak_device_memory_bytes(self._devices())
        self._judge("loss_finite", check_losses(losses))
        self._judge_own("after timing")

    def _one_step(self) -> Any:
        import tensorflow as tf

        try:
            loss = self._step()
        except (StopIteration, tf.errors.OutOfRangeError):
            what = "the script" if is_script(self._path) else "its data"
            raise UsageError(
                f"step: '{self._path}': {what} ended after {self._done} steps, expected a step that can be taken "
                "without end (dataset.repeat())"
            ) from None
        except UsageError:  # which says itself what is wrong with the step
            raise
        except Exception as error:
            status, reason = classify(error)
            if status != "crashed":
                raise
            raise UsageError(
                f"step: '{self._path}': step {self._done + 1} raised {reason}; expected one training step that "
                "returns its loss"
            ) from error
        self._done += 1
        return loss

    def _synchroniser(self) -> Callable[[], None]:
        """A function that brings the last loss to the host, and drains the accelerators if there are any."""
        import tensorflow as tf

        def synchronise() -> None:
            if any(kind in name for name in self._devices() for kind in ("GPU", "TPU")):
                tf.test.experimental.sync_devices()
            as_number(self._path, self._loss)

        return synchronise

    def _judge_first(self, losses: list[float], reference: OwnReference, again: Apart | None) -> None:
        shown = LossesAndState(tuple(losses[:GATE_STEPS]), self._optimizers.slots())
        if again is None:
            self._checks.detail["losses_agree"] = f"{_NOT_COMPARED}: {reference.reason}"
            return
        try:
            evidence = evidence_against(shown, reference.shown, reference.precision)
            untold = evidence and why_untold(reference, again.ask())
        finally:
            again.end()
        if untold:
            self._checks.detail["losses_agree"] = f"{_OTHERWISE}: {untold} ({evidence})"
            return
        self._judge("losses_agree", evidence)
        if reference.sight is None:
            self._checks.detail["sight"] = reference.unseen
        else:
            self._checks.sight = Checks.model_validate({"sight": reference.sight}).sight

    def _judge_own(self, when: str) -> None:
        """Ask the step's own `check()`, if it has one."""
        check = getattr(self._step, "check", None)
        if not callable(check):
            if self._checks.losses_agree is None:
                self._checks.detail["own_check"] = (
                    "the step has no check(): all that is known of its losses is that they are finite"
                )
            return
        try:
            answer = check()
        except Exception as error:  # noqa: BLE001  whatever a check raises is what it found
            self._judge("own_check", f"{when}, check() raised {type(error).__name__}: {error}")
        else:
            evidence = None if answer else f"{when}, check() returned {answer!r}, expected True when all is well"
            self._judge("own_check", evidence)

    def _resources(self) -> Resources:
        """What TensorFlow shows; which of it the step uses is its own affair."""
        import tensorflow as tf

        within, between = threads_here()
        return Resources(
            logical_devices=list(self._devices()),
            physical_devices=max(1, len(tf.config.list_physical_devices("GPU"))),
            intra_op_threads=within,
            inter_op_threads=between,
            gpus=cards_in_use(self._devices()),
        )

    def _devices(self) -> tuple[str, ...]:
        import tensorflow as tf

        return tuple(device.name for device in tf.config.list_logical_devices())
