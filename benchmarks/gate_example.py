"""Gate tests, complete: a step of training fails its test when it became slower, and only then.

    pytest benchmarks/gate_example.py --gate-against origin/main

Without `--gate-against` or `--gate-baseline` they are skipped. Copy this file to your tests, under a name that
pytest collects (`test_gate.py`), and name your own model or step. `docs/ci.md` explains the rest.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.pytest_plugin.result import GateResult


@pytest.mark.training_gate(model="benchmarks.own_workload:make_model", batch_size=32)
def test_one_replica_is_no_slower() -> None:
    """The mark says it all: the body is empty."""


@pytest.mark.training_gate(model="benchmarks.own_workload:make_model", strategy="mirrored", replicas=2, batch_size=32)
def test_two_replicas_are_no_slower_and_take_no_more_processor_time(training_gate: "GateResult") -> None:
    """The fixture gives the figures, for a test that asks for more."""
    assert training_gate.cpu != "more"


@pytest.mark.training_gate(step="benchmarks.own_step:make_step", examples=128)
def test_a_step_of_our_own_is_no_slower() -> None:
    """Strategy, model and data are the step's own affair; the gate proves what can be seen of its losses."""
