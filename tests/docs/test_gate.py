"""The page on the gate: its example runs as it stands, and finds what it says it finds."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.record import load_run
from tests.cli.real import SMALL, run
from tests.docs.stated import section, states

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
[CODE] = re.findall(r"```python\n# promises\.py\n(.*?)```", PAGE, re.DOTALL)
[COMMAND] = re.findall(r"```console\n(python -m harness sweep .*?)```", PAGE, re.DOTALL)
SHORT = [flag for flag in SMALL if not flag.startswith(("--model", "--optimizer"))]
"""The page's model and its optimizer are what is asked here."""
ONCE = ("--exclude=strategy=mirrored replicas=1", "--intra-op-threads=2")
"""So that the check is asked alone and on two replicas, once each."""


def swept(folder: Path, code: str) -> list[dict[str, Any]]:
    """The trials of the page's command, with `code` as its module."""
    (folder / "promises.py").write_text(code, encoding="utf-8")
    done = run(*COMMAND.split()[3:], *SHORT, *ONCE, folder=folder)
    assert done.returncode == (0 if code == CODE else 1), done.stderr  # 1: no cell was right, so none was measured
    lines = next((folder / "results").glob("*/trials.jsonl")).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_a_check_of_ones_own_is_asked_in_every_cell_and_what_it_finds_is_a_wrong_result(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    kept = swept(tmp_path / "kept", CODE)
    assert {trial["checks"]["own_check"] for trial in kept} == {True}, [trial["reason"] for trial in kept]
    (tmp_path / "broken").mkdir()
    for trial in swept(tmp_path / "broken", CODE.replace("trainable=False", "trainable=True")):
        assert trial["status"] == "wrong_result"
        assert re.match(r"own_check: update 1: '.*backbone/\w+' is frozen, and moved by up to ", trial["reason"])


@pytest.mark.parametrize("name", ["workloads", "own"])
def test_the_page_says_how_many_trials_of_a_kept_run_are_ok(name: str) -> None:
    judged = ("ok", "unproved", "wrong_result")
    trials = [trial for trial in load_run(ROOT / "results" / name).trials if trial.status in judged]
    right = sum(trial.status == "ok" for trial in trials)
    assert states(section(PAGE, "How often it is wrong"), f"{right} of {len(trials)}")
