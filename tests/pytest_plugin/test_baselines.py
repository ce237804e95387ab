"""A baseline that was stored on this machine, by name."""

import re

import pytest

from harness.environment import facts
from harness.record.manifest import RunManifest
from harness.record.reading import list_runs
from harness.record.validation import write_validation
from tests.comparisons import validation
from tests.pytest_plugin.conftest import Suite, gate_tests, text_of
from tests.pytest_plugin.planted import TRUTHS, Truth

pytest_plugins = ["pytester"]


def saved(suite: Suite, *names: str) -> None:
    """Save these cells as the baseline `main`; after that the working tree has changed."""
    suite.write(gate_tests(*names))
    suite.run("--gate-save", "main").assert_outcomes(passed=len(names))
    suite.planted.later = True


def test_a_saved_run_is_a_run_like_any_other_with_its_name(suite: Suite) -> None:
    suite.write(gate_tests("same", "slow"))
    result = suite.run("--gate-save", "main")
    result.assert_outcomes(passed=2)
    assert re.search(r"test_slow +none ×1 b64, steps:slow +saved: [\d,]+ examples/s .*12 trials", text_of(result))
    [row] = list_runs(suite.results)
    assert (row.name, row.status, row.cells, row.trials) == ("baseline-main", "finished", 2, 24)


def test_cells_are_measured_one_at_a_time_block_after_block(suite: Suite) -> None:
    saved(suite, "same", "slow")
    [(sweep, cells)] = suite.planted.measured
    assert (sweep.trials, sweep.live_trials, len(cells)) == (12, 1, 2)


def test_slower_than_the_baseline_fails_and_names_its_commit_and_what_it_cannot_see(suite: Suite) -> None:
    saved(suite, "slow", "same")
    result = suite.run("--gate-baseline", "main")
    result.assert_outcomes(failed=1, passed=1)
    said = text_of(result)
    assert re.search(
        r"steps:slow: slower by .* against baseline main \(\w{7}( with changes)? of \d{4}-\d\d-\d\d\)", said
    )
    assert "12 + 12 trials" in said
    assert "How the machine drifted" in said
    assert "again    python -m harness compare " in said
    assert "Holm over 2 cells" in said


