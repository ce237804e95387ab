"""What one of two workers does wrong is found, whatever it is."""

import pytest

from harness.record.reading import Run
from tests.engines.sweeps import swept
from tests.engines.tensorflow.faulty import FAULTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Run:
    asked = {
        "engine": "tests.engines.tensorflow.faulty:FaultyTensorFlow",
        "model": ["mlp"],
        "optimizer": ["sgd"],
        "batch_size": [8],
        "data": ["digits"],  # which come from the host
        "strategy": ["multi_worker_mirrored"],
        "workers": [2],
        "replicas": [1],
        "intra_op_threads": [1],
        "trials": 1,
        "windows": 5,
        "window": 0.01,
        "max_warmup": 0,
        "cross_device_op": ["auto", *FAULTS],
    }
    return swept(asked, tmp_path_factory.mktemp("wrong"))


@pytest.mark.parametrize("op", ["auto", *FAULTS])
def test_a_planted_fault_is_a_wrong_result_without_a_figure_and_none_is_ok(wrong: Run, op: str) -> None:
    [trial] = [trial for trial in wrong.trials if trial.cell.cross_device_op == op]
    assert trial.status == ("ok" if op == "auto" else "wrong_result"), trial.reason
    assert (trial.throughput_examples_per_s is None) == (op != "auto")


def test_examples_in_another_order_are_told_with_the_worker_and_the_first_batch_that_is_another(wrong: Run) -> None:
    of = {trial.cell.cross_device_op: trial for trial in wrong.trials}
    assert of["auto"].checks.input is True
    trial = of["reordered"]
    assert trial.checks.failures == ("input",)
    assert "worker 1 was fed other examples than seed" in (trial.reason or "")
    assert "from batch 3 on" in (trial.reason or "")


def test_a_fault_that_begins_late_has_passed_the_first_updates(wrong: Run) -> None:
    [late] = [trial.checks for trial in wrong.trials if trial.cell.cross_device_op == "late"]
    assert (late.update, late.late) == (True, False)
