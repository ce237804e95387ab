"""The Python API: fast to import, without TensorFlow, typed frames."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import harness
from harness.errors import UsageError
from harness.report.export import exporters
from harness.report.tables.columns import COMPARISON_COLUMNS, RUN_COLUMNS, SUMMARY_COLUMNS
from harness.report.tables.frames import cell_frame
from harness.run.kinds.published_table import import_table
from harness.spec.work import OwnStepCell
from tests.report.export.runs import REFERENCE, ROOT, reference, results_with_reference
from tests.report.test_quantities import run_of
from tests.run.kinds.test_published_table import PUBLISHED


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
    assert cells["rank"].notna().sum() == cells["throughput_examples_per_s"].notna().sum() == 22


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


def test_compare_gives_the_verdicts_of_the_command() -> None:
    frame = harness.compare(REFERENCE, along="cross_device_op", delta=0.02)
    assert list(frame.columns) == [column.name for column in COMPARISON_COLUMNS]
    assert frame.attrs["delta"] == 0.02
    assert set(frame["verdict"]) <= {"faster", "slower", "equivalent", "undecided", "invalid"}
    valid = frame[frame["verdict"] != "invalid"]
    assert ((valid["ratio_low"] < valid["ratio"]) & (valid["ratio"] < valid["ratio_high"])).all()
    with pytest.raises(UsageError, match="expected a second run"):
        harness.compare(REFERENCE)


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
