"""Which cells are measured, and what marks and options may say."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest

from harness.pytest_plugin import against
from harness.spec.work import OwnStepCell
from tests.pytest_plugin.conftest import LOADED, Suite, gate_tests, text_of
from tests.run.repositories import Repo

pytest_plugins = ["pytester"]
USAGE = pytest.ExitCode.USAGE_ERROR


def models(suite: Suite) -> list[str]:
    """The models of the cells that were decided on, without their module."""
    return [a.cell.subject.removeprefix("steps:") for a, _ in suite.planted.decided]


def test_trials_look_for_modules_where_pytests_pythonpath_says(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str | None] = []

    def decide(*asked: Any) -> Any:
        told.append(os.environ.get("PYTHONPATH"))
        return suite.planted.decide(*asked)

    monkeypatch.setattr(against, "decide", decide)
    monkeypatch.setenv("PYTHONPATH", "/of/mine")
    suite.ini("pythonpath = lib other/lib")
    suite.write(gate_tests("same"))
    suite.against().assert_outcomes(passed=1)
    root = suite.pytester.path
    assert told == [os.pathsep.join([str(root / "lib"), str(root / "other" / "lib"), "/of/mine"])]
    assert os.environ["PYTHONPATH"] == "/of/mine"


def test_a_plain_pytest_measures_nothing_and_names_both_options(suite: Suite) -> None:
    suite.write(gate_tests("slow"))
    result = suite.run("-rs")
    result.assert_outcomes(skipped=1)
    assert re.search(r"SKIPPED.*--gate-against REV.*--gate-baseline NAME", text_of(result))
    assert models(suite) == []
    assert "= training gate" not in text_of(result)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-k", "slow or fast"), ["slow", "fast"]),
        (("test_gate.py::test_same",), ["same"]),
        (("-m", "not training_gate"), []),
        (("--deselect", "test_gate.py::test_slow"), ["same", "fast"]),
        (("--collect-only",), []),
    ],
)
def test_only_selected_cells_are_measured(suite: Suite, arguments: tuple[str, ...], expected: list[str]) -> None:
    suite.write(gate_tests("slow", "same", "fast"))
    suite.against(*arguments)
    assert models(suite) == expected


def test_only_what_failed_last_is_measured_with_last_failed(suite: Suite) -> None:
    suite.write(gate_tests("slow", "same"))
    suite.pytester.runpytest_inprocess(*LOADED, "--gate-against", "main")
    suite.planted.decided.clear()
    suite.pytester.runpytest_inprocess(*LOADED, "--gate-against", "main", "--lf")
    assert models(suite) == ["slow"]


def test_what_a_mark_skips_is_not_measured(suite: Suite) -> None:
    suite.write(
        "import pytest\n"
        "@pytest.mark.skip\n@pytest.mark.training_gate(model='steps:slow')\ndef test_a(): pass\n"
        "@pytest.mark.skipif(True, reason='x')\n@pytest.mark.training_gate(model='steps:fast')\ndef test_b(): pass\n"
        "@pytest.mark.skipif(False, reason='x')\n@pytest.mark.training_gate(model='steps:same')\ndef test_c(): pass\n"
    )
    suite.against().assert_outcomes(skipped=2, passed=1)
    assert models(suite) == ["same"]


def test_cells_are_measured_before_the_first_is_judged_and_each_once(suite: Suite) -> None:
    suite.write(
        gate_tests("same", "slow")
        + "@pytest.mark.training_gate(model='steps:slow')\ndef test_again(training_gate): pass\n"
    )
    suite.against("-x").assert_outcomes(passed=1, failed=1)
    assert models(suite) == ["same", "slow"]


def test_parameters_bring_their_marks_and_a_module_shares_its_own(suite: Suite) -> None:
    suite.write(
        "import pytest\n"
        "pytestmark = pytest.mark.training_gate(model='steps:same', strategy='mirrored')\n"
        "@pytest.mark.parametrize('n', [\n"
        "    pytest.param(n, marks=pytest.mark.training_gate(replicas=n)) for n in (2, 3)])\n"
        "def test_it(n, training_gate): assert training_gate.verdict == 'equivalent'\n"
    )
    suite.against().assert_outcomes(passed=2)
    cells = [a.cell for a, _ in suite.planted.decided]
    assert [(cell.strategy, cell.replicas, cell.model) for cell in cells] == [
        ("mirrored", 2, "steps:same"),
        ("mirrored", 3, "steps:same"),
    ]


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("replica=2", "training_gate: unknown key 'replica'; did you mean 'replicas'?"),
        ("'mirrored'", "training_gate: given 'mirrored' without a key, expected keys of a spec, such as replicas=2"),
        ("replicas=[1, 2]", "replicas: given 1,2, expected one value"),
        ("strategy='mirored'", "strategy: 'mirored' is not one of"),
        ("trials=5", "trials: has no meaning for one cell; --gate-max-blocks says how often it is measured"),
        ("batch_size=0", "batch_size: given 0, expected greater than or equal to 1"),
        ("replicas=2", "strategy 'none' runs on 1 replica"),
        ("step='steps:same', exampels=3", "unknown key 'exampels'; did you mean 'examples'?"),
        ("step='steps:same', examples=0", "amount: given 0, expected greater than or equal to 1"),
        ("step=print", "step: given <built-in function print>, expected a text"),
        ("step='steps:same', replicas=2", "replicas: a step of your own decides that itself"),
        ("examples=3", "examples: belongs to step"),
    ],
)
def test_a_wrong_mark_is_one_line_at_collection(suite: Suite, mark: str, said: str) -> None:
    suite.write(f"import pytest\n@pytest.mark.training_gate({mark})\ndef test_it(): pass\n")
    result = suite.run()
    assert result.ret == USAGE
    assert re.search(rf"ERROR: test_gate.py::test_it: .*{re.escape(said)}", text_of(result))
    assert "Traceback" not in text_of(result)


def test_the_fixture_without_the_mark_is_one_line_at_collection(suite: Suite) -> None:
    suite.write("def test_it(training_gate): pass\n")
    result = suite.run()
    assert result.ret == USAGE
    assert "ERROR: test_gate.py::test_it: takes the fixture training_gate and has no mark" in text_of(result)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gate-against", "main", "--gate-save", "x"), "--gate-save: does not go with --gate-against"),
        (("--gate-against", "main", "--gate-baseline", "x"), "--gate-baseline: does not go with --gate-against"),
        (("--gate-against", "nowhere"), "--gate-against: 'nowhere' names no commit of the repository"),
        (("--gate-baseline", "main"), "--gate-baseline: no baseline 'main' in"),
        (("--gate-save", "feature/x"), "--gate-save: given 'feature/x', expected a name"),
        (("--gate-against", "main", "--gate-delta", "two"), "gate_delta: given 'two', expected a share"),
        (("--gate-against", "main", "--gate-max-blocks", "1"), "gate_max_blocks: given '1', expected a whole number"),
        (("--gate-against", "main", "--gate-max-blocks", "1001"), "gate_max_blocks: given '1001', expected a whole"),
        (("--gate-against", "main", "--gate-blocks", "1001"), "gate_blocks: given '1001', expected a whole number"),
        (("--gate-save", "x", "--gate-results", "~nobody-of-that-name/r"), "gate_results: given '~nobody-of-that-name"),
        (("--gate-against", "main", "--gate-blocks", "x"), "gate_blocks: given 'x', expected a whole number"),
        (("--gate-against", "main", "--gate-delta", "9%", "--gate-epsilon", "1%"), "epsilon: given 0.01"),
    ],
)
def test_options_that_mean_nothing_are_one_line(suite: Suite, arguments: tuple[str, ...], said: str) -> None:
    suite.write(gate_tests("same"))
    result = suite.run(*arguments)
    assert result.ret == USAGE
    assert f"ERROR: {said}" in text_of(result)
    assert "Traceback" not in text_of(result)
    assert models(suite) == []


def test_outside_a_repository_the_option_says_so(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(suite.pytester.path.parent))
    (suite.pytester.path / ".git").rename(suite.pytester.path / "not-git")
    suite.write(gate_tests("same"))
    result = suite.against()
    assert result.ret == USAGE
    assert "--gate-against: the working folder is in no git working tree" in text_of(result)


def test_a_suite_without_gate_tests_needs_no_revision(suite: Suite) -> None:
    suite.write("def test_it(): pass\n")
    suite.run("--gate-against", "nowhere").assert_outcomes(passed=1)


def test_ini_keys_are_defaults_and_options_come_first(suite: Suite) -> None:
    suite.ini("gate_against = main", "gate_delta = 2%", "gate_epsilon = 5%", "gate_max_blocks = 8", "gate_results = r")
    suite.write(gate_tests("same"))
    suite.run().assert_outcomes(passed=1)
    suite.run("--gate-delta", "3%", "--gate-max-blocks", "3").assert_outcomes(passed=1)
    first, second = suite.planted.settings
    assert (first.margins.delta, first.margins.epsilon, first.looks) == (0.02, 0.05, (5, 8))
    assert (second.margins.delta, second.looks) == (0.03, (3,))
    assert len(list((suite.pytester.path / "r").iterdir())) == 2


@pytest.mark.parametrize("by_ini", [True, False])
def test_a_folder_of_records_may_be_below_the_home_folder(
    suite: Suite, by_ini: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(suite.pytester.path / "home"))
    suite.write(gate_tests("same"))
    suite.ini(*["gate_results = ~/gate"] * by_ini)
    suite.against(*["--gate-results=~/gate"] * (not by_ini)).assert_outcomes(passed=1)
    assert len(list((suite.pytester.path / "home" / "gate").iterdir())) == 1
    assert not (suite.pytester.path / "~").exists()


def test_so_many_blocks_in_any_case_are_one_look(suite: Suite) -> None:
    suite.write(gate_tests("slow"))
    said = text_of(suite.run("--gate-against", "main", "--gate-blocks", "20"))
    [settings] = suite.planted.settings
    assert settings.looks == (20,)
    assert "--rev-a main --looks 20" in said
    suite.run("--gate-save", "x", "--gate-blocks", "5").assert_outcomes(passed=1)
    assert suite.planted.measured[-1][0].trials == 5


def test_a_stored_baseline_on_the_command_line_comes_before_a_revision_in_the_ini_file(suite: Suite) -> None:
    suite.ini("gate_against = main")
    suite.write(gate_tests("same"))
    suite.run("--gate-save", "x").assert_outcomes(passed=1)
    assert models(suite) == []


def test_it_says_what_it_measures_and_how_long_that_takes_past_the_capture(suite: Suite) -> None:
    suite.write(gate_tests("same", "slow"))
    assert re.search(
        r"training gate: measuring 2 cells against main, at most 18 blocks each, about \d+ min \d+ s if all",
        text_of(suite.against()),
    )


def test_an_interrupted_measurement_ends_the_session_with_130(suite: Suite) -> None:
    suite.planted.interrupted = True
    suite.write(gate_tests("same"))
    result = suite.against()
    assert int(result.ret) == 130
    assert "go on with" in text_of(result)


def test_strict_markers_know_the_mark(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    suite.run("--strict-markers").assert_outcomes(skipped=1)
    assert "@pytest.mark.training_gate(**keys): fail when" in text_of(suite.run("--markers"))


def test_loading_the_plugin_imports_nothing_of_weight() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import harness.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plugin = {f"harness.pytest_plugin{name}" for name in ("", ".options", ".undecided")}
    light = {"harness", "harness.looks", "harness.version", *plugin}
    assert set(done.stdout.split()) <= light


def test_a_step_of_the_users_own_is_a_cell_by_its_function_alone(suite: Suite) -> None:
    suite.write(
        "import pytest\n@pytest.mark.training_gate(step='steps:slow', examples=48, window=0.05)\ndef test_it(): pass\n"
    )
    result = suite.against()
    result.assert_outcomes(failed=1)
    [(a, b)] = suite.planted.decided
    assert a.cell == b.cell == OwnStepCell(step="steps:slow", amount=48)
    assert (a.revision, b.revision, a.sweep.window) == ("main", None, 0.05)
    assert "steps:slow: slower by" in text_of(result)
    assert "again    python -m pytest test_gate.py::test_it --gate-against main --gate-max-blocks 18" in text_of(result)


def test_a_step_that_counts_in_tokens_says_so_in_its_verdict(suite: Suite) -> None:
    suite.write(
        "import pytest\n@pytest.mark.training_gate(step='steps:slow', quantity='tokens', amount=4096)\n"
        "def test_it(): pass\n"
    )
    result = suite.against()
    result.assert_outcomes(failed=1)
    [(_, b)] = suite.planted.decided
    assert b.cell == OwnStepCell(step="steps:slow", quantity="tokens", amount=4096)
    assert "CPU time a token" in text_of(result)
    assert "processor time a token" in text_of(result)
    assert "example" not in text_of(result)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("quantity='tokens', examples=8", "examples: given beside quantity 'tokens'; give amount"),
        ("amount=8, examples=8", "amount: given beside examples"),
        ("quantity='Tok ens', amount=8", "quantity: given 'Tok ens', expected what work is counted in"),
        ("quantity='tokens', amount=0", "amount: given 0, expected greater than or equal to 1"),
    ],
)
def test_a_quantity_that_makes_no_sense_is_refused_at_collection(suite: Suite, keys: str, said: str) -> None:
    suite.write(f"import pytest\n@pytest.mark.training_gate(step='steps:slow', {keys})\ndef test_it(): pass\n")
    assert said in text_of(suite.against())


def test_a_step_of_the_users_own_can_be_saved_and_compared(suite: Suite) -> None:
    suite.write("import pytest\n@pytest.mark.training_gate(step='steps:slow')\ndef test_it(): pass\n")
    suite.run("--gate-save", "main").assert_outcomes(passed=1)
    suite.planted.later = True
    suite.run("--gate-baseline", "main").assert_outcomes(failed=1)


def test_a_skipped_gate_imports_nothing_that_measures_or_draws(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    (suite.pytester.path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    heavy = ('tensorflow', 'matplotlib', 'pandas', 'scipy', 'harness.analysis', 'harness.report')\n"
        "    assert not set(heavy) & set(sys.modules), set(heavy) & set(sys.modules)\n"
    )
    result = suite.pytester.runpytest_subprocess(*LOADED)
    result.assert_outcomes(skipped=1)
    assert result.ret == 0, text_of(result)


def test_a_step_beside_models_does_not_lengthen_their_names(suite: Suite) -> None:
    suite.write(gate_tests("same") + "@pytest.mark.training_gate(step='steps:slow')\ndef test_own(): pass\n")
    said = text_of(suite.against())
    assert re.search(r"test_same +none ×1 b64, steps:same +equivalent", said)
    assert re.search(r"test_own +steps:slow +slower", said)


def test_two_sides_of_one_commit_are_told_before_they_are_measured(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    told = "if all are needed; both sides are main, without changes"
    assert told not in text_of(suite.against())
    Repo(suite.pytester.path).commit({"note.txt": ""})
    assert told in text_of(suite.against())
    (suite.pytester.path / "steps.py").write_text("new = 1")
    assert told not in text_of(suite.against())
