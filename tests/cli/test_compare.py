"""`compare` on the command line: formats, exit codes, refusals, and `show` and `report` of an `ab` run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.record.validation import write_validation
from tests.comparisons import MIRRORED, ab_run, stored, sweep_run, validation
from tests.synthetic import make_cell

Harness = Callable[..., tuple[int, str, str]]
SLOWER = [-0.06, -0.062, -0.058, -0.061]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Runs `a`, `same` and `slow`, and the `ab` run `decided`."""
    folder = tmp_path / "results"
    for made in (
        sweep_run("a", seed=1),
        sweep_run("same", seed=2, manifest={"created_utc": "2026-11-22T01:23:45Z"}),
        sweep_run("slow", seed=3, wall=1.06),
        ab_run(SLOWER, run_id="decided"),
    ):
        stored(made, folder)
    return folder


def fault(harness: Harness, arguments: str, code: int, *says: str) -> None:
    """The error is one line, nothing is printed, and the exit code is `code`."""
    ended, out, error = harness("compare", *arguments.split())
    assert (ended, out, error.count("\n")) == (code, "", 1)
    assert "Traceback" not in error
    for text in says:
        assert text in error


def test_exit_codes_tell_slower_from_not_slower(harness: Harness, results: Path) -> None:
    assert results.is_dir()
    code, out, error = harness("compare", "a", "slow")
    assert (code, error) == (1, "")
    assert "slower by 5." in out
    assert harness("compare", "slow", "a")[0] == 0
    assert harness("compare", "a", "same")[0] == 0


def test_an_undecided_comparison_is_exit_code_three_only_when_strict(harness: Harness, results: Path) -> None:
    for name, seed in (("one", 4), ("two", 5)):
        stored(sweep_run(name, seed=seed, blocks=1), results)
    assert harness("compare", "one", "two")[0] == 0
    code, out, _ = harness("compare", "one", "two", "--strict")
    assert code == 3
    assert "cannot be known" in " ".join(out.split())


def test_latest_and_paths_are_runs_too(harness: Harness, results: Path) -> None:
    code, out, _ = harness("compare", str(results / "a"), "latest")
    assert code == 0
    assert "B is run same" in out


@pytest.mark.parametrize("flags", [("--json",), ("--format", "json"), ("--json", "--format", "json")])
def test_json_is_one_object_on_standard_output(harness: Harness, results: Path, flags: tuple[str, ...]) -> None:
    assert results.is_dir()
    code, out, _ = harness("compare", "a", "slow", *flags)
    assert code == 1
    assert json.loads(out)["verdict"] == "slower"


@pytest.mark.parametrize(
    ("name", "begins"),
    [("c.md", "**2 slower**"), ("c.html", "<!doctype html>"), ("c.json", "{"), ("c.txt", "A is run")],
)
def test_a_file_is_written_in_the_format_that_its_name_asks_for(
    harness: Harness, results: Path, name: str, begins: str
) -> None:
    assert results.is_dir()
    code, out, _ = harness("compare", "a", "slow", "--output", f"new/{name}")
    assert code == 1
    assert Path("new", name).read_text(encoding="utf-8").startswith(begins)
    assert "\n2 slower\n" in out
    assert f"comparison: new/{name}" in out


def test_a_format_that_is_named_goes_before_the_files_name(harness: Harness, results: Path) -> None:
    assert results.is_dir()
    harness("compare", "a", "slow", "--format", "markdown", "--output", "comment.txt")
    assert Path("comment.txt").read_text(encoding="utf-8").startswith("**2 slower**")


def test_the_cells_of_one_run_are_compared_along_an_axis(harness: Harness, results: Path) -> None:
    stored(sweep_run("ops", [make_cell("mirrored", 2, op=op) for op in ("nccl", "auto")], drift=0.3), results)
    code, out, _ = harness("compare", "ops", "--along", "cross_device_op", "--json")
    [row] = json.loads(out)["rows"]
    assert code == 0
    assert (row["name"], row["method"]) == ("mirrored ×2 b32: cross_device_op auto → nccl", "moderated t")
    [row] = json.loads(harness("compare", "ops", "--along", "cross-device-op", "--base", "nccl", "--json")[1])["rows"]
    assert row["name"].endswith("nccl → auto")


