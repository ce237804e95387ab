"""What a page holds of single trials: everything up to a size, then the ones to look at first, and it says so."""

import base64
import importlib.resources
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from harness.record.checks import Checks
from harness.record.trial import TrialRecord
from harness.report.page.report import write_report
from harness.report.page.trials import trials_section
from harness.report.page.trials.columns import columns_of
from harness.report.page.trials.detail import GRAIN, PER_CHUNK, details_of
from harness.report.page.trials.encoding import packed, rounded
from tests.synthetic import default_cells, make_cell, make_run


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def unpacked_all(chunks: tuple[str, ...]) -> list[dict[str, Any]]:
    return [detail for chunk in chunks for detail in unpacked(chunk)]


def test_windows_come_back_to_a_thousandth_of_the_median_window() -> None:
    _, trials = make_run(default_cells((1, 2), (32,)), faults=False, blocks=2)
    found = unpacked_all(details_of(trials).chunks)
    assert len(found) == len(trials)
    for detail, trial in zip(found, trials, strict=True):
        windows = trial.windows
        assert windows is not None
        unit = detail["w"]["u"]
        median = sorted(windows.seconds)[len(windows.seconds) // 2]
        assert unit * GRAIN == pytest.approx(median, rel=0.02)
        assert [grains * unit for grains in detail["w"]["s"]] == pytest.approx(windows.seconds, abs=0.51 * unit)
        assert [grains * unit for grains in detail["w"]["c"]] == pytest.approx(windows.cpu_seconds, abs=0.51 * unit)
        assert (detail["w"]["K"], detail["w"]["m"]) == (windows.steps_per_window, windows.measured_from)


def test_rounds_that_are_not_in_a_row_and_workers_are_kept() -> None:
    def changed(trial: TrialRecord) -> TrialRecord:
        assert trial.windows is not None
        rounds = [2 * number for number in trial.windows.rounds]
        update = {"rounds": rounds, "workers": [trial.windows.seconds] * 2}
        return trial.model_copy(update={"windows": trial.windows.model_copy(update=update)})

    _, trials = make_run([make_cell()], blocks=1, faults=False, change=changed)
    detail = unpacked_all(details_of(trials).chunks)[0]["w"]
    assert detail["r"] == [2 * number for number in range(15)]
    assert detail["k"] == [detail["s"], detail["s"]]


def test_every_check_that_passes_or_fails_is_on_the_page_of_a_trial_in_words() -> None:
    _, trials = make_run([make_cell()], blocks=1, faults=False)
    columns = columns_of(trials, [make_cell()])["coded"]["checks"]["names"]
    judged = {name for name, field in Checks.model_fields.items() if field.annotation == bool | None}
    assert {"late", "loss", "batches", "examples", "order"} < judged
    assert {*columns} == judged | {"gate"}
    script = (importlib.resources.files("harness.report") / "templates/scripts/trial.js").read_text("utf-8")
    [table] = re.findall(r"const CHECKS = \{(.*?)\};", script, re.DOTALL)
    assert {*re.findall(r"(\w+): \"", table)} == judged


def test_over_the_budget_those_that_did_not_end_well_come_first_then_block_after_block() -> None:
    _, trials = make_run(blocks=12)
    whole = sum(map(len, details_of(trials).chunks))
    some = details_of(trials, budget=whole // 2)
    assert sum(map(len, some.chunks)) < 0.7 * whole
    telling = [trial.status != "ok" for trial in trials]
    assert all(there for there, tells in zip(some.there, telling, strict=True) if tells)
    good = [(trial.block, there) for trial, there, tells in zip(trials, some.there, telling, strict=True) if not tells]
    assert [there for _, there in good] == sorted((there for _, there in good), reverse=True)
    assert 0 < sum(there for _, there in good) < len(good)
    assert len(unpacked_all(some.chunks)) == some.count
    assert all(len(unpacked(chunk)) == PER_CHUNK for chunk in some.chunks[:-1])


def test_the_page_says_how_many_windows_it_holds_and_where_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, trials = make_run(blocks=12)
    section = trials_section(manifest, trials)
    assert section is not None
    assert len(section.notes) == 1
    monkeypatch.setattr(details_of, "__defaults__", (8_000,))
    section = trials_section(manifest, trials)
    assert section is not None
    held = section.notes[1]
    shown = sum(unpacked(section.data)["there"])
    assert f"All {len(trials)} trials are in the table" in held
    assert f"The single windows of {shown} of them are in this page" in held
    assert f"the other {len(trials) - shown}" in held
    assert f"results/{manifest.run_id}/trials.jsonl" in section.notes[0]


def test_no_trial_and_no_status_is_left_out_of_the_columns() -> None:
    manifest, trials = make_run()
    section = trials_section(manifest, trials)
    assert section is not None
    data = unpacked(section.data)
    ids = [cell["id"] for cell in data["cells"]]
    assert [ids[number] for number in data["columns"]["cell"]] == [trial.cell_id for trial in trials]
    reasons = data["coded"]["reason"]
    assert [reasons["values"][number] for number in reasons["column"]] == [trial.reason or "" for trial in trials]
    assert {len(column) for column in data["columns"].values()} == {len(trials)}


def test_cells_that_share_a_label_are_told_apart() -> None:
    cells = [make_cell(), make_cell(model="mlp"), make_cell(precision="mixed_bfloat16")]
    manifest, trials = make_run(cells, blocks=1, faults=False)
    section = trials_section(manifest, trials)
    assert section is not None
    labels = {row[1] for row in section.rows}
    assert labels == {
        "none ×1 b32, mnist_cnn",
        "none ×1 b32, mlp",
        "none ×1 b32 mixed_bfloat16, mnist_cnn",
    }


def test_the_section_names_the_folder_that_the_run_lies_in_and_the_command_that_reads_it() -> None:
    manifest, trials = make_run([make_cell()], blocks=1, faults=False)
    section = trials_section(manifest, trials, "results/kept here", "trials.jsonl.gz")
    assert section is not None
    assert "all are in results/kept here/trials.jsonl.gz, and" in section.without_script
    assert "`python -m harness export 'results/kept here' --format csv`" in section.without_script
    assert any("results/kept here/trials.jsonl.gz, whose line" in note for note in section.notes)
    assert unpacked(section.data)["records"] == "results/kept here/trials.jsonl.gz"


@pytest.mark.parametrize("name", ["trials.jsonl", "trials.jsonl.gz"])
def test_a_page_names_the_file_of_records_that_is_there(name: str, tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell()], blocks=1, faults=False)
    (tmp_path / name).touch()
    write_report(manifest, trials, page := tmp_path / "page.html", run_folder=tmp_path)
    assert f"/{name}, whose line number" in page.read_text(encoding="utf-8")


def test_times_that_are_no_times_and_long_texts_do_no_harm() -> None:
    evidence = "\x1b[2J" + "x" * 100_000

    def changed(trial: TrialRecord) -> TrialRecord:
        return trial.model_copy(update={"started_utc": "yesterday", "evidence": evidence, "reason": "r" * 10_000})

    manifest, trials = make_run([make_cell()], blocks=1, faults=False, change=changed)
    section = trials_section(manifest, trials)
    assert section is not None
    data = unpacked(section.data)
    assert "started" not in data["columns"]
    assert len(data["coded"]["reason"]["values"][0]) == 300
    shown = unpacked_all(section.chunks)[0]["e"]
    assert "\x1b" not in shown
    assert shown.endswith("… (96,004 more letters in the record)")


def test_a_run_without_a_trial_has_no_such_section() -> None:
    manifest, _ = make_run(blocks=0)
    assert trials_section(manifest, []) is None


def test_what_is_not_finite_is_unknown() -> None:
    assert rounded([1.23456789, None, float("nan"), float("inf"), 0.0], 4) == [1.235, None, None, None, 0.0]
    with pytest.raises(ValueError, match="JSON"):
        packed([float("nan")])
