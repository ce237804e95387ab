"""The file that the gate writes for the job that runs it."""

import json
import os
from typing import Any

import pytest

from harness.record.reading import list_runs, load_manifest
from tests.pytest_plugin.conftest import Suite, gate_tests, text_of

pytest_plugins = ["pytester"]


def found(suite: Suite, name: str = "gate.json") -> dict[str, Any]:
    whole: dict[str, Any] = json.loads((suite.pytester.path / name).read_text())
    return whole


def test_each_test_has_its_verdict_interval_margin_and_the_revision_it_was_held_against(suite: Suite) -> None:
    suite.write(gate_tests("slow", "noisy", "wrong"))
    suite.against("--gate-json", "gate.json", "--gate-epsilon", "4%").assert_outcomes(failed=2, passed=1)
    whole = found(suite)
    assert {
        key: whole[key] for key in ("schema_version", "mode", "against", "saved", "strict", "delta", "epsilon")
    } == {
        "schema_version": 1,
        "mode": "against",
        "against": "main",
        "saved": None,
        "strict": False,
        "delta": 0.01,
        "epsilon": 0.04,
    }
    slow, noisy, wrong = whole["tests"]
    assert [one["test"] for one in whole["tests"]] == [
        f"test_gate.py::test_{name}" for name in ("slow", "noisy", "wrong")
    ]
    assert [one["verdict"] for one in whole["tests"]] == ["slower", "undecided", "failed"]
    assert [one["failed"] for one in whole["tests"]] == [True, False, True]
    assert slow["ci95"][0] < slow["ratio"] < slow["ci95"][1] < 0.9
    assert slow["fails_beyond"] == 0.01
    main = suite.pytester.run("git", "rev-parse", "main").outlines[0]
    assert (slow["base"]["revision"], slow["base"]["run_id"]) == (main, slow["comparison"]["run_a"])
    assert slow["comparison"]["rows"][0]["verdict"] == "slower"
    assert slow["comparison"]["correction"] == "holm"
    assert slow["reason"] is None
    assert "the sum misses replica 2" in wrong["reason"]
    assert wrong["ratio"] is wrong["ci95"] is wrong["base"] is wrong["comparison"] is None
    assert noisy["again"].startswith("python -m harness ab --model steps:noisy")


def test_strict_says_that_what_is_undecided_failed(suite: Suite) -> None:
    suite.write(gate_tests("noisy"))
    suite.against("--gate-json", "gate.json", "--gate-strict").assert_outcomes(failed=1)
    assert (found(suite)["strict"], found(suite)["tests"][0]["failed"]) == (True, True)


def test_a_baseline_is_named_with_its_run_commit_and_what_it_must_be_slower_by(suite: Suite) -> None:
    suite.write(gate_tests("slightly"))
    suite.run("--gate-save", "main", "--gate-json", "out/saved.json").assert_outcomes(passed=1)
    saved = found(suite, "out/saved.json")
    assert (saved["mode"], saved["saved"], saved["against"]) == ("save", "main", None)
    assert (saved["tests"][0]["verdict"], saved["tests"][0]["comparison"]) == ("saved", None)
    suite.planted.later = True
    suite.run("--gate-baseline", "main", "--gate-json", "gate.json").assert_outcomes(passed=1)
    [one] = found(suite)["tests"]
    assert (found(suite)["against"], one["verdict"], one["fails_beyond"]) == ("main", "undecided", 0.1)
    base = load_manifest(list_runs(suite.results)[0].path)
    assert one["base"] == {
        "run_id": base.run_id,
        "created_utc": base.created_utc,
        "revision": base.facts["git.revision"],
    }


def test_nothing_is_written_where_the_gate_is_not_asked_for(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    suite.run("--gate-json", "gate.json").assert_outcomes(skipped=1)
    assert not (suite.pytester.path / "gate.json").exists()


def test_a_file_of_a_run_is_refused_before_anything_is_measured(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    suite.run("--gate-save", "main").assert_outcomes(passed=1)
    [row] = list_runs(suite.results)
    result = suite.against("--gate-json", str(row.path / "run.json"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "run.json' is a file that a run keeps; name another with --gate-json FILE" in text_of(result)
    assert suite.planted.decided == []


def test_a_file_that_cannot_be_written_leaves_the_table_and_is_no_success(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    (suite.pytester.path / "folder").mkdir()
    result = suite.against("--gate-json", f"folder{os.sep}")
    result.assert_outcomes(passed=1)
    assert result.ret == 4
    assert "folder': it is a folder; name a file with --gate-json FILE" in text_of(result)
    assert "training gate: the working tree against main" in text_of(result)
