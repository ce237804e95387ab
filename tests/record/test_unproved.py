"""Ok or unproved: nothing is called ok that the gate could not have called wrong."""

from typing import Any

import pytest
from pydantic import ValidationError

from harness.record import Checks
from harness.record.checks import NEEDED
from harness.spec.work import OwnStepCell
from tests.record.examples import trial

WHY = "sight: a missing replica would be 0.5 of what is allowed"
SHOWN = trial().checks


def checks(**changes: Any) -> Checks:
    """Those of a trial of which everything was shown, but for `changes`."""
    return Checks(**(SHOWN.model_dump() | changes))


def own(**changes: Any) -> Checks:
    """Those of a user's own step whose losses are finite."""
    return Checks(gate="own_step", loss_finite=True, **changes)


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (checks(), None),
        (checks(sight={"missing": 3.2, "averaged": 1.01}), None),
        (checks(sight={"missing": 0.5, "delayed": 9.0}), WHY),
        (checks(sight={"doubled": 1.0}), "sight: a gradient that is counted twice would be 1 of what is allowed"),
        (checks(update=None), "update: no update was held against a reference"),
        (checks(update=None, detail={"update": "the model has no seed"}), "update: the model has no seed"),
        (own(), "nothing but finite losses could be shown"),
        (own(losses_agree=True), f"sight: {NEEDED['sight']}"),
        (own(losses_agree=True, sight={"doubled": 2.0}), None),
        (own(losses_agree=True, sight={"missing": 0.5}), WHY),
        (own(own_check=True), None),
        (own(own_check=True, losses_agree=True, sight={"missing": 0.5}), None),
    ],
)
def test_what_was_left_unproved_is_said_in_one_line(made: Checks, left: str | None) -> None:
    assert made.unproved == left


@pytest.mark.parametrize("name", list(NEEDED))
def test_each_check_that_was_not_made_leaves_a_trial_unproved(name: str) -> None:
    assert (checks(**{name: None}).unproved or "").startswith(f"{name}: ")


def test_an_unproved_trial_has_its_figures_and_its_reason() -> None:
    record = trial(status="unproved", reason=WHY, checks=checks(sight={"missing": 0.5}))
    assert record.measured
    assert record.throughput == trial().throughput


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "unproved"},
        {"status": "unproved", "reason": WHY, "checks": checks(late=False)},
        {"status": "unproved", "reason": WHY, "windows": None},
        {"checks": checks(sight={"missing": 0.5})},
        {"checks": checks(loss=False)},
    ],
    ids=["no reason", "a check failed", "no measurement", "ok without sight", "ok with a wrong loss"],
)
def test_a_record_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        trial(**wrong)


def test_own_steps_from_before_there_was_unproved_stay_ok() -> None:
    cell = OwnStepCell(step="mine:step")
    kept = trial(cell=cell, cell_id=cell.cell_id, checks=own())
    assert (kept.status, kept.checks.unproved) == ("ok", "nothing but finite losses could be shown")
