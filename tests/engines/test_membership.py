"""A cluster that somebody else has set up is not a trial's."""

import os

import pytest

from harness.engines.tensorflow.membership import SLURM_SHAPE, leave_others


@pytest.mark.parametrize("value", ["{not json", '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {}}'])
def test_the_cluster_of_another_job_is_left_before_tensorflow_is_imported(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TF_CONFIG", value)
    monkeypatch.setenv(SLURM_SHAPE, value)
    leave_others()
    assert not {"TF_CONFIG", SLURM_SHAPE} & os.environ.keys()