def test_a_cell_that_the_baseline_does_not_have_is_skipped_with_the_remedy(suite: Suite) -> None:
    saved(suite, "same")
    suite.write(gate_tests("same", "slow"))
    result = suite.run("--gate-baseline", "main", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    assert "baseline 'main' has no run that measured this cell; save it again with --gate-save" in text_of(result)


def test_a_cell_that_was_measured_with_other_settings_is_not_compared(suite: Suite) -> None:
    saved(suite, "same")
    suite.write(gate_tests("same").replace('"steps:same"', '"steps:same", window=0.5'))
    result = suite.run("--gate-baseline", "main", "-rs")
    result.assert_outcomes(skipped=1)
    assert "measured this cell with other settings (window 0.02, now 0.5)" in text_of(result)


def test_an_unknown_name_is_one_line_with_those_there_are(suite: Suite) -> None:
    saved(suite, "same")
    result = suite.run("--gate-baseline", "mian")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(r"no baseline 'mian' in .*; there are main; did you mean 'main'\?", text_of(result))


def test_another_machine_is_refused_in_one_line_before_anything_is_measured(suite: Suite) -> None:
    suite.planted.machine = {"cpu.model": "a processor of another kind"}
    saved(suite, "same")
    assert facts()["cpu.model"] is not None
    measured = len(suite.planted.measured)
    result = suite.run("--gate-baseline", "main")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(
        r"ERROR: --gate-baseline: 'main' cannot be compared with: .*cpu.model: a processor", text_of(result)
    )
    assert len(suite.planted.measured) == measured


def test_another_machine_of_the_same_kind_is_refused_too(suite: Suite) -> None:
    suite.planted.machine = {"machine.id": "000000000000"}
    saved(suite, "same")
    result = suite.run("--gate-baseline", "main")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "'main' cannot be compared with: the machine was another" in text_of(result)


def test_runs_of_another_machine_are_left_out_whichever_is_the_newest_and_it_is_said(suite: Suite) -> None:
    saved(suite, "slow")
    suite.planted.machine = {"machine.id": "000000000000"}
    suite.write(gate_tests("slow", "same"))
    suite.run("--gate-save", "main").assert_outcomes(passed=2)
    here, elsewhere = (row.run_id for row in list_runs(suite.results))
    suite.planted.machine = {}
    result = suite.run("--gate-baseline", "main", "-rs")
    result.assert_outcomes(failed=1, skipped=1)
    said = text_of(result)
    left_out = f"1 run of another machine or in another state left out: {elsewhere}"
    assert re.search(f"if all are needed; {left_out}$", said, re.MULTILINE)
    lacks = rf"'main' has no run that measured this cell \({left_out}\); save it again"
    assert re.search(lacks, said)
    assert re.search(rf"again    python -m harness compare {here} ", said)


def test_an_older_run_of_another_machine_is_left_out_of_a_baseline_too(suite: Suite) -> None:
    suite.planted.machine = {"machine.id": "000000000000"}
    suite.write(gate_tests("same", "slow"))
    suite.run("--gate-save", "main").assert_outcomes(passed=2)
    suite.planted.machine = {}
    suite.write(gate_tests("same"))
    suite.run("--gate-save", "main").assert_outcomes(passed=1)
    suite.planted.later = True
    suite.write(gate_tests("same", "slow"))
    suite.run("--gate-baseline", "main").assert_outcomes(passed=1, skipped=1)


def test_a_little_slower_is_a_warning_while_nobody_knows_how_far_the_machine_drifts(suite: Suite) -> None:
    saved(suite, "slightly")
    result = suite.run("--gate-baseline", "main")
    result.assert_outcomes(passed=1)
    said = text_of(result)
    assert re.search(r"UndecidedGate: .*steps:slightly: slower by .*; not by more than 10 %, which may be the", said)
    assert "the two runs is not known: --gate-delta sets what counts, and --gate-against needs no such margin" in said
    suite.run("--gate-baseline", "main", "--gate-delta", "1%").assert_outcomes(failed=1)


def test_what_a_validation_of_minutes_found_is_no_margin_for_a_baseline_of_another_day(suite: Suite) -> None:
    saved(suite, "slightly", "slow")
    (folder := suite.results / "validation").mkdir()
    write_validation(folder, validation(paired=0.01, unpaired=0.02, machine_id=facts()["machine.id"]))
    result = suite.run("--gate-baseline", "main")
    result.assert_outcomes(passed=1, failed=1)
    assert re.search(r"steps:slightly: slower by .*; not by more than 10 %, which may be the", text_of(result))


def test_the_newest_run_of_a_name_counts(suite: Suite) -> None:
    saved(suite, "slow")
    suite.run("--gate-save", "main").assert_outcomes(passed=1)
    suite.run("--gate-baseline", "main").assert_outcomes(passed=1)


@pytest.mark.parametrize("status", ["wrong_result", "crashed"])
def test_a_save_that_failed_leaves_the_good_run_of_its_name_to_be_held_against(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    saved(suite, "slow")
    with monkeypatch.context() as wrong:
        wrong.setitem(TRUTHS, "steps:slow", Truth(b=status))
        suite.run("--gate-save", "main").assert_outcomes(failed=1)
    result = suite.run("--gate-baseline", "main")
    result.assert_outcomes(failed=1)
    assert "steps:slow: slower by " in text_of(result)


def test_a_name_whose_every_save_failed_is_no_baseline_of_the_cell(suite: Suite) -> None:
    suite.write(gate_tests("wrong"))
    suite.run("--gate-save", "main").assert_outcomes(failed=1)
    result = suite.run("--gate-baseline", "main", "-rs")
    result.assert_outcomes(skipped=1)
    assert "baseline 'main' has no run that measured this cell; save it again with --gate-save" in text_of(result)


def test_a_damaged_baseline_of_another_name_does_not_matter(suite: Suite) -> None:
    saved(suite, "same")
    suite.run("--gate-save", "damaged").assert_outcomes(passed=1)
    (suite.results / list_runs(suite.results)[-1].run_id / "trials.jsonl").write_text("damaged\n\nmore\n")
    suite.run("--gate-baseline", "main").assert_outcomes(passed=1)
    result = suite.run("--gate-baseline", "damaged")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "trials.jsonl:1: not valid JSON" in text_of(result)


def test_a_comparison_can_be_saved_under_another_name_at_once(suite: Suite) -> None:
    saved(suite, "same")
    suite.run("--gate-baseline", "main", "--gate-save", "next").assert_outcomes(passed=1)
    assert [row.name for row in list_runs(suite.results)] == ["baseline-main", "baseline-next"]


def test_a_wrong_result_is_no_baseline_and_fails(suite: Suite) -> None:
    suite.write(gate_tests("wrong"))
    result = suite.run("--gate-save", "main")
    result.assert_outcomes(failed=1)
    assert "wrong result, 12 of 12 trials: the sum misses replica 2" in text_of(result)


def test_one_model_that_cannot_be_loaded_does_not_take_the_others_with_it(suite: Suite) -> None:
    suite.write(gate_tests("same", "broken", "slow"))
    result = suite.run("--gate-save", "main")
    result.assert_outcomes(passed=2, failed=1)
    assert "'steps:broken' cannot be built: ValueError: no" in text_of(result)


def test_the_fixture_skips_where_nothing_is_compared(suite: Suite) -> None:
    suite.write(
        "import pytest\n@pytest.mark.training_gate(model='steps:same')\n"
        "def test_it(training_gate): assert training_gate.ratio > 0\n"
        "@pytest.mark.training_gate(model='steps:wrong')\ndef test_wrong(training_gate): pass\n"
    )
    suite.run("--gate-save", "main").assert_outcomes(skipped=1, failed=1)


def test_an_interrupted_save_is_no_baseline(suite: Suite) -> None:
    saved(suite, "same")
    [row] = list_runs(suite.results)
    file = row.path / "run.json"
    manifest = RunManifest.model_validate_json(file.read_bytes())
    file.write_text(manifest.model_copy(update={"status": "interrupted"}).model_dump_json())
    result = suite.run("--gate-baseline", "main")
    assert "there are none yet; pytest --gate-save main makes it" in text_of(result)


def test_the_command_to_see_it_again_knows_the_folder_and_the_margins(suite: Suite) -> None:
    suite.write(gate_tests("slow"))
    suite.run("--gate-save", "main", "--gate-results", "kept").assert_outcomes(passed=1)
    suite.planted.later = True
    said = text_of(suite.run("--gate-baseline", "main", "--gate-results", "kept", "--gate-delta", "2%"))
    assert re.search(r"again    python -m harness compare \S+ \S+ --delta 2% --results kept\n", said)
