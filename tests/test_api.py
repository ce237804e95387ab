"""The Python API: fast to import, without TensorFlow, typed frames."""

import inspect
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import harness
from harness.analysis.tries import Try
from harness.cli import command_line
from harness.errors import UsageError
from harness.record.explain import TryRecord
from harness.record.reading import Run, RunListing
from harness.report.export import exporters
from harness.report.notebook import ExplainResult, SweepResult
from harness.report.tables.cells import cell_frame, collective_frame, pipeline_frame
from harness.report.tables.columns import COMPARISON_COLUMNS, RUN_COLUMNS, SUMMARY_COLUMNS
from harness.report.tables.explain import explain_tables
from harness.run.kinds.explain import ExplainSettings
from harness.run.kinds.published_table import import_table
from harness.spec.expand import Matrix
from harness.spec.sweep import Sweep
from harness.spec.work import Cell, OwnStepCell
from tests.comparisons import ab_run, stored, sweep_run
from tests.engines.numpy_engine import SPEC
from tests.explained import RATIOS, explain_run
from tests.faulted import write_example
from tests.report.collectives import RING
from tests.report.export.runs import REFERENCE, ROOT, reference, results_with_reference
from tests.report.pipelines import FAST
from tests.report.quantities import run_of
from tests.run.kinds.published import PUBLISHED
from tests.synthetic import make_cell


def modules_after(code: str) -> set[str]:
    """Packages that are imported once `code` has run."""
    code += "\nimport sys; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_import_loads_nothing_and_the_api_no_tensorflow() -> None:
    assert not {"pandas", "numpy", "pydantic", "tensorflow"} & modules_after("import harness")
    code = "import harness; harness.load('results/reference'); harness.compare('results/reference', along='replicas')"
    assert not {"tensorflow", "keras"} & modules_after(code)


def test_what_is_offered_is_there_and_the_rest_is_an_attribute_error() -> None:
    assert all(callable(getattr(harness, name)) for name in harness.__all__ if name != "__version__")
    assert set(harness.__all__) <= set(dir(harness))
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        harness.laod  # noqa: B018


def test_load_gives_a_row_a_trial_by_path_by_id_and_by_latest(tmp_path: Path) -> None:
    results = results_with_reference(tmp_path)
    frame = harness.load(REFERENCE)
    assert len(frame) == len(reference().trials)
    for name in ("latest", "reference", "refer"):
        pd.testing.assert_frame_equal(harness.load(name, results=results), frame)
    pd.testing.assert_frame_equal(harness.load(results=results), frame)
    ok = frame[frame["status"] == "ok"]
    assert ok.groupby("cell.strategy", observed=True)["throughput_examples_per_s"].mean().gt(0).all()


def test_several_runs_are_one_frame() -> None:
    frame = harness.load(REFERENCE, REFERENCE)
    assert len(frame) == 2 * len(reference().trials)
    assert str(frame["cell.strategy"].dtype) == "category"


def test_windows_and_cells_agree_with_the_trials() -> None:
    windows, trials, cells = (make(REFERENCE) for make in (harness.load_windows, harness.load, harness.load_cells))
    measured = windows[windows["measured"].fillna(False) & (windows["status"] == "ok")]
    assert measured.groupby(["cell_id", "block"], observed=True).ngroups == (trials["status"] == "ok").sum()
    assert list(cells.columns) == [column.name for column in SUMMARY_COLUMNS]
    assert cells["rank"].notna().sum() == cells["throughput_examples_per_s"].notna().sum() == 24


def test_the_frame_of_cells_has_the_columns_of_the_export() -> None:
    header = (exporters()["cells"].export(reference(), None) or "").partition("\n")[0].split(",")
    nobody_has = {"run_id", "phases.alone_s"}  # a phase that no trial reached is no column
    assert set(header) == {column.name for column in SUMMARY_COLUMNS} - nobody_has


def test_runs_lists_them_and_those_that_cannot_be_read(tmp_path: Path) -> None:
    results = results_with_reference(tmp_path)
    (results / "broken").mkdir()
    (results / "broken" / "run.json").write_text("{")
    frame = harness.runs(results)
    assert list(frame.columns) == [column.name for column in RUN_COLUMNS]
    assert frame["problem"].notna().tolist() == [True, False] or frame["problem"].notna().tolist() == [False, True]


