"""`report`, `show`, `export`, `list`: each knows every kind of run by its entry, and no other verb's name for it."""

import csv
import io
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.api import load_cells
from harness.errors import UsageError
from harness.record.reading import list_runs, load_manifest, load_run
from harness.report.kinds import formats, presentation_of, presentations
from harness.run.kinds import run_kinds
from harness.run.kinds.published_table import import_table
from tests.comparisons import ab_run, stored, sweep_run
from tests.explained import explain_run
from tests.faulted import write_example
from tests.validations import Arm, Round, slow, validation_run

KEPT = Path(__file__).parents[2] / "results"
Harness = Callable[..., tuple[int, str, str]]
QUIET = [0.001, -0.001, 0.0005, -0.0005, 0.0008, -0.0008]
TABLE = "strategy,replicas,model,images_per_s\nmirrored,2,resnet20,100\n"


def _imported(results: Path) -> Path:
    table = results.parent / "table.csv"
    table.write_text(TABLE)
    return import_table(table, results)[0]


def _validated(results: Path) -> Path:
    planted = slow("device_work", 0.05, [value - 0.05 for value in QUIET])
    return stored(validation_run([Round([Arm(QUIET), planted])]), results)


EXAMPLES: dict[str, Callable[[Path], Path]] = {
    "sweep": lambda results: stored(sweep_run("swept"), results),
    "ab": lambda results: stored(ab_run([0.1, 0.11, 0.09]), results),
    "validation": _validated,
    "explain": lambda results: stored(explain_run(), results),
    "faults": write_example,
    "import": _imported,
}
"""A run of each kind, written to a folder of results; a kind without one fails its tests."""

each_kind = pytest.mark.parametrize("kind", sorted(presentations()))


@pytest.fixture
def path(kind: str, tmp_path: Path) -> Path:
    """A run of the kind."""
    return EXAMPLES[kind](tmp_path / "results")


def test_every_kind_that_can_be_measured_can_be_shown() -> None:
    assert set(run_kinds()) <= set(presentations())


@each_kind
def test_a_run_is_shown_as_its_kind_is(harness: Harness, kind: str, path: Path) -> None:
    assert load_manifest(path).kind == kind
    code, out, error = harness("show", "latest")
    assert (code, error) == (0, "")
    assert out.endswith("\n")
    code, out, error = harness("show", "latest", "--json")
    assert (code, error) == (0, "")
    assert isinstance(json.loads(out), dict)


@each_kind
def test_its_page_says_what_it_is_and_stands_in_the_index(harness: Harness, path: Path, tmp_path: Path) -> None:
    page = tmp_path / "reports" / "one.html"
    code, out, error = harness("report", "latest", "--output", str(page))
    assert (code, error) == (0, "")
    assert out.endswith(f"report: {page}\n")
    page_kind = presentation_of(load_manifest(path)).page_kind
    assert f'name="harness-kind" content="{page_kind}"' in page.read_text()
    index = (page.parent / "index.html").read_text()
    assert 'href="one.html"' in index
    assert f"<td>{page_kind}</td>" in index


@each_kind
def test_it_is_listed_in_one_line_below_the_heads(harness: Harness, kind: str, path: Path) -> None:
    code, out, error = harness("list")
    assert (code, error, out.count("\n")) == (0, "", 2)
    head, line, _ = out.split("\n")
    assert head.split("  ", 1)[0] == "run"
    assert [line[head.index(name) - 2 :][:2] for name in ("status", "recorded of planned, and cells")] == ["  ", "  "]
    [listing] = list_runs(path.parent)
    assert out.endswith(f"  {presentations()[kind].listed(listing)}\n")
    [row] = json.loads(harness("list", "--json")[1])
    assert row["kind"] == kind


@each_kind
def test_it_is_exported_in_the_formats_of_its_kind_and_refused_in_the_others(
    harness: Harness, kind: str, path: Path
) -> None:
    fitting = presentations()[kind].exporters()
    for name in {"csv", "cells", "json"} & set(fitting):
        code, out, _ = harness("export", "latest", "--format", name)
        assert code == 0
        assert out
    for name in set(formats()) - set(fitting):
        code, out, error = harness("export", "latest", "--format", name)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert path.name in error


@pytest.mark.parametrize(
    ("kind", "command"), [("ab", "compare {run} --format json"), ("validation", "show {run} --json")]
)
def test_a_run_of_sides_is_exported_by_side_only_and_names_what_has_its_figures(
    harness: Harness, kind: str, command: str, path: Path
) -> None:
    assert set(presentations()[kind].exporters()) == {"csv", "windows", "parquet", "windows-parquet"}
    rows = list(csv.DictReader(io.StringIO(harness("export", "latest")[1])))
    assert [row["side"] for row in rows] == [trial.side for trial in load_run(path).trials]
    error = harness("export", "latest", "--format", "cells")[2]
    command = "python -m harness " + command.format(run=path.name)
    assert error.endswith(f"or for figures `{command}`\n")
    assert harness(*shlex.split(command)[3:])[0] == 0
    with pytest.raises(UsageError, match=re.escape(f"no figure without their side; use `{command}`, or harness.load")):
        load_cells(path)


