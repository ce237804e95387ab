"""A sweep that asks for a TPU that is not there: a record with the reason for each cell, and the rest goes on."""

from pathlib import Path

import pytest

from tests.cli.real import SMALL, only_run, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("local", "no TPU device"),
        ("no-such-tpu", "finds no TPU 'no-such-tpu'"),
        ("192.0.2.1:8470", "no TPU at '192.0.2.1:8470'"),
    ],
)
def test_each_form_of_a_tpu_that_is_not_there_is_unsupported_and_the_sweep_goes_on(
    tmp_path: Path, name: str, says: str
) -> None:
    flags = ["--device", "tpu,virtual-cpu", "--strategy", "none,tpu", "--replicas", "1", "--tpu", name]
    done = run("sweep", *SMALL, *flags, "--timeout", "20", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    trials = only_run(tmp_path / "results").trials
    asked = [trial for trial in trials if trial.cell.device == "tpu"]
    assert asked
    assert {trial.status for trial in asked} == {"unsupported"}
    assert all(says in str(trial.reason) for trial in asked)
    assert "ok" in {trial.status for trial in trials if trial.cell.device == "virtual-cpu"}
