"""Each format is read back by the tool that it is for."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asv.benchmarks
import asv.config
import asv.results
import cmarkgfm
import pytest

from benchmarks.suite import read_spec
from harness import cli
from harness.analysis import summarise
from harness.errors import HarnessError, StorageError
from harness.record.reading import load_manifest
from harness.report.export import exporters
from harness.report.export.as_markdown import LARGEST
from harness.report.export.base import alone_in, write_folder
from harness.report.words.names import names_of
from harness.spec.axes import TABLE
from harness.spec.expand import expand
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of
from tests.comparisons import sweep_run
from tests.report.export.runs import COMMIT, REFERENCE, ROOT, synthetic
from tests.synthetic import default_cells, make_cell


@pytest.fixture(scope="module")
def run() -> SimpleNamespace:
    return synthetic()


def measured(run: SimpleNamespace) -> dict[str, float]:
    """Seconds a step of every cell with a throughput, by cell id."""
    cells = summarise(run.manifest, run.trials).cells
    return {cell.cell_id: cell.measured.step_time_s.value for cell in cells if cell.measured}


def run_tool(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_names_are_the_same_whatever_else_is_measured_and_no_two_cells_share_one() -> None:
    cells = [
        *default_cells(),
        make_cell("mirrored", 2, precision="mixed_bfloat16"),
        make_cell(xla=True),
        make_cell(optimizer="sgd"),
        make_cell(loop="fit"),
        make_cell(batch_scope="global"),
    ]
    names = [cell.full_name for cell in cells]
    assert len(set(names)) == len(cells)
    assert names[0] == cells[0].full_name


def one_key_apart() -> list[Cell]:
    """Cells of which each differs from the first in one key that a sweep can vary, beside those that follow from it."""
    first = make_cell("parameter_server", 1, workers=2, ps=1)
    others = {
        "device": "gpu",
        "strategy": "mirrored",
        "replicas": 2,
        "workers": 3,
        "batch_size": 64,
        "batch_scope": "global",
        "cross_device_op": "nccl",
        "packing": "num_packs=2",
        "model": "mlp",
        "data": "synthetic",
        "precision": "mixed_bfloat16",
        "xla": True,
        "optimizer": "sgd",
        "loop": "fit",
        "ps": 2,
        "partitioner": "max_size",
        "updates": "keras",
        "network": "rate=1gbit",
        "mesh": "batch:2",
        "intra_op_threads": 2,
        "prefetch": 0,
    }
    others |= {key: axis.tried[1] for key, axis in TABLE.items() if key not in others}
    return [first, *(first.model_copy(update={key: value}) for key, value in others.items())]


def test_cells_that_differ_in_any_one_key_have_names_of_their_own_in_every_format() -> None:
    cells = one_key_apart()
    for pair in ([cells[0], cell] for cell in cells[1:]):
        assert len(set(names_of(pair))) == 2, pair[1]
        assert len({cell.full_name for cell in pair}) == 2, pair[1]
    assert len(set(names_of(cells))) == len(cells)


def test_names_that_run_into_one_another_are_told_apart_by_the_cells_ids() -> None:
    cells = [make_cell(model="a:b"), make_cell(model="a.b"), make_cell(model="c")]
    first, second, third = names_of(cells)
    assert (first, second) == (f"none-1x32-model=a.b-{cells[0].cell_id}", f"none-1x32-model=a.b-{cells[1].cell_id}")
    assert third == "none-1x32-model=c"


def test_a_cell_is_called_the_same_whatever_is_measured_beside_it() -> None:
    cells = one_key_apart()
    together = names_of(cells)
    assert together == [names_of([cell])[0] for cell in cells]
    assert together[0] == "parameter_server-1x32-workers=2-ps=1"
    assert "parameter_server-1x32-workers=2-precision=mixed_bfloat16-ps=1" in together
    collectives = load_manifest(ROOT / "results" / "collectives").cells
    assert names_of(collectives) == [cell.short_name for cell in collectives]


def test_pytest_benchmark_compares_two_exports(run: SimpleNamespace, tmp_path: Path) -> None:
    storage = tmp_path / ".benchmarks" / "Linux-CPython-3.11-64bit"
    exporters()["pytest-benchmark"].export(run, storage / "0001_main.json")
    exporters()["pytest-benchmark"].export(synthetic(seed=2), storage / "0002_change.json")
    tool = (sys.executable, "-m", "pytest_benchmark", "--storage", str(storage.parent))
    said = run_tool(*tool, "compare", "0001", "0002", "--columns", "mean,stddev,rounds", folder=tmp_path)
    assert said.count("test_step[") >= 2 * len(measured(run))
    assert "0001_main" in said
    assert "0002_change" in said


def test_pytest_benchmark_holds_a_run_of_the_suite_against_an_export(run: SimpleNamespace, tmp_path: Path) -> None:
    name = names_of([cell.trials.cell for cell in summarise(run.manifest, run.trials).cells])[0]
    exporters()["pytest-benchmark"].export(run, tmp_path / "earlier.json")
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "bench_cells.py").write_text(
        "import pytest\n"
        f"@pytest.mark.parametrize('cell', [{name!r}])\n"
        "def test_step(benchmark, cell):\n"
        "    benchmark.group = 'mnist_cnn'\n"
        "    benchmark.pedantic(lambda: None, rounds=3)\n"
    )
    tool = (sys.executable, "-m", "pytest", "benchmarks/bench_cells.py", "-p", "no:cacheprovider", "-p", "no:harness")
    said = run_tool(*tool, "--benchmark-compare=earlier.json", "--benchmark-columns=mean", folder=tmp_path)
    assert f"test_step[{name}] (NOW)" in said
    assert f"test_step[{name}] (earlie" in said


def test_an_export_of_the_suites_spec_has_the_names_of_the_suites_tests() -> None:
    sweep, tests = read_spec(ROOT / "benchmarks" / "suite.toml")
    matrix = expand(sweep, catalogue_of())
    added = sorted(matrix.added_base)
    measured = sweep_run("suite", matrix.cells, faults=False, manifest={"base_cell_ids": added})
    document = json.loads(exporters()["pytest-benchmark"].export(measured, None) or "")
    names = [benchmark["name"] for benchmark in document["benchmarks"]]
    assert {f"test_step[{name}]" for name in tests} < set(names)
    assert len(set(names)) == len(names) == len(tests) + len(added)


def test_statistics_of_pytest_benchmark_are_of_the_measured_windows(run: SimpleNamespace) -> None:
    document = json.loads(exporters()["pytest-benchmark"].export(run, None) or "")
    first = document["benchmarks"][0]
    cell_id = first["extra_info"]["cell_id"]
    windows = [
        seconds / trial.windows.steps_per_window
        for trial in run.trials
        if trial.cell_id == cell_id and trial.status == "ok"
        for seconds in trial.windows.seconds[trial.windows.measured_from :]
    ]
    assert first["stats"]["data"] == windows
    assert first["stats"]["rounds"] == len(windows)
    assert min(windows) == first["stats"]["min"]


@pytest.mark.parametrize(
    ("name", "unit"), [("github-action-bigger", "examples/s"), ("github-action-smaller", "s/step")]
)
def test_the_action_gets_an_array_of_entries_as_its_readme_asks(run: SimpleNamespace, name: str, unit: str) -> None:
    """The action is in no package registry, so this holds it against what is known of it.

    Its parser takes JSON, keeps these five keys of an entry, and reads a range as a number of two characters or more
    after ±; its README says the rest (customBiggerIsBetter, customSmallerIsBetter).
    """
    entries = json.loads(exporters()[name].export(run, None) or "", parse_constant=pytest.fail)
    assert len(entries) == len(measured(run))
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        assert set(entry) <= {"name", "unit", "value", "range", "extra"}
        assert isinstance(entry["name"], str)
        assert entry["unit"] == unit
        assert isinstance(entry["value"], float)
        # what the action reads as the range: a number after ±, in the unit of the value
        assert re.fullmatch(r"±\s*\d.+", entry["range"])
        assert 0 < float(entry["range"].removeprefix("± ")) < entry["value"]
        assert isinstance(entry["extra"], str)


def test_nothing_measured_is_an_error_and_no_empty_file(tmp_path: Path) -> None:
    cells = [make_cell("tpu", 1)]
    for name in ("github-action-bigger", "github-action-smaller", "pytest-benchmark"):
        with pytest.raises(HarnessError, match=r"no cell of .* has a throughput"):
            exporters()[name].export(synthetic(cells=cells), tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


def test_cells_that_these_formats_have_no_place_for_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(REFERENCE), "--format", "github-action-bigger", "--output", str(tmp_path / "x.json")]
    assert cli.run(command) == 0
    assert "left out, without a throughput: 12 cells; --format csv says why" in capsys.readouterr().err


def asv_project(folder: Path) -> tuple[Path, str]:
    """A git repository with one commit and an asv configuration; its path and the commit."""
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.com")
    folder.mkdir()
    run_tool("git", "init", "-q", "-b", "main", folder=folder)
    (folder / "asv.conf.json").write_text(
        json.dumps(
            {
                "version": 1,
                "project": "harness",
                "repo": ".",
                "branches": ["main"],
                "results_dir": "results",
                "html_dir": "html",
                "environment_type": "existing",
            }
        )
    )
    run_tool(*git, "add", ".", folder=folder)
    run_tool(*git, "commit", "-qm", "first", folder=folder)
    return folder, run_tool("git", "rev-parse", "HEAD", folder=folder).strip()


def with_facts(run: SimpleNamespace, told: dict[str, str]) -> SimpleNamespace:
    machine = run.manifest.machine
    machine = machine.model_copy(update={"facts": {**machine.facts, **told}})
    return SimpleNamespace(
        manifest=run.manifest.model_copy(update={"machine": machine}), trials=run.trials, rank_unproved=False
    )


def at_commit(run: SimpleNamespace, commit: str) -> SimpleNamespace:
    return with_facts(run, {"git.revision": commit})


def test_asv_loads_the_results_with_what_failed_and_what_is_not_applicable(
    run: SimpleNamespace, tmp_path: Path
) -> None:
    exporters()["asv"].export(run, tmp_path)
    [loaded] = list(asv.results.iter_results(str(tmp_path)))
    assert loaded.commit_hash == COMMIT
    assert loaded.params["machine"] == "machine-abc123"
    config = asv.config.Config.from_json({"project": "x", "repo": ".", "results_dir": str(tmp_path)})
    known = asv.benchmarks.Benchmarks.load(config)
    values = {key: loaded.get_result_value(key, []) for key in loaded.get_result_keys(known)}
    assert len(values) == 2 * len(run.manifest.cells)
    steps = [value[0] for key, value in values.items() if key.endswith(".step_time")]
    assert sorted(v for v in steps if v is not None and v == v) == pytest.approx(sorted(measured(run).values()))
    assert any(value is None for value in steps), "a wrong result is a failed benchmark"
    assert any(value is not None and value != value for value in steps), "what cannot run here is n/a"
    key = next(key for key, value in values.items() if key.endswith(".step_time") and value[0] and value[0] == value[0])
    [stats] = loaded.get_result_stats(key, [])
    assert stats["ci_99_a"] < values[key][0] < stats["ci_99_b"]
    assert stats["repeat"] == len(loaded.get_result_samples(key, [])[0])


def test_a_second_export_adds_to_the_folder_and_keeps_other_cells_of_the_commit(tmp_path: Path) -> None:
    exporters()["asv"].export(synthetic(cells=[make_cell()], faults=False), tmp_path)
    exporters()["asv"].export(synthetic(cells=[make_cell("mirrored", 2)], faults=False), tmp_path)
    [loaded] = list(asv.results.iter_results(str(tmp_path)))
    assert len(loaded.get_all_result_keys()) == 4


@pytest.mark.parametrize("many", [0, 20])
def test_results_of_another_version_of_an_engine_are_another_environments_to_asv(tmp_path: Path, many: int) -> None:
    beside = {f"engine.jax.package{number}": "1.0.0" for number in range(many)}
    for version in ("2.12.0", "2.13.0"):
        run = with_facts(synthetic(cells=[make_cell()], faults=False), {"engine.torch.torch": version, **beside})
        exporters()["asv"].export(run, tmp_path)
    loaded = list(asv.results.iter_results(str(tmp_path)))
    assert sorted(one.params["torch.torch"] for one in loaded) == ["2.12.0", "2.13.0"]
    assert len({one.env_name for one in loaded}) == 2
    written = {path.name for path in (tmp_path / "machine-abc123").iterdir()} - {"machine.json"}
    assert written == {Path(asv.results.get_filename("", COMMIT, one.env_name)).name for one in loaded}


def test_what_a_foreign_run_is_called_leads_out_of_no_folder(tmp_path: Path) -> None:
    run = at_commit(synthetic(blocks=1), "x/../../out")
    run.manifest.machine.facts["machine.id"] = "x/../../out"
    exporters()["asv"].export(run, tmp_path / "below" / "results")
    assert {path.name for path in tmp_path.iterdir()} == {"below"}
    assert {path.name for path in (tmp_path / "below").iterdir()} == {"results"}
    for name in ("../out", "a/../../out", "/out"):
        with pytest.raises(StorageError, match=rf"cannot write '{name}' in .*: the name leads out of that folder"):
            write_folder(tmp_path, {"in": b"", name: b""})
    assert {path.name for path in tmp_path.iterdir()} == {"below"}


def test_two_cells_whose_names_look_alike_to_asv_and_tensorboard_are_both_there(tmp_path: Path) -> None:
    run = synthetic(
        cells=[make_cell(model="mine:a_b"), make_cell(model="mine.a_b"), make_cell()], blocks=2, faults=False
    )
    exporters()["asv"].export(run, tmp_path / "asv")
    [loaded] = list(asv.results.iter_results(str(tmp_path / "asv")))
    assert len(loaded.get_all_result_keys()) == 2 * 3
    exporters()["tensorboard"].export(run, tmp_path / "logs")
    assert len(list((tmp_path / "logs").rglob("block-*/events*"))) == len(run.trials)


@pytest.mark.parametrize("results", [[], None, "text"])
def test_an_asv_file_of_another_form_is_refused_in_one_line(tmp_path: Path, results: object) -> None:
    exporters()["asv"].export(synthetic(blocks=1), tmp_path)
    [file] = (tmp_path / "machine-abc123").glob("0123*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "results": results}))
    with pytest.raises(StorageError, match=rf"'{file}' is not asv's \(version 2\); name another folder"):
        exporters()["asv"].export(synthetic(blocks=1), tmp_path)


def test_of_two_asv_exports_at_once_the_second_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.export.base.PATIENCE_S", 0.1)
    with (
        alone_in(tmp_path / "results"),
        pytest.raises(StorageError, match=r"is being written by another export for 0\.1 s; wait for its end"),
    ):
        exporters()["asv"].export(synthetic(blocks=1), tmp_path / "results")
    exporters()["asv"].export(synthetic(blocks=1), tmp_path / "results")


def test_a_folder_that_may_be_written_and_not_read_is_a_storage_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def denied(path: Any, *arguments: Any, **more: Any) -> int:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", denied)
    said = f"cannot write '{tmp_path}': Permission denied; choose another place with --output DIR"
    with pytest.raises(StorageError, match=rf"^{re.escape(said)}$"):
        exporters()["asv"].export(synthetic(blocks=1), tmp_path)


@pytest.mark.slow
def test_asv_shows_and_publishes_an_export(run: SimpleNamespace, tmp_path: Path) -> None:
    project, commit = asv_project(tmp_path / "project")
    exporters()["asv"].export(at_commit(run, commit), project / "results")
    shown = run_tool(sys.executable, "-m", "asv", "show", commit[:8], folder=project)
    assert "step_time" in shown
    run_tool(sys.executable, "-m", "asv", "publish", "--no-pull", folder=project)
    index = json.loads((project / "html" / "index.json").read_text())
    assert len(index["benchmarks"]) == 2 * len(run.manifest.cells)
    assert list((project / "html" / "graphs").rglob("*step_time.json"))


def test_a_run_outside_a_checkout_cannot_go_to_asv_and_says_why(tmp_path: Path) -> None:
    run = at_commit(synthetic(blocks=1), COMMIT)
    run.manifest.machine.facts.pop("git.revision")
    with pytest.raises(HarnessError, match="keeps results by commit"):
        exporters()["asv"].export(run, tmp_path)


def test_a_run_of_a_changed_working_tree_does_not_replace_that_of_its_commit_in_asv(tmp_path: Path) -> None:
    run = synthetic(blocks=1)
    exporters()["asv"].export(run, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    with pytest.raises(HarnessError, match=r"changes beyond 01234567; commit them and measure again, or export csv$"):
        exporters()["asv"].export(at_commit(run, f"{COMMIT}-dirty"), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


@pytest.mark.parametrize(
    ("revision", "dirty"), [(COMMIT, False), (f"{COMMIT}-dirty", True), (f"{COMMIT}-unknown", None)]
)
def test_pytest_benchmark_has_the_commit_and_whether_there_were_changes(revision: str, dirty: bool | None) -> None:
    document = json.loads(exporters()["pytest-benchmark"].export(at_commit(synthetic(blocks=1), revision), None) or "")
    assert (document["commit_info"]["id"], document["commit_info"]["dirty"]) == (COMMIT, dirty)


def test_githubs_own_markdown_makes_tables_of_it_and_no_name_is_markup() -> None:
    paths = "/data/@org/$a$/~~b~~ https://example.org www.example.org a@example.org"
    cells = [make_cell(), make_cell("a|b<script>alert(1)</script>*x*", 2), make_cell(paths, 2)]
    run = synthetic(cells=cells, faults=False)
    text = exporters()["markdown"].export(run, None) or ""
    # raw HTML let through, as the folded tables are; GitHub takes out what could do harm later
    page = cmarkgfm.github_flavored_markdown_to_html(text, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)
    assert "<script" not in page
    assert page.count("<table>") >= 1
    assert ">a|b&lt;script&gt;alert(1)&lt;/script&gt;*x* ×2 b32</td>" in page
    assert ">/data/@<!-- -->org/$a$/~~b~~ https://example.org www.example.org a@<!-- -->example.org ×2 b32</td>" in page
    assert r"/\$a\$/" in text  # GitHub looks for formulas before it reads Markdown
    assert page.count("<details>") == page.count("</details>") > 0


def test_markdown_of_several_models_says_of_which_each_table_is() -> None:
    cells = [make_cell(*of, model=model) for model in ("mlp", "lstm") for of in (("none", 1), ("mirrored", 2))]
    text = exporters()["markdown"].export(synthetic(cells=cells, faults=False), None) or ""
    for model in ("mlp", "lstm"):
        assert f"<summary>Speed-up and efficiency: {model} on " in text
    one = exporters()["markdown"].export(synthetic(cells=cells[:2], faults=False), None) or ""
    assert "<summary>Speed-up and efficiency</summary>" in one


def test_markdown_of_a_large_run_fits_a_pull_request_and_says_what_is_left_out() -> None:
    cells = [make_cell("mirrored", 2, batch) for batch in range(1, 600)]
    text = exporters()["markdown"].export(synthetic(cells=cells, blocks=2, faults=False), None) or ""
    assert len(text) <= LARGEST
    assert "more rows are left out here" in text
