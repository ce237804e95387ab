"""A record from before operations were counted is written as it was."""

import json

from harness.record import Executed, TrialRecord
from tests.record.examples import trial


def test_what_was_not_counted_is_left_out() -> None:
    assert "flops_per_step" not in json.loads(trial().model_dump_json())["executed"]


def test_what_was_counted_reads_back() -> None:
    record = trial(executed=Executed(fingerprint="f" * 12, flops_per_step=25_673_728))
    assert TrialRecord.model_validate_json(record.model_dump_json()) == record
