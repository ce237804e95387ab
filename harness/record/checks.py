"""The record of a trial's correctness gate: what was checked, what was found, and what could not be proved."""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from harness.record.bounds import Reported
from harness.record.model import RecordModel

ErrorRatio = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Of what is allowed."""

GateName = Literal["full", "own_step", "collective", "pipeline", "instrument"]
NEEDED = {
    "reduction": "sums over replicas were not checked",
    "update": "no update was held against a reference",
    "replicas_agree": "replicas were not compared with each other",
    "updates_applied": "updates were not counted",
    "loss_finite": "no loss was looked at",
    "sight": "what a fault would have looked like is not known",
    "late": "no update after the last window was held against a reference",
    "loss": "the reported loss was not held against the mean over the global batch",
}
"""What the full gate must have shown of a trial that is `ok`, and what is said where it did not."""
NEEDED_OF_INPUT = {
    "batches": "no batch was looked at",
    "examples": "no pass was followed",
    "late": "no pass after the last window was followed",
}
"""The same of an input pipeline by itself."""
OF_INPUT = ("batches", "examples", "order")
"""Checks that only an input pipeline by itself has."""
NOT_OF_ALL = (*OF_INPUT, "input")
"""Checks that are not written where they were not made."""
FAULTS = {
    "missing": "a missing replica",
    "delayed": "a gradient that comes an update late",
    "doubled": "a gradient that is counted twice",
    "averaged": "a mean in place of the sum",
}
"""The planted faults of `Checks.sight`, in words."""


class Checks(RecordModel):
    """The correctness gate. None: the check was not reached. `detail` holds the evidence in words.

    `gate` says which gate it was. `full` is that of `docs/protocol.md#correctness-gate`; a check of it that could not
    be made is None, with the reason in `detail`. `own_step` is that of a user's own training step, which shows its
    losses and nothing else: they are finite, and, where each is not None, `losses_agree` and `own_check`; the checks of
    the full gate are None. `collective` is that of a collective by itself: every element that any replica received was
    exact before the first window (`reduction`) and after the last (`late`), and all else is None. `pipeline` is that of
    an input by itself: `batches`, `examples`, `order` and `late`, and all else is None. `instrument` is that
    of a step with something left out (`harness.record.explain`), whose first updates were whole, or of a pipeline that
    is cut off, of which a pass was followed.
    """

    gate: GateName = "full"
    reduction: bool | None = None
    update: bool | None = None
    replicas_agree: bool | None = None
    updates_applied: Reported | None = None
    updates_scheduled: Reported | None = None
    loss_finite: bool | None = None
    update_error: ErrorRatio | None = None
    """Largest difference from the reference as a share of what is allowed: above 1 the update is wrong."""
    sight: dict[Literal["missing", "delayed", "doubled", "averaged"], ErrorRatio] | None = None
    """How many times its limit each planted fault would be, of those that this cell can have: what is not above 1
    would not have been seen."""
    late: bool | None = None
    """An update after the last window is the reference's too."""
    loss: bool | None = None
    """The reported loss is the mean over the global batch."""
    losses_agree: bool | None = None
    """Own step: its first losses are those of the same step built anew from the same seed and run uncompiled."""
    own_check: bool | None = None
    """What the user's own check said, at each time that it was asked; None where there is none."""
    batches: bool | None = None
    """Input: batches of a pass are of the size asked for, and of the shapes and types that the model takes."""
    examples: bool | None = None
    """Input: a pass had each example of the source once, unchanged; `late` is that of a pass after the last window."""
    order: bool | None = None
    """Input: they came in the order that the seed gives; None where any order was asked for."""
    input: bool | None = None
    """The labels of the first batches are those that the seed gives the process; None where nobody looks."""
    detail: dict[str, str] = {}

    @model_serializer(mode="wrap")
    def _without_those_of_some(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Where they were not made: records from before there were such have no such keys."""
        written: dict[str, Any] = write(self)
        return {key: value for key, value in written.items() if value is not None or key not in NOT_OF_ALL}

    @property
    def failures(self) -> tuple[str, ...]:
        """Names of the checks that failed."""
        passed = {name: getattr(self, name) for name in _NAMES}
        passed["updates_applied"] = self.updates_applied == self.updates_scheduled
        return tuple(name for name, well in passed.items() if well is False)

    @property
    def unproved(self) -> str | None:
        """What was left unproved, in one line; None where nothing was.

        This is the rule by which a trial that ended well is `ok` or `unproved`: nothing is called ok that the gate
        could not have called wrong.
        """
        return _GATES[self.gate].unproved(self)

    @property
    def complete(self) -> bool:
        """True when all was made and passed that a trial must show that is `ok`, as of the oldest records.

        Of an own step that is a finite loss, which records from before `unproved` were `ok` by.
        """
        must = _GATES[self.gate].must
        made = all(getattr(self, name) is not None for name in must) if must else self.unproved is None
        return made and not (self.failures or self._unseen)

    @property
    def _unseen(self) -> list[str]:
        """The planted faults that the gate would have passed; a step's own check speaks for what it cannot see."""
        seen = {} if self.gate == "own_step" and self.own_check else self.sight or {}
        return [
            f"sight: {FAULTS[name]} would be {share:.2g} of what is allowed"
            for name, share in seen.items()
            if share <= 1
        ]

    def _missing(self, needed: Mapping[str, str]) -> str | None:
        """Those of `needed` that were not made and the faults that would not have been seen, in one line."""
        found = [f"{name}: {self.detail.get(name, why)}" for name, why in needed.items() if getattr(self, name) is None]
        return "; ".join([*found, *self._unseen]) or None

    def _missing_of_input(self) -> str | None:
        """The order belongs to it where there is something to say of it."""
        return self._missing(NEEDED_OF_INPUT | {name: said for name, said in self.detail.items() if name == "order"})

    def _missing_of_own_step(self) -> str | None:
        """What its own check says goes before what its losses could have shown."""
        if self.own_check:
            return None
        if not self.losses_agree:
            return "nothing but finite losses could be shown"
        return self._missing({"sight": NEEDED["sight"]})


_NAMES = [name for name, of in Checks.model_fields.items() if of.annotation == bool | None or name == "updates_applied"]
"""Of the checks, in their order."""


class _Gate(NamedTuple):
    unproved: Callable[[Checks], str | None]
    """What it leaves unproved of a trial that ended well."""
    must: Collection[str] = ()
    """Checks that it has made of every trial that is `ok`, whenever it was recorded; none: what would be unproved."""


_OF_TRAINING = ("reduction", "update", "replicas_agree", "loss_finite", "updates_applied")
_GATES: dict[GateName, _Gate] = {
    "full": _Gate(lambda of: of._missing(NEEDED), _OF_TRAINING),
    "own_step": _Gate(Checks._missing_of_own_step, ("loss_finite",)),
    "collective": _Gate(
        lambda of: None if of.late else "what was received after the last window was not looked at",
        ("reduction", "late"),
    ),
    "pipeline": _Gate(Checks._missing_of_input),
    "instrument": _Gate(lambda _: "an instrument: something is left out of its step", _OF_TRAINING),
}
