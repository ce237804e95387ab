"""A trial, from its first instruction in a fresh process to the record of how it ended."""

import faulthandler
import gc
import os
import signal
import socket
from typing import Any

from harness.engines.tensorflow.alone import times_alone
from harness.engines.tensorflow.checks import (
    check_agreement,
    check_applied,
    check_losses,
    check_update,
    digests_of,
    note_statistics,
)
from harness.engines.tensorflow.executed import inspect
from harness.engines.tensorflow.loops import CoordinatorLoop, CustomLoop, MeshLoop, loops
from harness.engines.tensorflow.own_step import OwnStep
from harness.engines.tensorflow.reference import run_reference
from harness.engines.tensorflow.server import serve
from harness.engines.tensorflow.state import VariableState, capture, copies_of
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.tasks import OTHER_TASKS
from harness.engines.tensorflow.trace import tracer_of
from harness.engines.tensorflow.training import GATE_UPDATES, Training, build
from harness.protocol.messages import Channel, Membership, Outcome, Report, Request
from harness.record.cluster import AsynchronousUpdates
from harness.record.trial import Resources
from harness.spec.work import OwnStepCell
from harness.trial.attempt import Attempt
from harness.trial.clock import Clock
from harness.trial.ending import classify, traceback_without_paths
from harness.trial.membership import await_leave, join
from harness.trial.memory import peak_device_memory_bytes
from harness.trial.threads import with_threads

LARGEST_SHARE = 1e9
"""JSON has no infinity."""


class Trial(Attempt):
    """A trial of a cell: builds, proves, lets the clock measure, proves again."""

    def _measure(self) -> None:
        self._enter("build")
        training = build(self._request)
        loop = loops()[training.cell.loop].build(training)
        initial = capture(training.model, training.optimizer)
        self._outcome["resources"] = self._resources(training)
        self._enter("check")
        kind = strategies()[training.cell.strategy]
        self._judge("reduction", kind.check_reduction(training.strategy))
        counted_before = int(training.optimizer.iterations.numpy())

        states: list[list[VariableState]] = []

        def gate(step: int) -> None:
            states.append(capture(training.model, training.optimizer))
            if step < GATE_UPDATES:
                return
            self._enter("check")
            self._judge("loss_finite", check_losses(clock.losses))
            if self._leads:
                reference = run_reference(training, initial)
                update = check_update(states, initial, reference, training.cell.precision)
                self._checks["update_error"] = min(update.share, LARGEST_SHARE)
                self._judge("update", update.evidence)
                ran = loop.executed() if isinstance(loop, MeshLoop) else inspect(loop.program(), training.cell)
                self._outcome["executed"] = ran.model_copy(update={"input": training.input})
            gc.enable()
            self._enter("warmup")

        served = loop if isinstance(loop, CoordinatorLoop) else None
        clock = Clock(
            self._channel,
            loop.synchronise if isinstance(loop, CoordinatorLoop | MeshLoop) else _synchroniser(training),
            self._request.window_s,
            GATE_UPDATES,
            gate,
            agree := kind.agree(training.strategy),
            served.least_steps if served else 1,
            tracer := tracer_of(self._request, self._leads),
        )
        self._enter("first_step")
        loop.run(clock)
        self._outcome["trace"] = tracer.record if tracer else None
        self._enter("check")
        self._prove_afterwards(training, clock, counted_before, served)
        if self._request.times_alone and isinstance(loop, CustomLoop) and training.cell.workers > 1:
            self._enter("alone")
            self._outcome["compute_s"] = times_alone(loop.alone, agree)

    @property
    def _leads(self) -> bool:
        """Whether this process is held against the reference; the others only against this one."""
        return self._request.member is None or self._request.member.leads

    def _prove_afterwards(
        self, training: Training, clock: Clock, counted_before: int, served: CoordinatorLoop | None
    ) -> None:
        """What can only be shown after the last update."""
        self._outcome["final_loss"] = clock.losses[-1]
        if not training.cell.asynchronous:  # whose devices are other processes', and TensorFlow counts its own alone
            self._outcome["peak_device_memory_bytes"] = peak_device_memory_bytes(training.devices.names)
        applied = int(training.optimizer.iterations.numpy()) - counted_before
        self._checks["updates_applied"], self._checks["updates_scheduled"] = applied, clock.scheduled
        if served:
            self._outcome["updates"] = AsynchronousUpdates(
                scheduled=clock.scheduled, applied=max(0, applied), staleness=served.staleness
            )
        state = capture(training.model, training.optimizer)
        if remark := note_statistics(state):
            self._checks["detail"]["statistics"] = remark
        evidence = {
            "replicas_agree": check_agreement(state),
            "updates_applied": check_applied(applied, clock.scheduled),
            "loss_finite": check_losses(clock.losses),
        }
        if self._request.member is not None and not training.cell.asynchronous:
            self._outcome["digests"] = digests_of(state)
        self._judge_all(evidence)

    def _resources(self, training: Training) -> Resources:
        return Resources(
            logical_devices=list(training.devices.names),
            physical_devices=training.devices.physical,
            shared=training.devices.shared,
            intra_op_threads=self._request.intra_op_threads,
            inter_op_threads=self._request.inter_op_threads,
        )


def _synchroniser(training: Training) -> Any:
    """A function that waits until every replica has done its last update.

    It brings one element of a trained variable of every replica to the host; updates are ordered
    before reads of the same variable, and accelerators are drained besides.
    """
    import tensorflow as tf

    probes = copies_of(training.model.trainable_variables[-1])

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def read() -> list[Any]:
        return [tf.reshape(probe, [-1])[0] for probe in probes]

    accelerated = any("CPU" not in probe.device for probe in probes)

    def synchronise() -> None:
        if accelerated:
            tf.test.experimental.sync_devices()
        for value in read():
            value.numpy()

    return synchronise


def run_trial(connection: socket.socket, request_json: str) -> None:
    """Entry point of a forked trial; the zygote's fork leaves by os._exit afterwards."""
    channel = Channel(connection)
    channel.send(Report(phase="start"))
    gc.disable()  # Tracing makes garbage that is not worth a fifth of the set-up's time; on again before any window.
    faulthandler.enable(all_threads=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    request = with_threads(Request.model_validate_json(request_json))
    outcome = TASKS[request.task](request, channel)
    channel.send(Report(outcome=outcome))
    if request.member is not None:
        await_leave(channel)


def _trial(request: Request, channel: Channel) -> Outcome:
    if request.member is not None:
        return _as_member(request, request.member, channel)
    kind = OwnStep if isinstance(request.cell, OwnStepCell) else Trial
    return kind(request, channel).run()


def _as_member(request: Request, member: Membership, channel: Channel) -> Outcome:
    """What a process of a cluster does: the trial itself, or what a coordinator sends it."""
    try:
        join(member)
        if not member.serves:
            return Trial(request, channel).run()
        return serve(request, member, channel)
    except EOFError:
        os._exit(1)  # the parent is gone
    except Exception as error:  # noqa: BLE001  whatever keeps a process from its place is the trial's end
        status, reason = classify(error)
        return Outcome(status=status, reason=reason, evidence=traceback_without_paths())


TASKS = {"trial": _trial, **OTHER_TASKS}
"""What a process may be asked to do, by `Request.task`."""
