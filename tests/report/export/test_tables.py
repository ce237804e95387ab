"""CSV and Parquet of trials and windows, read back by pandas and pyarrow."""

import csv
import io
import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet
import pytest

from harness.record import TrialRecord
from harness.report.export import exporters
from harness.report.export.rows import field
from harness.report.tables.columns import TRIAL_COLUMNS, WINDOW_COLUMNS
from harness.report.tables.frames import DTYPES, trial_frame, window_frame
from tests.report.export.runs import synthetic


@pytest.fixture(scope="module")
def run() -> SimpleNamespace:
    return synthetic()


def types_of(frame: pd.DataFrame) -> dict[str, str]:
    return {name: "string" if str(kind) in ("str", "string") else str(kind) for name, kind in frame.dtypes.items()}


def test_a_trial_is_a_row_and_what_failed_has_no_throughput(run: SimpleNamespace) -> None:
    frame = pd.read_csv(io.StringIO(exporters()["csv"].export(run, None) or ""))
    assert list(frame.columns) == [column.name for column in TRIAL_COLUMNS]
    assert len(frame) == len(run.trials)
    failed = frame[frame["status"] != "ok"]
    assert len(failed)
    assert failed["throughput_examples_per_s"].isna().all()
    ok = frame[frame["status"] == "ok"]
    assert (ok["throughput_examples_per_s"] * ok["step_time_s"] / ok["cell.global_batch_size"]).round(9).eq(1).all()


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "-2+3|'calc'!A0", "+HYPERLINK(1)", "\t=1", "--model: x"])
@pytest.mark.parametrize("name", ["csv", "windows"])
def test_no_text_of_a_record_is_a_formula_to_a_spreadsheet(name: str, text: str) -> None:
    def called(record: TrialRecord) -> TrialRecord:
        return record.model_copy(update={"cell": record.cell.model_copy(update={"model": text}), "reason": text})

    made = exporters()[name].export(synthetic(blocks=1, faults=False, change=called), None) or ""
    rows = list(csv.DictReader(io.StringIO(made)))
    assert {row["cell.model"] for row in rows} == {f"'{text}"}
    assert {row["reason"] for row in rows if name == "csv"} <= {f"'{text}"}


@pytest.mark.parametrize("value", ["+3.1 % [+1.0, +5.2]", "-0.5", "text = text", -1.5, "−4 %"])
def test_what_is_no_formula_is_as_it_was(value: object) -> None:
    assert field(value) == value


def test_the_columns_and_their_types_do_not_depend_on_the_run(run: SimpleNamespace) -> None:
    for make, columns in ((trial_frame, TRIAL_COLUMNS), (window_frame, WINDOW_COLUMNS)):
        full, empty, failed = make(run.trials), make([]), make([t for t in run.trials if t.status == "unsupported"])
        assert types_of(full) == types_of(empty) == types_of(failed)
        assert types_of(full) == {column.name: DTYPES[column.kind] for column in columns}


def test_a_window_is_a_row_and_the_measured_ones_give_the_trials_step_time(run: SimpleNamespace) -> None:
    frame = pd.read_csv(io.StringIO(exporters()["windows"].export(run, None) or ""))
    assert list(frame.columns) == [column.name for column in WINDOW_COLUMNS]
    assert len(frame) == sum(len(trial.windows.seconds) for trial in run.trials if trial.windows)
    trial = next(trial for trial in run.trials if trial.status == "ok")
    mine = frame[(frame["cell_id"] == trial.cell_id) & (frame["block"] == trial.block) & frame["measured"]]
    assert math.isclose(mine["seconds"].sum() / mine["steps"].sum(), trial.step_time_s, rel_tol=1e-9)
    assert not frame[(frame["cell_id"] == trial.cell_id) & ~frame["measured"]].empty


def test_each_worker_of_a_trial_of_several_leaves_its_fastest_time() -> None:
    def with_workers(record):  # type: ignore[no-untyped-def]
        windows = record.windows
        if windows is None:
            return record
        workers = [[0.9 * second for second in windows.seconds], windows.seconds]
        return record.model_copy(update={"windows": windows.model_copy(update={"workers": workers})})

    frame = window_frame(synthetic(blocks=1, faults=False, change=with_workers).trials)
    assert (frame["fastest_worker_seconds"] / frame["seconds"]).round(9).eq(0.9).all()


@pytest.mark.parametrize(("name", "make"), [("parquet", trial_frame), ("windows-parquet", window_frame)])
def test_parquet_gives_back_the_frame_as_it_was(run: SimpleNamespace, tmp_path: Path, name: str, make: object) -> None:
    exporters()[name].export(run, tmp_path / "x.parquet")
    frame = make(run.trials)  # type: ignore[operator]
    back = pd.read_parquet(tmp_path / "x.parquet")[list(frame.columns)]
    assert types_of(back) == types_of(frame)
    pd.testing.assert_frame_equal(back, frame, check_dtype=False, check_categorical=False)
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").num_rows == len(frame)
