"""How a gate test ends, by what was measured of its cell."""

import re
import shlex

import pytest

from harness import cli
from harness.run.kinds.decision import WINDOWING
from tests.pytest_plugin.conftest import Suite, gate_tests, text_of

pytest_plugins = ["pytester"]


def test_slower_fails_the_test_and_says_by_how_much_and_how_to_see_it_again(suite: Suite) -> None:
    suite.write(gate_tests("slow"))
    result = suite.against()
    result.assert_outcomes(failed=1)
    said = text_of(result)
    assert re.search(r"none ×1 b64, steps:slow: slower by 13\.\d % \[.*\] against main \(\w{7}\)", said)
    assert "CPU      processor time an example: more by 16" in said
    assert "delta 1 % (the defaults), epsilon 3 %" in said
    assert "6 pairs" in said
    assert "again    python -m harness ab --model steps:slow --rev-a main --max-blocks 18" in said
    assert "Traceback" not in said


def test_a_failure_says_when_the_two_clocks_disagree(suite: Suite) -> None:
    suite.write(gate_tests("waiting"))
    assert "B waits more" in text_of(suite.against())


@pytest.mark.parametrize("name", ["same", "fast"])
def test_equivalent_and_faster_pass(suite: Suite, name: str) -> None:
    suite.write(gate_tests(name))
    result = suite.against()
    result.assert_outcomes(passed=1)
    assert ("equivalent" if name == "same" else "faster by") in text_of(result)


def test_undecided_passes_with_a_warning_that_says_what_would_decide_it(suite: Suite) -> None:
    suite.write(gate_tests("noisy"))
    result = suite.against()
    result.assert_outcomes(passed=1)
    assert text_of(result).count("UndecidedGate: ") == 1
    assert "no regression is shown or ruled out" in text_of(result)
    assert re.search(r"to decide: about \d+ blocks.*\(--gate-blocks \d+\)", text_of(result))


def test_undecided_fails_where_the_suite_makes_the_warning_an_error(suite: Suite) -> None:
    suite.write(gate_tests("noisy"))
    suite.against("-W", "error::harness.pytest_plugin.UndecidedGate").assert_outcomes(failed=1)


@pytest.mark.parametrize("by", ["option", "ini"])
def test_undecided_fails_under_strict_and_says_what_would_decide_it(suite: Suite, by: str) -> None:
    suite.write(gate_tests("noisy", "same"))
    suite.ini(*(["gate_strict = true"] if by == "ini" else []))
    result = suite.against(*(["--gate-strict"] if by == "option" else []))
    result.assert_outcomes(failed=1, passed=1)
    assert re.search(r"to decide: about \d+ blocks.*\(--gate-blocks \d+\)", text_of(result))
    assert "UndecidedGate" not in text_of(result)


def test_a_wrong_result_fails_with_its_evidence(suite: Suite) -> None:
    suite.write(gate_tests("wrong"))
    result = suite.against()
    result.assert_outcomes(failed=1)
    assert "the working tree: wrong result, 6 of 6 trials: the sum misses replica 2" in text_of(result)


def test_a_step_that_crashes_fails(suite: Suite) -> None:
    suite.write(gate_tests("crashing"))
    result = suite.against()
    result.assert_outcomes(failed=1)
    assert "ended by SIGSEGV" in text_of(result)


def test_a_step_that_crashes_again_and_again_where_the_other_side_never_does_fails(suite: Suite) -> None:
    suite.write(gate_tests("failing"))
    result = suite.against()
    result.assert_outcomes(failed=1)
    assert re.search(r"the working tree: .*, 2 of 6 trials: ended by SIGSEGV", text_of(result))


def test_a_single_crash_may_be_the_runners_and_is_said(suite: Suite) -> None:
    suite.write(gate_tests("flaky"))
    suite.against().assert_outcomes(passed=1)


def test_what_cannot_run_here_is_skipped_with_the_reason(suite: Suite) -> None:
    suite.write(gate_tests("unsupported"))
    result = suite.against("-rs")
    result.assert_outcomes(skipped=1)
    assert "there is no such device" in text_of(result)


def test_a_fix_of_a_wrong_step_does_not_fail_for_want_of_a_comparison(suite: Suite) -> None:
    suite.write(gate_tests("was_wrong"))
    result = suite.against("-rs")
    result.assert_outcomes(skipped=1)
    assert "there is nothing to compare with: main" in text_of(result)


def test_a_step_that_the_revision_does_not_have_is_proved_and_skipped(suite: Suite) -> None:
    suite.write(gate_tests("new"))
    result = suite.against("-rs")
    result.assert_outcomes(skipped=1)
    assert "cannot run it, so there is nothing to compare with (model: 'steps:new'" in text_of(result)
    assert [sweep.trials for sweep, _ in suite.planted.measured] == [1]


def test_a_model_of_the_harness_itself_is_skipped_against_a_revision_that_cannot_change_it(suite: Suite) -> None:
    suite.write("import pytest\n@pytest.mark.training_gate(strategy='mirrored', replicas=2)\ndef test_it(): pass\n")
    result = suite.against("-rs")
    result.assert_outcomes(skipped=1)
    assert "comes with the harness" in text_of(result)
    assert suite.planted.decided == []