def test_a_base_is_known_by_the_spelling_that_the_user_gave_it(harness: Harness, results: Path) -> None:
    cells = [make_cell(optimizer=name) for name in ("adam", "adamw(clipnorm=1.0)")]
    stored(sweep_run("spelt", cells), results)
    _, out, error = harness("compare", "spelt", "--along", "optimizer", "--base", "adamw(clipnorm=1)", "--json")
    [row] = json.loads(out)["rows"]
    assert (row["name"], error) == ("none ×1 b32: optimizer adamw(clipnorm=1.0) → adam", "")


def test_the_noise_floor_of_this_machine_becomes_delta_and_is_cited(harness: Harness, results: Path) -> None:
    _, before, _ = harness("compare", "a", "same")
    assert "python -m harness validate" in " ".join(before.split())
    (results / "validation-run").mkdir()
    write_validation(results / "validation-run", validation(paired=0.012, unpaired=0.08))
    whole = json.loads(harness("compare", "a", "slow", "--json")[1])
    assert (whole["delta"], whole["epsilon"], whole["validation"]) == (0.08, 0.08, "validation-run")
    assert whole["verdict"] == "equivalent"  # 6 % is within what this machine does by itself
    assert "noise floor that validate measured" in whole["margins_source"]
    assert json.loads(harness("compare", "a", "slow", "--delta", "1%", "--json")[1])["verdict"] == "slower"


def test_a_floor_that_nothing_could_pass_is_said_with_a_flag_that_there_is(harness: Harness, results: Path) -> None:
    (results / "validation-run").mkdir()
    write_validation(results / "validation-run", validation(paired=1.2, unpaired=1.2))
    fault(harness, "a slow", 2, "is 120%: validate it again while it is idle, or give --delta\n")
    code, out, error = harness("report", "slow", "--base", "a")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert error.endswith("is 120%: validate it again while it is idle, or give compare a --delta\n")
    assert harness("compare", "a", "slow", "--delta", "1%")[0] == 1


def test_the_floor_of_another_machine_is_not_used(harness: Harness, results: Path) -> None:
    (results / "validation-run").mkdir()
    write_validation(results / "validation-run", validation(unpaired=0.08, machine_id="ba9876543210"))
    whole = json.loads(harness("compare", "a", "slow", "--json")[1])
    assert (whole["delta"], whole["validation"]) == (0.01, None)