def test_runs_has_what_the_list_has_as_json(tmp_path: Path) -> None:
    path = write_example(tmp_path)
    frame = harness.runs(tmp_path)
    assert set(frame.columns) == {field.name for field in fields(RunListing)}
    assert frame.loc[0, ["path", "kind", "unproved", "unit"]].tolist() == [str(path), "faults", 0, "jobs"]


@pytest.mark.parametrize("function", [harness.load, harness.load_windows, harness.load_cells])
def test_a_run_of_jobs_has_no_frame_of_trials(function: Callable[[Path], pd.DataFrame], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a run of faults: it has jobs and no trials; see `show --json`$"):
        function(write_example(tmp_path))


def test_compare_gives_the_verdicts_of_the_command() -> None:
    found = harness.compare(REFERENCE, along="cross_device_op", delta=0.02)
    frame = found.frame
    assert found.verdict == frame.attrs["verdict"]
    assert list(frame.columns) == [column.name for column in COMPARISON_COLUMNS]
    assert frame.attrs["delta"] == 0.02
    assert set(frame["verdict"]) <= {"faster", "slower", "equivalent", "undecided", "invalid"}
    valid = frame[frame["verdict"] != "invalid"]
    assert ((valid["ratio_low"] < valid["ratio"]) & (valid["ratio"] < valid["ratio_high"])).all()
    with pytest.raises(UsageError, match="expected a second run"):
        harness.compare(REFERENCE)


def test_a_decision_is_summarised_one_side_at_a_time(tmp_path: Path) -> None:
    run = stored(ab_run([0.1] * 4), tmp_path)
    a, b = (harness.summary(run, side=side) for side in ("a", "b"))
    slow, fast = (summary.cells[0].measured.throughput.value for summary in (a, b))
    assert fast / slow == pytest.approx(math.exp(0.1))
    assert [(len(summary.cells), summary.trials, summary.planned) for summary in (a, b)] == [(1, 4, 4)] * 2
    with pytest.raises(UsageError, match=r"^side: given None, expected 'a' or 'b'$"):
        harness.summary(run)
    with pytest.raises(UsageError, match=r"^side: given 'b', expected none: the run has no sides$"):
        harness.summary(REFERENCE, side="b")


@pytest.mark.parametrize(
    ("frame_of", "cell", "rate"),
    [
        (lambda runs: collective_frame(runs, Path()), RING, "algbw_bytes_per_s"),
        (pipeline_frame, FAST, "input_per_s"),
    ],
)
def test_collectives_and_pipelines_of_a_decision_have_a_row_a_side(
    frame_of: Callable[[list[Run]], pd.DataFrame], cell: Cell, rate: str, tmp_path: Path
) -> None:
    trials = [
        trial.model_copy(update={"side": side, "step_time_s": trial.step_time_s * times})
        for trial in run_of([cell], tmp_path).trials
        for side, times in (("a", 2), ("b", 1))
        if trial.step_time_s is not None
    ]
    frame = frame_of([replace(ab_run([0.0] * 4, cells=(cell, cell)), trials=trials)])
    assert list(frame["side"]) == ["a", "b"]
    slow, fast = frame[rate]
    assert fast == pytest.approx(2 * slow)


def test_what_explain_draws_from_an_input_alone_is_no_pipeline_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no pipelines; measure some with sweep --work pipeline"):
        harness.load_pipelines(stored(explain_run(RATIOS | {"only_input": 1.2}), tmp_path))


def test_a_share_is_a_number_or_a_text_as_on_the_command_line() -> None:
    said, given = (
        harness.compare(REFERENCE, along="replicas", delta=delta, epsilon=epsilon).frame.attrs
        for delta, epsilon in (("2%", "0.05"), (0.02, 0.05))
    )
    assert said == given


def test_a_comparison_from_python_is_corrected_as_the_flag_says() -> None:
    def of(correction: str) -> pd.DataFrame:
        return harness.compare(REFERENCE, along="cross_device_op", correction=correction).frame

    alone = of("none")["p_different"].dropna()
    assert (of("holm")["p_different"][alone.index] > alone).all()
    assert not of("holm").equals(of("fdr"))
    pd.testing.assert_frame_equal(of("fdr"), harness.compare(REFERENCE, along="cross_device_op").frame)
    with pytest.raises(UsageError, match=r"correction: 'hulm' is not one of fdr, holm, none; did you mean 'holm'\?"):
        of("hulm")


@pytest.mark.parametrize(
    ("function", "beside"), [("ab", {"a", "b"}), ("compare", {"a", "b"}), ("explain", set()), ("sweep", set())]
)
def test_what_a_function_takes_is_called_as_the_flags_of_its_verb_are(function: str, beside: set[str]) -> None:
    [verb] = [command for name, command in command_line().commands.items() if name == function]
    flags = {flag.name for flag in verb.params}
    taken = inspect.signature(getattr(harness, function)).parameters
    assert taken.keys() - beside - {"keys"} - ({"spec"} if function == "ab" else set()) <= flags


def test_an_imported_run_has_cells_without_a_rank_and_no_trials(tmp_path: Path) -> None:
    path, count = import_table(PUBLISHED, tmp_path)
    cells = harness.load_cells(path)
    assert len(cells) == count
    assert cells["rank"].isna().all()
    assert set(cells["status"]) == {"imported"}
    assert cells["throughput_examples_per_s_low"].isna().all()
    with pytest.raises(UsageError, match="has no trials"):
        harness.load(path)


def test_published_figures_keep_their_column_beside_a_run_that_counts_in_something_else(tmp_path: Path) -> None:
    tokens = run_of([OwnStepCell(step="a.b:c", amount=64, quantity="tokens")], tmp_path)
    path, count = import_table(PUBLISHED, tmp_path)
    both = cell_frame([tokens, harness.read(path)])
    assert both["throughput_examples_per_s"].notna().sum() == count
    assert both["throughput_tokens_per_s"].notna().sum() == 1


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    """A sweep from Python, by an engine that is no TensorFlow."""
    return harness.sweep(**SPEC, results=tmp_path_factory.mktemp("results"), quiet=True)


def test_a_sweep_from_python_is_a_run_like_any_other_with_its_answer_and_its_frames(swept: SweepResult) -> None:
    assert swept.run.manifest.status == "finished"
    assert swept.run.manifest.command[0] == "harness.sweep"
    assert str(swept).splitlines() == list(swept.answer)
    pd.testing.assert_frame_equal(swept.cells, harness.load_cells(swept.path))
    pd.testing.assert_frame_equal(swept.trials, harness.load(swept.path))
    assert "Fastest: " in str(swept)


def test_a_notebook_shows_the_answer_first_and_then_the_ranking(swept: SweepResult) -> None:
    page = ElementTree.fromstring(f"<div>{swept._repr_html_()}</div>")
    assert page.findtext("p/strong") == swept.answer[0]
    assert len(page.findall("table/tbody/tr")) == swept.cells["rank"].notna().sum() > 1


EXPLAINED = ROOT / "results" / "explained"


def test_where_a_step_goes_is_told_of_a_run_as_sentences_as_parts_and_in_a_notebook() -> None:
    found = ExplainResult(harness.read(EXPLAINED))
    cells = {one.cell.cell_id: one for one in found.explanations}
    pd.testing.assert_frame_equal(found.parts, harness.load_parts(EXPLAINED))
    assert set(found.parts["cell_id"]) == set(cells)
    row = found.parts.iloc[0]
    part = cells[row["cell_id"]].part(row["part"])
    assert (row["share"], row["share_low"], row["share_high"]) == (part.value, part.low, part.high)
    assert str(found).splitlines() == list(found.answer)
    page = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert page.findtext("p/strong") == found.answer[0]
    tables = explain_tables(found.explanations)
    assert len(tables) > len(cells)
    assert [caption.text for caption in page.iter("caption")] == [table.title for table in tables]
    assert {table.note for table in tables} <= {line.text for line in page.iter("p")}
    marked = ["".join(row.itertext()) for row in page.iter("tr") if row.get("class") == "marked"]
    assert marked
    assert all(row.startswith("* ") and "marked" not in row for row in marked), "no style sheet hides what is spoken"


def test_cells_of_a_sweep_are_taken_apart_from_python_as_the_verb_does_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[ExplainSettings] = []

    def instead(settings: ExplainSettings, *_: Any) -> Path:
        asked.append(settings)
        return stored(explain_run(), tmp_path / "explained")

    tried: list[Path] = []
    monkeypatch.setattr("harness.run.kinds.explain.explain", instead)
    monkeypatch.setattr("harness.run.kinds.tries.try_levers", lambda path, *_: tried.append(path) or ())
    stored(sweep_run("swept", [make_cell(), make_cell("mirrored", 2)]), tmp_path)
    found = harness.explain("swept", trials=3, try_levers=True, results=tmp_path, quiet=True)
    assert (harness.explain(resume=found.path, quiet=True).path, tried) == (found.path, [found.path])
    assert found.explanations[0].bound_by == "communication"
    [settings] = asked
    assert settings.sweep.trials == 3
    assert {cell.strategy for cell in settings.cells} == {"none", "mirrored"}


def test_steps_of_which_nothing_was_measured_are_a_result_with_a_warning_that_says_why(tmp_path: Path) -> None:
    path = stored(explain_run(crashed=dict.fromkeys(RATIOS, "no GPU")), tmp_path)
    with pytest.warns(UserWarning, match="^nothing was measured: unsupported: no GPU$") as caught:
        found = harness.explain(resume=path, quiet=True)
    assert found.explanations[0].blocks == 0
    assert {warning.filename for warning in caught} == {__file__}


def test_levers_of_which_none_could_be_measured_are_a_result_with_a_warning_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, record = stored(explain_run(), tmp_path), TryRecord(cell_id="c", part="input", setting="prefetch=8")
    tried = Try(record, make_cell(), None, "no room")
    monkeypatch.setattr("harness.run.kinds.tries.try_levers", lambda *_: (tried,))
    with pytest.warns(UserWarning, match="^no lever could be measured: prefetch=8: no room$"):
        harness.explain(resume=path, quiet=True, try_levers=True)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"work": "collective"}, "work: explain takes trainings of a model"),
        ({"spec": REFERENCE, "replicas": 64}, "has no such cell that was measured"),
        ({"spec": EXPLAINED}, "is a run of explain; explain takes a spec or a sweep's run"),
        ({"resume": "latest", "replicas": 2}, "resume: goes on with a run as it was planned; it takes no replicas"),
        ({"resume": "latest", "limits": True}, "resume: goes on with a run as it was planned; it takes no limits"),
    ],
)
def test_steps_that_have_no_parts_are_refused_before_anything_is_recorded(
    keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        harness.explain(**keys, results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_run_whose_steps_were_not_taken_apart_has_no_parts() -> None:
    with pytest.raises(UsageError, match="is a run of sweep: it has no ExplainPlan"):
        harness.load_parts(REFERENCE)


def test_a_notebook_shows_a_comparison_with_its_verdict_first() -> None:
    found = harness.compare(REFERENCE, along="cross_device_op")
    page = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert page.findtext("p/strong") == "3 faster, 3 undecided; 2 give wrong results in B, 4 cannot run here in B"
    assert len(page.findall("table/tbody/tr")) == len(found.frame)


def test_a_finished_sweep_is_resumed_from_python_as_it_was(swept: SweepResult) -> None:
    again = harness.sweep(resume=swept.path, quiet=True)
    assert len(again.run.trials) == len(swept.run.trials)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"stategy": "none"}, "unknown key 'stategy'; did you mean 'strategy'?"),
        ({"replicas": "two"}, "replicas: given 'two', expected"),
        ({"replicas": {1: 2}}, "replicas: given {1: 2}, expected a whole number"),
        ({"model": [make_cell]}, ">, expected a text: 'module:function', written to a file"),
        ({"spec": "nowhere.toml"}, "SPEC: no file at 'nowhere.toml'"),
        ({"resume": "latest", "replicas": 2}, "resume: goes on with a run as it was planned; it takes no replicas"),
        ({"resume": "latest", "limits": True}, "resume: goes on with a run as it was planned; it takes no limits"),
        ({"retry": True}, "retry: runs again what failed in an earlier run; name that with resume"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused_before_anything_is_recorded(
    keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        harness.sweep(**keys, results=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "replicas",
    [range(1, 3), np.arange(1, 3), (np.int64(1), np.int64(2)), (n for n in (1, 2))],
    ids=lambda one: type(one).__name__,
)
def test_values_of_a_notebook_are_those_that_a_list_has(
    replicas: Iterable[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[Sweep, list[str]]] = []

    def instead(sweep: Sweep, _: Matrix, __: Path, command: list[str], *___: Any) -> Path:
        asked.append((sweep, command))
        return REFERENCE

    monkeypatch.setattr("harness.run.kinds.measure.measure_matrix", instead)
    harness.sweep(**{**SPEC, "replicas": replicas, "trials": np.int64(3)}, results=tmp_path, quiet=True)
    [(sweep, command)] = asked
    assert (sweep.replicas, sweep.trials) == ([1, 2], 3)
    assert {"replicas=[1, 2]", "trials=3"} < set(command)


def test_a_sweep_in_which_nothing_was_measured_is_a_result_with_a_warning_that_says_why(tmp_path: Path) -> None:
    keys = {**SPEC, "trials": 1, "strategy": "none", "replicas": 1, "model": "dies"}
    with pytest.warns(UserWarning, match="^nothing was measured: crashed: ended by SIG"):
        found = harness.sweep(**keys, results=tmp_path, quiet=True)
    assert set(found.trials["status"]) == set(found.cells["status"]) == {"crashed"}


def test_a_sweep_runs_in_a_thread_that_is_not_the_main_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        one = pool.submit(harness.sweep, **{**SPEC, "trials": 1, "strategy": "none"}, results=tmp_path, quiet=True)
        assert one.result().run.manifest.status == "finished"


ONE = {key: value for key, value in SPEC.items() if key != "trials"} | {"strategy": "none", "replicas": 1}


def test_two_sides_are_decided_from_python_and_read_again_from_their_records(tmp_path: Path) -> None:
    found = harness.ab(**ONE, a={"batch_size": 32}, b={"batch_size": 64}, max_blocks=2, results=tmp_path, quiet=True)
    assert found.ratio is not None
    assert found.comparison.title_a == "batch_size=32"
    again = harness.ab(resume="latest", results=tmp_path, quiet=True)
    pd.testing.assert_frame_equal(again.frame, found.frame)
    assert harness.compare("latest", results=tmp_path).verdict == found.verdict == again.verdict


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"a": {"batch_sise": 32}}, "--a: unknown key 'batch_sise'; did you mean 'batch_size'?"),
        ({"trials": 3}, "--trials: both sides have one trial a block"),
        ({"resume": "latest", "b": {"batch_size": 1}}, "resume: goes on with a run as it was planned; it takes no b"),
        ({"resume": "latest", "max_blocks": 9}, "resume: goes on with a run as it was planned; it takes no max_blocks"),
        ({"looks": (5, 8), "max_blocks": 9}, "looks: given beside max_blocks"),
        ({"resume": "latest", "rev_a": "main"}, "resume: goes on with a run as it was planned; it takes no rev_a"),
        ({"python_b": Path("nowhere/python")}, "--python-b: no file at 'nowhere/python'"),
        ({"rev_a": "main"}, "--rev-a: a revision is of your own code"),
        ({"max_blocks": 1}, "max_blocks: given 1, expected 2 to 1000"),
        ({"looks": (5, 2000)}, "looks: given 5,2000, expected rising numbers of blocks such as 5,8,12, from 2 to 1000"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused_before_anything_is_recorded(
    keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        harness.ab(**ONE, **keys, results=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"replicas": object()}, "--a: replicas: given <object object at"),
        ({"mesh": [1]}, "--a: mesh: given 1, expected a text"),
        ({"seed": 10**5000}, "--a: seed: given a number of about"),
        ({"env.A": object()}, "a: env.A: given <object object at"),
        ({"env.A": "\0"}, "a: env.A: given '\\x00', expected a text"),
    ],
)
def test_a_value_of_another_type_of_one_side_is_bad_usage_that_names_its_key(own: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        harness.ab(**ONE, a=own)


def test_a_sweep_from_python_may_have_a_name(tmp_path: Path) -> None:
    found = harness.sweep(**{**SPEC, "trials": 1, "strategy": "none"}, name="mine", results=tmp_path, quiet=True)
    assert "name='mine'" in found.run.manifest.command
