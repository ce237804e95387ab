"""A trial of a cell: its phases, what is proved in each, and the clock between them, whatever engine trains."""

import gc
from collections.abc import Sequence
from itertools import pairwise

from harness.errors import Unprovable
from harness.protocol.channel import Channel
from harness.protocol.engine import GATE_UPDATES, Engine, Trainer
from harness.protocol.messages import PROOF_PHASES, Request
from harness.protocol.state import Reference, VariableState
from harness.record.checks import Checks
from harness.record.cluster import AsynchronousUpdates
from harness.record.trial import Executed
from harness.spec.axes import ENGINE
from harness.trial import nccl
from harness.trial.alone import times_alone
from harness.trial.attempt import Attempt
from harness.trial.clock import Clock
from harness.trial.judgement import (
    LARGEST_SHARE,
    check_agreement,
    check_applied,
    check_losses,
    check_mean_losses,
    check_update,
    digests_of,
    is_clear,
    must_be_real,
    note_statistics,
)
from harness.trial.memory import let_go
from harness.trial.noise import PERTURBED_RUNS, RUNS_AGAIN
from harness.trial.own_check import Check, own_check
from harness.trial.same_work.architectures import architectures
from harness.trial.sameness import digest_of_weights

SLOW_PHASES, SLOW_S = 3, 0.3
"""Where a round of `PROOF_PHASES` steps takes longer than this, the late update is one of so many in a row."""
ONE_BY_ONE = "each from the step's own state before it, since rounding alone would make another second one of the first"
SELDOM = (
    "it differs from the reference, and not from the same reference, asked again: something in the model is random and "
    "has no seed"
)
ASKED_AGAIN = 3
"""References that a late update which is called wrong must differ from, too."""
MOST_TRIES = 24
"""Steps until one updates: loss scaling leaves out those that overflow, and halves its scale after each."""