def test_different_machines_are_refused_in_one_line_and_compared_when_asked(harness: Harness, results: Path) -> None:
    stored(sweep_run("elsewhere", seed=2, facts={"cpu.model": "Another CPU", "machine.id": "ba9876543210"}), results)
    fault(harness, "a elsewhere", 4, "cpu.model: Synthetic CPU → Another CPU", "--across-machines")
    code, out, _ = harness("compare", "a", "elsewhere", "--across-machines")
    assert code == 0
    assert out.index("cpu.model: Synthetic CPU → Another CPU") < out.index("equivalent")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("a", "RUN_B: expected a second run, or --along AXIS"),
        ("a same --along replicas", "--along: compares cells of one run; it takes no RUN_B"),
        ("a same --base 2", "--base: is a value of the axis that --along names"),
        ("a a", "'a' is the same run as RUN_A"),
        ("a nothing", "RUN: no run 'nothing'"),
        ("a same --along", "--along"),
        ("a --along replica", "did you mean 'replicas'?"),
        ("a --along model", "--along: model has only one value in this run: mnist_cnn"),
        ("a --along replicas --base 7", "--base: '7' is not one of"),
        ("a same --delta one", "--delta: given 'one', expected a share such as 0.01 or 1%"),
        ("a same --delta 5% --epsilon 3%", "epsilon: given 0.03, expected at least delta"),
        ("a same --correction bonferroni", "--correction: 'bonferroni' is not one of fdr, holm, none"),
        ("a same --format pdf", "--format: 'pdf' is not one of terminal, markdown, json, html"),
        ("a same --json --format html", "--json: is --format json, but --format html is given"),
        ("a decided", "'decided' is an `ab` run"),
        ("decided --along replicas", "'decided' is an `ab` run"),
        ("", "RUN_A"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(harness: Harness, results: Path, arguments: str, says: str) -> None:
    assert results.is_dir()
    fault(harness, arguments, 2, says)


def test_runs_that_are_empty_have_nothing_in_common_or_cannot_be_read_are_exit_code_four(
    harness: Harness, results: Path
) -> None:
    stored(replace(sweep_run("empty"), trials=[]), results)
    stored(sweep_run("other", [make_cell(model="mlp")]), results)
    fault(harness, "a empty", 4, "empty' holds no trial yet", "--resume empty")
    fault(harness, "a other", 4, "no cell in common", "model is mnist_cnn in A and mlp in B")
    (results / "other" / "run.json").write_text("{}")
    fault(harness, f"a {results / 'other'}", 4, "run.json")


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('"step_time_s":', '"step_time_s":-', "step_time_s"),
        ('"schema_version":1', '"schema_version":0', "schema_version"),
        ('"schema_version":1', '"schema_version":9', "newer version of the harness"),
        ('"status":"ok"', '"status":"fine"', "status"),
        ('"throughput_examples_per_s":', '"throughput_examples_per_s":NaN,"x":', "trials.jsonl:1"),
        ('"step_time_s":', '"step_time_s":1', "the record was edited"),
    ],
)
def test_an_edited_or_old_record_is_one_line_and_never_a_verdict(
    harness: Harness, results: Path, was: str, becomes: str, says: str
) -> None:
    trials = results / "same" / "trials.jsonl"
    first, rest = trials.read_text().split("\n", 1)
    assert was in first
    trials.write_text(first.replace(was, becomes, 1) + "\n" + rest)
    fault(harness, "a same", 4, says)


def test_a_record_that_stands_twice_is_not_counted_twice(harness: Harness, results: Path) -> None:
    trials = results / "same" / "trials.jsonl"
    trials.write_text(trials.read_text() * 2)
    fault(harness, "a same", 4, "record: repeats line 1: remove one of the two")


def test_an_ab_run_alone_shows_its_verdict_again(harness: Harness, results: Path) -> None:
    assert results.is_dir()
    code, out, _ = harness("compare", "decided", "--json")
    whole = json.loads(out)
    assert code == 1
    assert (whole["kind"], whole["blocks"], whole["verdict"]) == ("ab", 4, "slower")
    wide = json.loads(harness("compare", "decided", "--delta", "10%", "--json")[1])
    assert (wide["verdict"], wide["delta"]) == ("equivalent", 0.1)
    assert any("chosen after it was measured" in remark for remark in wide["remarks"])


def test_show_and_report_of_an_ab_run_are_its_comparison(harness: Harness, results: Path) -> None:
    assert results.is_dir()
    code, out, error = harness("show", "decided")
    assert (code, error) == (0, "")
    assert "slower by 5.8 %" in out
    assert json.loads(harness("show", "decided", "--json")[1])["kind"] == "ab"
    code, out, error = harness("report", "decided")
    assert (code, error) == (0, "")
    assert "report: reports/decided.html" in out
    assert "B against A" in Path("reports/decided.html").read_text(encoding="utf-8")


def test_show_says_the_answer_of_a_sweep_and_report_where_its_page_is(harness: Harness, results: Path) -> None:
    assert results.is_dir()
    _, out, _ = harness("show", "a")
    assert MIRRORED.label in out
    assert "× no strategy" in out
    assert "Fastest: " in out
    assert harness("report", "a")[1] == "report: reports/a.html\n"


def test_a_place_that_cannot_be_written_is_exit_code_four(harness: Harness, results: Path) -> None:
    fault(harness, f"a same --output {results}", 4, "it is a folder")


def test_help_says_what_the_exit_codes_and_verdicts_are(harness: Harness) -> None:
    code, out, _ = harness("compare", "--help")
    said = " ".join(out.replace("│", " ").split())
    assert code == 0
    for text in ("undecided or invalid", "1 something is slower", "--across-machines", "--correction", "RUN_A"):
        assert text in said