@each_kind
@pytest.mark.parametrize("flag", ["--base", "--overlay", "--with"])
def test_only_the_page_of_a_sweep_has_room_for_another_run(harness: Harness, kind: str, path: Path, flag: str) -> None:
    if not presentations()[kind].takes_base:
        code, _, error = harness("report", "latest", flag, path.name)
        assert code == 2
        assert f"{flag}: " in error
        assert "is no sweep; only sweeps are shown with another run" in error


@pytest.mark.parametrize("status", ["running", "interrupted"])
@pytest.mark.parametrize("name", ["csv", "json", "pytest-benchmark"])
def test_an_export_of_a_run_that_has_not_finished_says_how_much_of_it_there_is(
    harness: Harness, tmp_path: Path, status: str, name: str
) -> None:
    run = sweep_run("swept")
    planned = len(run.trials)
    open_run = replace(run, manifest=run.manifest.model_copy(update={"status": status}), trials=run.trials[:-6])
    stored(open_run, tmp_path / "results")
    code, out, error = harness("export", "swept", "--format", name)
    assert (code, error) == (0, f"not finished: {planned - 6} of {planned} trials\n")
    assert out
    stored(sweep_run("whole"), tmp_path / "results")
    assert harness("export", "whole", "--format", name)[2] == ""


def test_limits_are_exported_beside_what_the_results_folder_that_is_named_has(harness: Harness) -> None:
    """Of a run one folder deeper."""
    command = ("export", str(KEPT / "h100" / "engines"), "--format", "limits", "--results")
    first, *_ = csv.DictReader(io.StringIO(harness(*command, str(KEPT))[1]))
    assert float(first["limit_flop_per_s"]) > 1e12
    first, *_ = csv.DictReader(io.StringIO(harness(*command, "elsewhere")[1]))
    assert first["limit_flop_per_s"] == ""


@pytest.mark.parametrize("name", ["reference", "explained"])
@pytest.mark.parametrize("verb", ["show", "report"])
def test_damaged_limits_of_the_machine_cost_a_line_on_standard_error_and_nothing_else(
    harness: Harness, tmp_path: Path, name: str, verb: str
) -> None:
    run, kept = str(KEPT / name), tmp_path / "kept"
    kept.mkdir()
    damaged = kept / f"limits-{load_manifest(KEPT / name).facts['machine.id']}-20261126T011117Z.json"
    damaged.write_text('{"schema_version": 1')
    code, out, error = harness(verb, run, "--results", str(kept))
    assert (code, error.count("\n")) == (0, 1)
    assert error.startswith(f"harness: {damaged}: not valid JSON (")
    assert error.endswith("; remove it, or measure anew with doctor --limits --again; it is passed over here\n")
    damaged.unlink()
    assert harness(verb, run, "--results", str(kept)) == (0, out, "")


def test_a_page_has_a_section_of_each_run_that_is_named_and_says_which_run_that_is(harness: Harness) -> None:
    others = [word for name in ("explained", "collectives") for word in ("--with", str(KEPT / name))]
    code, out, error = harness("report", str(KEPT / "reference"), *others)
    assert (code, error) == (0, "")
    page = Path(out.removeprefix("report: ").strip()).read_text()
    headings = re.findall("<h2[^>]*>(.*?)</h2>", page)
    at = headings.index("Where a step&#39;s time goes")
    assert headings[at : at + 2] == ["Where a step&#39;s time goes", "Collectives"]
    assert len(re.findall("Of run [^ ]+, measured [^<]* UTC", page)) == 2
    assert len(re.findall(' id="([^"]+)"', page)) == len(set(re.findall(' id="([^"]+)"', page)))


def test_a_run_of_another_machine_one_that_is_named_twice_and_one_without_a_section_get_none(
    harness: Harness, tmp_path: Path
) -> None:
    stored(sweep_run("elsewhere"), tmp_path / "results")
    sweep, explained = str(KEPT / "reference"), str(KEPT / "explained")
    for names, words in (
        (["elsewhere"], "was measured on another machine"),
        ([explained, explained], "is given twice"),
        ([sweep], "has no section for another page, expected explain or collectives"),
    ):
        code, _, error = harness("report", sweep, *(word for name in names for word in ("--with", name)))
        assert (code, error.count("\n")) == (2, 1)
        assert error.startswith("harness: --with: ")
        assert words in error


def test_a_run_of_a_kind_that_this_harness_lacks_is_listed_and_named(harness: Harness, tmp_path: Path) -> None:
    path = stored(sweep_run("swept"), tmp_path / "results")
    text = json.loads((path / "run.json").read_text())
    text["extension"] = {"name": "weather", "unit": "days", "plan": {"days": 3}}
    (path / "run.json").write_text(json.dumps(text))
    assert "a run of weather" in harness("list")[1]
    for verb in ("show", "report", "export"):
        code, out, error = harness(verb, "swept")
        assert (code, out) == (2, "")
        assert "is a run of the kind 'weather', which this harness lacks" in error
