"""The recipe for several inputs and targets: its example runs as it stands, and is proved."""

import re
from pathlib import Path

import pytest

from tests.cli.real import SMALL, only_run, run
from tests.engines.sweeps import must_have_passed_the_whole_gate, must_know_its_sight

PAGE = (Path(__file__).parents[2] / "docs" / "how-to.md").read_text(encoding="utf-8")
[CODE] = re.findall(r"```python\n# likes\.py\n(.*?)```", PAGE, re.DOTALL)
[COMMAND] = re.findall(r"```console\n(python -m harness sweep --model likes:.*?)```", PAGE, re.DOTALL)
SHORT = [flag for flag in SMALL if not flag.startswith(("--model", "--data", "--optimizer"))]
"""The page's model, data and optimizer are what is asked here."""


@pytest.mark.slow
def test_the_example_of_several_inputs_and_targets_is_proved_alone_and_on_two_replicas(tmp_path: Path) -> None:
    (tmp_path / "likes.py").write_text(CODE, encoding="utf-8")
    one_replica = "--exclude=strategy=mirrored replicas=1"  # which is done alone
    done = run(*COMMAND.split()[3:], *SHORT, one_replica, "--intra-op-threads=2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    trials = only_run(tmp_path / "results").trials
    assert {(trial.cell.get("strategy"), trial.cell.get("replicas")) for trial in trials} == {
        ("none", 1),
        ("mirrored", 2),
    }
    for trial in trials:
        must_have_passed_the_whole_gate(trial)
        must_know_its_sight(trial)