class Trial(Attempt):
    """Builds, proves, lets the clock measure, proves again."""

    def __init__(self, request: Request, channel: Channel, engine: Engine) -> None:
        super().__init__(request, channel, engine.classify)
        self._engine = engine
        self._states: list[list[VariableState]] = []
        self._own: Check | None = None

    def _measure(self) -> None:
        self._enter("build")
        trainer = self._engine.trainer(self._request)
        self._initial = trainer.state()
        held = {id(array): array.nbytes for variable in self._initial for array in variable.copies}
        self._state_bytes = sum(held.values())
        self._own = own_check(self._request.check)
        self._outcome.resources = trainer.resources
        self._enter("check")
        self._judge("reduction", trainer.check_reduction())
        counted_before = trainer.updates()
        tracer = trainer.tracer(self._leads)
        clock = Clock(
            self._channel,
            trainer.synchronise,
            self._request.window_s,
            GATE_UPDATES,
            lambda step: self._gate(trainer, clock, step),
            trainer.agree,
            trainer.least_steps,
            tracer,
            None if self._request.instrument else lambda: self._prove_between(trainer, clock),
            lambda: trainer.ahead,
            resting=trainer.resting,
            a_call=self._request.training.steps_per_execution,
        )
        self._enter("first_step")
        trainer.run(clock)
        self._outcome.trace = tracer.record if tracer else None
        self._enter("check")
        if self._request.instrument:
            self._outcome.executed = self._executed(trainer)
            self._outcome.final_loss = clock.losses[-1]
            self._checks.gate = "instrument"
            return
        self._prove_afterwards(trainer, clock, counted_before)
        if self._request.times_alone and self._request.training.workers > 1 and (alone := trainer.alone) is not None:
            self._enter("alone")
            self._outcome.compute_s = times_alone(alone, trainer.agree)

    @property
    def _leads(self) -> bool:
        """Whether this process is held against the reference; the others only against this one."""
        return self._request.member is None or self._request.member.leads

    def _gate(self, trainer: Trainer, clock: Clock, step: int) -> None:
        """After each of the first single steps; after the last of them all that they show is judged."""
        self._states.append(trainer.state())
        if step < GATE_UPDATES:
            return
        self._enter("check")
        self._judge("loss_finite", check_losses(clock.losses))
        if self._leads:
            self._judge_all(self._first_evidence(trainer, clock.losses))
            self._ask_own_of_first()
            self._outcome.executed = self._executed(trainer)
        gc.enable()
        self._initial, self._states = [], []
        let_go(self._state_bytes)
        trainer.forget_peak()
        self._enter("warmup")

    def _executed(self, trainer: Trainer) -> Executed:
        """What ran; TensorFlow goes without saying, as in all records of before there were others."""
        name = self._engine.name
        told = {"engine": name if name != ENGINE else "", "nccl": nccl.told()}
        if self._initial and self._request.training.model in architectures():
            told["initial_weights"] = digest_of_weights(self._initial)
        return trainer.executed().model_copy(update=told)

    def _ask_own_of_first(self) -> None:
        """Ask it about each of the first updates."""
        for number, (before, after) in enumerate(pairwise([self._initial, *self._states]), start=1):
            self._ask_own(before, after, number)

    def _ask_own(self, before: Sequence[VariableState], after: Sequence[VariableState], number: int) -> None:
        """Ask the user's own check about an update."""
        if self._own is not None:
            evidence = self._own(before, after)
            self._judge("own_check", evidence and f"update {number}: {evidence}")

    def _first_evidence(self, trainer: Trainer, losses: Sequence[float]) -> dict[str, str | None]:
        """Hold the first updates against those of the reference from the initial state: the evidence of each check.

        One by one where a network amplifies what rounding does, so that a fault in the second would be lost in it.
        """
        befores = [self._initial, *self._states[:-1]]
        try:
            must_be_real(self._initial)
            reference = trainer.reference(self._initial)
            if is_clear(reference):
                return self._held_against("update", reference, self._initial, self._states, losses)
            self._checks.detail["update"] = ONE_BY_ONE
            evidence = self._held_one_by_one(trainer.reference_of_each(befores, PERTURBED_RUNS), befores, losses)
            if any(evidence.values()):
                self._checks.update_error = None
                evidence = self._held_one_by_one(trainer.reference_of_each(befores, RUNS_AGAIN), befores, losses)
        except Unprovable as error:
            self._checks.detail["update"] = str(error)
            return {}
        return evidence

    def _held_one_by_one(
        self, references: Sequence[Reference], befores: Sequence[Sequence[VariableState]], losses: Sequence[float]
    ) -> dict[str, str | None]:
        """Hold each of the first updates against its own reference: the evidence of each check."""
        evidence: dict[str, str | None] = {}
        updates = zip(references, befores, self._states, losses, strict=True)
        for number, (reference, before, after, loss) in enumerate(updates, start=1):
            found = self._held_against("update", reference, before, [after], [loss], number)
            evidence = {name: evidence.get(name) or why for name, why in found.items()}
        return evidence

    def _held_against(
        self,
        name: str,
        reference: Reference,
        initial: Sequence[VariableState],
        states: Sequence[Sequence[VariableState]],
        losses: Sequence[float],
        first: int = 1,
        sees: bool = True,
    ) -> dict[str, str | None]:
        """Hold updates, of which `first` is the first one's number, against a reference: the evidence of each check.

        Its sight is written down where `sees`: the least of an open number would be less the longer a trial is.
        """
        update = check_update(states, initial, reference, first)
        self._checks.update_error = max(self._checks.update_error or 0.0, min(update.share, LARGEST_SHARE))
        if sees and reference.sight is not None:
            seen = {str(fault): share for fault, share in (self._checks.sight or {}).items()}
            for fault, share in reference.sight.items():
                seen[fault] = min(share, seen.get(fault, LARGEST_SHARE))
            self._checks.sight = Checks.model_validate({"sight": seen}).sight
        evidence = {name: update.evidence}
        return evidence | {"loss": check_mean_losses(losses, reference, first)} if reference.losses else evidence

    def _one_more(self, trainer: Trainer, clock: Clock, between: bool = False) -> dict[str, str | None]:
        """An update that is proved as the first ones were, however late it is: the evidence of each check.

        Each process of a cluster takes as many steps: all count the same updates.
        """
        # before the reference takes memory of its own
        if self._outcome.peak_device_memory_bytes is None:
            self._outcome.peak_device_memory_bytes = trainer.peak_device_memory_bytes()
        for _ in range(MOST_TRIES):
            before, counted = trainer.state(), trainer.updates()
            done = trainer.one_more()
            clock.scheduled += 1
            if trainer.updates() != counted:
                break
        after = trainer.state()
        if not self._leads:
            return {}
        self._ask_own(before, after, clock.scheduled)
        last, largest = clock.scheduled, self._checks.update_error
        try:
            must_be_real(before)
            reference = trainer.reference_of_one_more(before)
            evidence = self._held_against("late", reference, before, [after], [done.loss], last, not between)
            if any(evidence.values()):
                _must_differ_again(trainer, before, after, done.loss)
        except Unprovable as error:
            self._checks.detail["late"], self._checks.update_error = str(error), largest
            return {}
        if not done.same_program and evidence.get("late") is None:
            evidence.pop("late", None)
            self._checks.detail["late"] = "the step was compiled anew for the batch that it was to be proved with"
        return evidence

    def _prove_between(self, trainer: Trainer, clock: Clock) -> None:
        """Between two windows."""
        self._judge_all(self._one_more(trainer, clock, between=True))
        let_go(self._state_bytes)

    def _prove_afterwards(self, trainer: Trainer, clock: Clock, counted_before: int) -> None:
        """What can only be shown after the last update."""
        labels = [told] if (told := trainer.labels) else []
        self._outcome.executed = self._outcome.executed.model_copy(update={"labels": labels})
        self._outcome.final_loss = clock.losses[-1]
        self._checks.late = None  # an update that was proved between windows does not stand for one after the last
        self._checks.detail.pop("late", None)
        phases = PROOF_PHASES if PROOF_PHASES * clock.pace <= SLOW_S else SLOW_PHASES
        for _ in range(MOST_TRIES):
            applied = round(trainer.agree(trainer.updates() - counted_before))  # the same in each process of a cluster
            if (applied + 1 - self._request.proof_phase) % phases == 0:
                break
            trainer.one_more()
            clock.scheduled += 1
        late = self._one_more(trainer, clock)
        applied = trainer.updates() - counted_before
        due, remarks = trainer.due(clock.scheduled)
        self._checks.updates_applied, self._checks.updates_scheduled = applied, due
        self._checks.detail |= remarks
        if (staleness := trainer.staleness) is not None:
            self._outcome.updates = AsynchronousUpdates(
                scheduled=clock.scheduled, applied=max(0, applied), staleness=staleness
            )
        state = trainer.state()
        if remark := note_statistics(state):
            self._checks.detail["statistics"] = remark
        evidence = late | {
            "replicas_agree": check_agreement(state),
            "updates_applied": check_applied(applied, due),
            "loss_finite": check_losses(clock.losses),
        }
        evidence |= trainer.check_input()
        if self._request.member is not None and not self._request.training.asynchronous:
            self._outcome.digests = digests_of(state)
        self._judge_all(evidence)


def _must_differ_again(
    trainer: Trainer, before: Sequence[VariableState], after: Sequence[VariableState], loss: float
) -> None:
    """Raises Unprovable where the update of `one_more` is that of the same reference, asked again: something in both is
    random and has no seed, and comes so seldom that the runs of one reference do not show it."""
    for _ in range(ASKED_AGAIN):
        again = trainer.reference_of_one_more(before)
        wrong = check_update([after], before, again).evidence
        if not (wrong or (again.losses and check_mean_losses([loss], again))):
            raise Unprovable(SELDOM)