def test_one_in_twenty_chances_do_not_fail_a_gate_of_five_cells(suite: Suite) -> None:
    """p = 0.03 by itself is slower; among five cells named beforehand Holm asks for 0.01."""
    suite.write(gate_tests("just"))
    suite.against().assert_outcomes(failed=1)
    suite.write(gate_tests("just", "same", "fast", "noisy", "waiting").replace("steps:waiting", "steps:fast"))
    result = suite.against()
    result.assert_outcomes(passed=5)
    assert text_of(result).count("UndecidedGate: ") == 2
    assert "by itself it would be slower; for one of 4 cells Holm asks for more (--gate-blocks N)" in text_of(result)


def test_a_large_slow_down_still_fails_among_others(suite: Suite) -> None:
    suite.write(gate_tests("slow", "same", "fast", "noisy", "just"))
    result = suite.against()
    result.assert_outcomes(failed=1, passed=4)
    assert "Holm over 5 cells" in text_of(result)


def test_the_table_at_the_end_names_every_cell_and_the_rule(suite: Suite) -> None:
    suite.write(gate_tests("slow", "same"))
    said = text_of(suite.against())
    table = said[said.index("training gate: the working tree against main") :]
    assert re.search(
        r"test_gate\.py::test_slow +none ×1 b64, steps:slow +slower by .* % \[.*\] +more by .*6 pairs", table
    )
    assert re.search(r"test_gate\.py::test_same +none ×1 b64, steps:same +equivalent: ", table)
    assert "Holm over 2 cells" in table
    assert table.count("records: ") == 2


def test_the_fixture_gives_the_figures_to_assert_more(suite: Suite) -> None:
    suite.write(
        "import pytest\n"
        "@pytest.mark.training_gate(model='steps:fast')\n"
        "def test_it(training_gate):\n"
        "    assert training_gate.verdict == 'faster'\n"
        "    low, high = training_gate.ci95\n"
        "    assert 1.1 < low < training_gate.ratio < high < 1.2\n"
        "    assert training_gate.cpu == 'less'\n"
        "    assert training_gate.verdicts.wall.estimate.count == 6\n"
        "@pytest.mark.training_gate(model='steps:slow')\n"
        "def test_body_of_a_slower_one_does_not_run(training_gate):\n"
        "    raise RuntimeError('it ran')\n"
    )
    result = suite.against()
    result.assert_outcomes(passed=1, failed=1)
    assert "it ran" not in text_of(result).replace("raise RuntimeError('it ran')", "")


def test_a_body_that_asserts_more_can_fail_by_itself(suite: Suite) -> None:
    suite.write(
        "import pytest\n@pytest.mark.training_gate(model='steps:same')\n"
        "def test_it(training_gate):\n    assert training_gate.ratio > 1.05\n"
    )
    suite.against().assert_outcomes(failed=1)


def test_verdict_and_ratio_are_in_the_junit_file(suite: Suite) -> None:
    suite.write(gate_tests("slow"))
    suite.against("--junit-xml", "junit.xml")
    found = (suite.pytester.path / "junit.xml").read_text()
    assert '<property name="training_gate.verdict" value="slower"' in found
    assert '<property name="training_gate.ratio" value="0.86' in found


def test_a_note_on_one_cell_names_it_and_one_on_all_does_not(suite: Suite) -> None:
    suite.write(gate_tests("same", "flaky"))
    said = text_of(suite.against())
    table = said[said.index("training gate: the working tree against main") :]
    assert re.search(r"^none ×1 b64, steps:flaky: .*ended by SIGSEGV", table, re.MULTILINE)
    assert re.search(r"^No validation of this machine was found", table, re.MULTILINE)


def test_cells_are_measured_as_ab_measures_them_and_the_printed_command_is_one(suite: Suite) -> None:
    suite.write(gate_tests("slow").replace('"steps:slow"', '"steps:slow", strategy="mirrored", replicas=2, xla=True'))
    said = text_of(suite.against("--gate-delta", "2%", "--gate-results", "kept here"))
    [(a, b)] = suite.planted.decided
    assert {key: getattr(a.sweep, key) for key in WINDOWING} == WINDOWING
    assert a.sweep == b.sweep
    command = re.search(r"again    python -m harness (ab .*)", said)
    assert command is not None
    words = shlex.split(command[1])
    assert words[words.index("--results") + 1] == "kept here"
    application = cli.command_line()
    with application.make_context("harness", words, resilient_parsing=True) as context:
        found = application.get_command(context, "ab")  # type: ignore[attr-defined]
        given = found.make_context("ab", words[1:], parent=context).params
    assert {key: given[key] for key in ("model", "strategy", "replicas", "xla", "rev_a", "delta", "max_blocks")} == {
        "model": ["steps:slow"],
        "strategy": ["mirrored"],
        "replicas": ["2"],
        "xla": ["true"],
        "rev_a": "main",
        "delta": "2%",
        "max_blocks": 18,
    }


def test_a_revision_that_git_cannot_check_out_is_a_failure_and_no_new_step(suite: Suite) -> None:
    suite.write(gate_tests("treeless"))
    result = suite.against()
    result.assert_outcomes(failed=1)
    assert "--gate-against: git cannot make a work tree" in text_of(result)
    assert suite.planted.measured == []
