"""Exporters: found by scanning, whole files, nothing lost and nothing made up."""

import csv
import importlib.util
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from harness.errors import HarnessError, StorageError
from harness.report.export import exporters
from tests.synthetic import make_cell, make_run

NEED_A_MEASUREMENT = ("asv", "github-action-bigger", "github-action-smaller", "pytest-benchmark")


@pytest.fixture(scope="module")
def run() -> SimpleNamespace:
    manifest, trials = make_run()
    # the first record has windows, whatever the seeded order
    trials.sort(key=lambda trial: trial.status != "ok")
    return SimpleNamespace(manifest=manifest, trials=trials, rank_unproved=False, results=Path("nowhere"))


def test_every_format_describes_itself() -> None:
    assert len(exporters()) >= 12
    assert all(exporter.summary and exporter.suffix.startswith(".") for exporter in exporters().values())


def test_csv_has_a_row_for_each_trial_failed_ones_included(run: SimpleNamespace) -> None:
    text = exporters()["csv"].export(run, None)
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(run.trials)
    first, record = rows[0], run.trials[0]
    assert first["cell.strategy"] == record.cell.strategy
    wrong = next(row for row in rows if row["status"] == "wrong_result")
    assert wrong["throughput_examples_per_s"] == ""
    assert wrong["checks.reduction"] == "False"


def test_cells_have_estimates_with_intervals_and_no_number_where_there_is_none(run: SimpleNamespace) -> None:
    rows = list(csv.DictReader(io.StringIO(exporters()["cells"].export(run, None) or "")))
    assert len(rows) == 34
    best = next(row for row in rows if row["rank"] == "1")
    low, value, high = (float(best[f"throughput_examples_per_s{end}"]) for end in ("_low", "", "_high"))
    assert low < value < high
    assert {row["throughput_examples_per_s"] for row in rows if row["status"] != "ok"} == {""}


def test_json_is_strict_and_carries_every_window(run: SimpleNamespace) -> None:
    document = json.loads(exporters()["json"].export(run, None) or "", parse_constant=pytest.fail)
    assert [trial["windows"] for trial in document["trials"]][:1] == [run.trials[0].windows.model_dump()]
    assert document["answers"][0]["answer"]["verdict"] == "beats_one_device"
    assert len(document["cells"]) == 34


def test_a_loss_that_is_no_number_is_null_in_json() -> None:
    manifest, trials = make_run([make_cell()], blocks=1)
    broken = [trials[0].model_copy(update={"final_loss": float("nan")})]
    run = SimpleNamespace(manifest=manifest, trials=broken, rank_unproved=False, results=Path("nowhere"))
    text = exporters()["json"].export(run, None)
    assert json.loads(text or "", parse_constant=pytest.fail)["trials"][0]["final_loss"] is None


def test_markdown_is_tables_in_which_no_name_is_markup() -> None:
    manifest, trials = make_run([make_cell(), make_cell("a|b<script>*", 2)], faults=False)
    run = SimpleNamespace(manifest=manifest, trials=trials, rank_unproved=False, results=Path("nowhere"))
    text = exporters()["markdown"].export(run, None) or ""
    assert r"a\|b\<script\>\* ×2 b32" in text
    widths = [line.replace(r"\|", "").count("|") for line in text.splitlines() if line.startswith("|")]
    assert widths
    assert "Fastest: " in text


def test_parquet_round_trips_trials_and_windows(run: SimpleNamespace, tmp_path: Path) -> None:
    target = tmp_path / "run.parquet"
    assert exporters()["parquet"].export(run, target) is None
    frame = pd.read_parquet(target)
    assert len(frame) == len(run.trials)
    assert list(frame["windows.seconds"][0]) == run.trials[0].windows.seconds
    assert str(frame["phases.waiting_s"].dtype) == "float64"


def test_parquet_cannot_be_printed_and_says_what_to_do(run: SimpleNamespace) -> None:
    with pytest.raises(HarnessError, match=r"--output FILE\.parquet"):
        exporters()["parquet"].export(run, None)


def test_parquet_without_pyarrow_names_the_remedy(
    run: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(HarnessError, match="pip install pyarrow"):
        exporters()["parquet"].export(run, tmp_path / "run.parquet")


@pytest.mark.parametrize("name", ["cells", "csv", "json", "markdown", "parquet"])
def test_a_place_that_cannot_be_written_is_one_clear_error(run: SimpleNamespace, tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match="--output FILE"):
        exporters()[name].export(run, tmp_path)


def test_a_run_without_trials_exports(tmp_path: Path) -> None:
    manifest, _ = make_run(blocks=0)
    empty = SimpleNamespace(manifest=manifest, trials=[], rank_unproved=False, results=Path("nowhere"))
    for exporter in exporters().values():
        if exporter.name not in NEED_A_MEASUREMENT:
            exporter.export(empty, tmp_path / f"x{exporter.suffix}")
