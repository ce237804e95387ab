"""What is complex has no reference, whatever the engine would make of one: its trial goes on, and is unproved."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.own_engine import Mean
from harness.protocol.state import Reference, VariableState
from tests.trial.own import tried


class Complex(Mean):
    """Shows its weight as a complex one, and has no reference of such."""

    def state(self) -> list[VariableState]:
        return [replace(shown, copies=tuple(copy + 0j for copy in shown.copies)) for shown in super().state()]

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        raise TypeError("asked for a reference of complex numbers")

    reference_of_one_more = reference


def test_a_trial_with_a_complex_weight_is_unproved_at_its_first_updates_and_at_its_last(tmp_path: Path) -> None:
    outcome, _ = tried(Complex, tmp_path)
    assert outcome.status == "ok"
    assert (outcome.checks.update, outcome.checks.late) == (None, None)
    for check in ("update", "late"):
        assert f"{check}: weight 'mean' is complex" in (outcome.checks.unproved or "")
