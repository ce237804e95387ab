"""The gate beside pytest-benchmark and others in one suite."""

import re

import pytest

from tests.pytest_plugin.conftest import INSTALLED, Suite, gate_tests, text_of

pytest_plugins = ["pytester"]
BENCHMARK = "\ndef test_benchmark(benchmark):\n    benchmark(sum, [1, 2])\n"
ONCE = ("--benchmark-min-rounds", "1", "--benchmark-max-time", "0.01", "--benchmark-storage", "store")


def test_a_suite_saves_compares_and_gates_at_once(suite: Suite) -> None:
    suite.write(gate_tests("same") + BENCHMARK)
    suite.run(*ONCE, "--benchmark-save", "before").assert_outcomes(passed=1, skipped=1)
    result = suite.against(*ONCE, "--benchmark-compare", "--gate-delta", "2%")
    result.assert_outcomes(passed=2)
    said = text_of(result)
    assert "test_benchmark (NOW)" in said
    assert re.search(r"test_gate.py::test_same +none ×1 b64, steps:same +equivalent", said)


def test_benchmarks_that_regressed_still_fail_by_their_own_rule(suite: Suite) -> None:
    suite.write(gate_tests("same") + BENCHMARK)
    suite.run(*ONCE, "--benchmark-save", "before")
    result = suite.against(*ONCE, "--benchmark-compare", "--benchmark-compare-fail", "min:0.000000000001")
    assert "training gate" in text_of(result)
    assert "test_benchmark (NOW)" in text_of(result)


def test_disabled_benchmarks_are_proved_and_not_timed(suite: Suite) -> None:
    suite.write(gate_tests("same", "slow") + BENCHMARK)
    result = suite.against("--benchmark-disable")
    result.assert_outcomes(passed=3)
    assert suite.planted.decided == []
    [(sweep, cells)] = suite.planted.measured
    assert (sweep.trials, sweep.windows, sweep.max_warmup, len(cells)) == (1, 5, 0, 2)
    assert "training gate: 2 cells proved, not timed" in text_of(result)


def test_a_wrong_result_fails_though_benchmarks_are_disabled(suite: Suite) -> None:
    suite.write(gate_tests("wrong"))
    suite.against("--benchmark-disable").assert_outcomes(failed=1)


def test_disabled_benchmarks_without_a_gate_cost_nothing(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    suite.run("--benchmark-disable").assert_outcomes(skipped=1)
    assert suite.planted.measured == []


@pytest.mark.parametrize("option", ["--benchmark-skip", "--benchmark-only"])
def test_options_that_leave_gate_tests_out_leave_their_measurement_out(suite: Suite, option: str) -> None:
    suite.write(gate_tests("same") + BENCHMARK)
    result = suite.against(option, "-rs", *ONCE)
    assert re.search(
        r"SKIPPED.*test_gate.py.*-benchmark \(--benchmark-only|SKIPPED.*\(--benchmark-skip\)", text_of(result)
    )
    assert suite.planted.decided == []


def test_without_pytest_benchmark_the_gate_works_alone(suite: Suite) -> None:
    suite.write(gate_tests("slow"))
    suite.against("-p", "no:benchmark").assert_outcomes(failed=1)


def test_workers_of_xdist_skip_with_the_reason(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    suite.write(gate_tests("same"))
    result = suite.against("-rs")
    result.assert_outcomes(skipped=1)
    assert "run these tests without -n" in text_of(result)


@pytest.mark.skipif(not INSTALLED, reason="this checkout was installed before the plugin's entry point was there")
def test_an_installed_plugin_is_there_without_being_named_and_can_be_turned_off(suite: Suite) -> None:
    suite.write(gate_tests("same"))
    assert "--gate-against" in text_of(suite.pytester.runpytest_subprocess("--help"))
    off = suite.pytester.runpytest_subprocess("-p", "no:harness", "--help")
    assert off.ret == 0
    assert "--gate-against" not in text_of(off)


def test_no_option_or_ini_key_is_another_plugins(suite: Suite) -> None:
    suite.write("def test_it(): pass\n")
    (suite.pytester.path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n"
        "    for name in ('--results', '--spec', '--against', '--baseline', '--save', '--delta'):\n"
        "        parser.addoption(name)\n"
    )
    suite.run("--results", "r").assert_outcomes(passed=1)
