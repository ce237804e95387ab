"""The cells of `suite.toml` as benchmarks: one training step of each, in seconds.

    pytest benchmarks/
    pytest benchmarks/ -k mirrored --benchmark-json benchmark.json

To benchmark your own spec, copy these lines beside it and change SPEC.
"""

import warnings
from pathlib import Path
from typing import Any

import pytest

from benchmarks.handover import CLOCK, hand_over
from benchmarks.suite import MeasuredCell
from harness.record.trial import MEASURED

SPEC = Path(__file__).with_name("suite.toml")


@pytest.mark.benchmark(timer=CLOCK)
def test_step(benchmark: Any, measured_cell: MeasuredCell) -> None:
    """A step computes the right thing; how long it takes goes to pytest-benchmark, a window a round."""
    if measured_cell.status == "unsupported":
        pytest.skip(measured_cell.trouble())
    if measured_cell.status not in MEASURED:
        pytest.fail(measured_cell.trouble() or f"the cell is {measured_cell.status}", pytrace=False)
    if trouble := measured_cell.trouble():
        warnings.warn(trouble, stacklevel=1)
    benchmark.group = measured_cell.summary.trials.cell.model
    benchmark.extra_info.update(measured_cell.extra_info())
    hand_over(benchmark, measured_cell.step_times_s())
