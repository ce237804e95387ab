"""Gradients travel over the network that was asked for, which Horovod by itself does not see to."""

from pathlib import Path

import pytest

from harness.run.network import available
from tests.engines.horovod.swept import MLP, measured

pytestmark = pytest.mark.slow
BYTES = 4 * 669_706
"""Of the gradients; of two processes each sends as much."""
BITS_PER_S = 100e6


@pytest.fixture
def emulation() -> None:
    if (reason := available()) is not None:
        pytest.skip(reason)


@pytest.mark.usefixtures("emulation")
def test_a_step_takes_at_least_as_long_as_its_gradients_take_on_the_wire(horovod_python: str, tmp_path: Path) -> None:
    run = measured(horovod_python, tmp_path, "horovod", **MLP, loop=["tape"], workers=[2], network=["rate=100mbit"])
    [trial] = run.trials
    assert (trial.status, trial.reason) == ("ok", None)
    step_s = trial.cell.global_batch_size / (trial.throughput_examples_per_s or 0)
    assert step_s > 0.9 * BYTES * 8 / BITS_PER_S  # a shaper lets a first burst through
