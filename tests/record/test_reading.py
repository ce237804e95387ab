"""Reading runs back: what is wrong is named by file, line and key; names find their runs."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from harness.errors import NothingMeasured, StorageError, UsageError
from harness.record import RunStore, list_runs, load_run, reading, resolve_run
from harness.record.limits import keep_sheet, make_place
from harness.record.packed import opened_records
from harness.spec.reading import PATTERNS
from harness.spec.sweep import AXES, Sweep
from tests.limits import limits
from tests.record.examples import RUN_ID, cell, failed_trial, manifest, trial
from tests.rights import as_no_root

RESULTS = Path(__file__).parents[2] / "results"
KEPT = [RESULTS / "reference" / "run.json", *sorted(RESULTS.glob("*/*/run.json"))]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three trials."""
    with RunStore.create(tmp_path, manifest()) as store:
        for block in range(3):
            store.append(trial(block))
    return store.path


def edit_line(run: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change line `number` (from 1) of trials.jsonl as a person with an editor would."""
    file = run / "trials.jsonl"
    lines = file.read_text().splitlines()
    record = json.loads(lines[number - 1])
    change(record)
    lines[number - 1] = json.dumps(record)
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda r: r["windows"]["seconds"].__setitem__(3, -1),
            "windows.seconds.3: given -1, expected greater than or equal to 0.000000001",
        ),
        (lambda r: r.update(status="fine"), "status: given 'fine', expected 'ok'"),
        (lambda r: r.update(speed=1), "speed: unknown key"),
        (lambda r: r.pop("started_utc"), "started_utc: missing"),
        (lambda r: r.update(cell_id="0" * 12), "record: cell_id 000000000000 is not the hash of the cell"),
        (lambda r: r.update(status="crashed"), "record: status is crashed but a throughput is given"),
        (lambda r: r["checks"].update(reduction=False), "record: status is ok but the correctness gate"),
        (lambda r: r.update(run_id="x"), f"run_id: 'x' is not this run's ('{RUN_ID}')"),
        (lambda r: r.update(schema_version=2, new=[]), "schema_version: 2 was written by a newer version"),
        (lambda r: r.update(throughput_examples_per_s=float("nan")), "throughput_examples_per_s: given nan"),
    ],
)
def test_an_edited_record_is_refused_by_file_line_and_key(
    run: Path, change: Callable[[dict[str, Any]], object], expected: str
) -> None:
    edit_line(run, 2, change)
    with pytest.raises(StorageError) as caught:
        load_run(run)
    assert str(caught.value).startswith(f"{run}/trials.jsonl:2: {expected}")
    remedy = "update the harness to read it" if "newer" in expected else ": mend or remove it"
    assert str(caught.value).endswith(remedy)
    assert "\n" not in str(caught.value)
    with pytest.raises(StorageError, match=r"trials\.jsonl:2"):
        RunStore.open_for_resume(run)
    assert not load_run_is_live(run)


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({}, 4),
        ({"status": "crashed", "reason": "a copy that was changed"}, 4),
        ({"side": "a"}, None),
        ({"side": "a", "group": "1.1"}, None),
        ({"attempt": 2}, None),
        ({"group": "prepare"}, None),
    ],
    ids=["twice", "twice and edited", "side", "group of a side", "attempt", "left without its data"],
)
def test_a_trial_that_is_there_twice_is_refused_by_file_and_line_and_what_differs_in_what_identifies_it_is_not(
    run: Path, other: dict[str, Any], line: int | None
) -> None:
    """A copy would count as a measurement of its own, and make every interval narrower."""
    again = (failed_trial if "status" in other else trial)(1, **other)
    with (run / "trials.jsonl").open("ab") as file:
        file.write(again.model_dump_json().encode() + b"\n")
    if line is None:
        assert load_run(run).trials[-1] == again
        return
    for read in (load_run, RunStore.open_for_resume):
        with pytest.raises(StorageError) as caught:
            read(run)
        assert str(caught.value) == f"{run}/trials.jsonl:{line}: record: repeats line 2: remove one of the two"


def test_a_trial_of_a_cell_that_the_manifest_does_not_list_is_refused_by_file_line_and_key(run: Path) -> None:
    other = cell(replicas=3, global_batch_size=96)
    with (run / "trials.jsonl").open("ab") as file:
        file.write(trial(3, cell=other, cell_id=other.cell_id).model_dump_json().encode() + b"\n")
    said = f"trials.jsonl:4: cell_id: '{other.cell_id}' is none of the cells of this run: mend or remove it"
    for read in (load_run, RunStore.open_for_resume):
        with pytest.raises(StorageError, match=re.escape(said)):
            read(run)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.parent.name)
def test_every_run_that_is_kept_holds_each_trial_once_and_of_its_own_cells(kept: Path) -> None:
    assert load_run(kept.parent).trials


def test_a_plan_that_was_edited_after_it_was_sealed_is_refused(run: Path) -> None:
    file = run / "run.json"
    record = json.loads(file.read_text())
    record["plans"][0]["blocks"].pop()
    file.write_text(json.dumps(record))
    with pytest.raises(StorageError, match=r"run\.json: plans\.0: sha256 does not seal this plan: one of the two was"):
        load_run(run)


def load_run_is_live(run: Path) -> bool:
    """Whether the run is listed as being written."""
    return list_runs(run.parent)[0].live


def test_a_broken_line_before_the_last_is_an_error_not_a_torn_end(run: Path) -> None:
    file = run / "trials.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2])
    with pytest.raises(StorageError, match=r"trials\.jsonl:2: not valid JSON"):
        load_run(run)


def test_empty_lines_are_passed_over_and_do_not_shift_line_numbers(run: Path) -> None:
    file = run / "trials.jsonl"
    file.write_bytes(file.read_bytes().replace(b"}\n{", b"}\n\n\n{", 1) + b"\n")
    assert len(load_run(run).trials) == 3
    file.write_bytes(file.read_bytes().replace(b'"block":1', b'"block":-1'))
    with pytest.raises(StorageError, match=r"trials\.jsonl:4: block: given -1"):
        load_run(run)


def test_a_run_killed_before_its_first_trial_reads_as_empty(run: Path) -> None:
    (run / "trials.jsonl").unlink()
    assert load_run(run).trials == []


def test_a_place_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"is not a run: it has no run\.json"):
        load_run(tmp_path)
    with pytest.raises(StorageError, match="there is no run at"):
        load_run(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is not a run"):
        load_run(tmp_path / "file")
    with pytest.raises(StorageError, match="is not a run"):
        RunStore.open_for_resume(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not valid JSON"),
        ("[]", "expected an object"),
        ('{"schema_version": 7}', "schema_version: 7 was written by a newer version"),
        ("{}", "run_id: missing"),
    ],
)
def test_a_damaged_manifest_is_refused_by_file_and_key(run: Path, text: str, expected: str) -> None:
    (run / "run.json").write_text(text)
    with pytest.raises(StorageError) as caught:
        load_run(run)
    assert str(caught.value).startswith(f"{run}/run.json: ")
    assert expected in str(caught.value)


def test_runs_are_listed_from_the_oldest_with_their_counts_and_bad_ones_with_their_problem(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest("new", created_utc="2026-11-22T00:00:00Z")) as live:
        RunStore.create(tmp_path, manifest("old", created_utc="2026-11-20T00:00:00Z", status="finished")).close()
        live.append(trial(0, "new"))
        live.append(failed_trial(1, "new"))
        (tmp_path / "stray").mkdir()
        (tmp_path / "README.md").write_text("about results")
        bad, old, new = list_runs(tmp_path)
    assert bad.run_id == "stray"
    assert bad.problem is not None
    assert "no run.json" in bad.problem
    assert (old.run_id, old.status, old.trials, old.live, old.problem) == ("old", "finished", 0, False, None)
    assert (new.run_id, new.name, new.cells, new.planned, new.trials, new.live) == ("new", "default", 1, 2, 2, True)


def test_what_may_not_be_looked_at_and_a_link_in_a_circle_are_listed_with_their_problem_beside_the_runs(
    tmp_path: Path,
) -> None:
    """Such as the lost+found of a disk that is all results."""
    RunStore.create(tmp_path, manifest("run")).close()
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "lost+found").mkdir(mode=0)
    with as_no_root():
        circle, lost, run = list_runs(tmp_path)
        assert resolve_run("latest", tmp_path) == tmp_path / "run"
    assert (run.run_id, run.problem) == ("run", None)
    assert f"cannot read '{tmp_path}/lost+found': Permission denied" in str(lost.problem)
    assert f"cannot read '{tmp_path}/circle': Too many levels of symbolic links" in str(circle.problem)


def test_a_folder_of_machines_sheets_among_the_runs_is_no_run(tmp_path: Path) -> None:
    make_place(tmp_path / "machines")
    keep_sheet(tmp_path / "machines", limits())
    assert list_runs(tmp_path) == []


def test_a_folder_of_runs_among_the_runs_is_no_run_and_has_a_list_of_its_own(tmp_path: Path) -> None:
    RunStore.create(tmp_path, manifest("run")).close()
    RunStore.create(tmp_path / "kept", manifest("old")).close()
    assert [row.run_id for row in list_runs(tmp_path)] == ["run"]
    assert [row.run_id for row in list_runs(tmp_path / "kept")] == ["old"]


def test_a_results_folder_that_does_not_exist_holds_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "absent") == []
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="it is a file, no folder"):
        list_runs(tmp_path / "file")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three runs; the last by time is the first by name. One folder is no run."""
    folder = tmp_path / "results"
    for hour, run_id in enumerate(["20261121T01-default-b1", "20261121T01-default-b2", "10-weak-c3"]):
        RunStore.create(folder, manifest(run_id, created_utc=f"2026-11-21T0{hour}:00:00Z")).close()
    (folder / "zz-broken").mkdir()
    return folder


def test_a_run_is_found_by_path_id_beginning_or_as_latest(results: Path) -> None:
    there = results / "20261121T01-default-b2"
    elsewhere = results / "nowhere"
    assert resolve_run(str(there), elsewhere) == there
    assert resolve_run(str(there / "run.json"), elsewhere) == there
    assert resolve_run("20261121T01-default-b2", results) == there
    assert resolve_run("10", results) == results / "10-weak-c3"
    assert resolve_run("latest", results) == results / "10-weak-c3"


def test_a_run_is_found_by_how_many_came_after_it(results: Path) -> None:
    assert resolve_run("latest~0", results) == resolve_run("latest", results)
    assert resolve_run("latest~1", results) == results / "20261121T01-default-b2"
    assert resolve_run("latest~2", results) == results / "20261121T01-default-b1"
    with pytest.raises(UsageError) as caught:
        resolve_run("latest~3", results)
    assert str(caught.value).startswith("RUN: no run 'latest~3' in ")
    assert str(caught.value).endswith("; there are 10-weak-c3, 20261121T01-default-b2, 20261121T01-default-b1")


def test_a_run_is_found_without_a_look_at_the_records_of_others(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def opened(path: Path) -> BinaryIO:
        looked_at.append(path.parent.name)
        return opened_records(path)

    monkeypatch.setattr(reading, "opened_records", opened)
    for text, run, looks in [("latest", "10-weak-c3", 1), ("10-w", "10-weak-c3", 1), ("10-weak-c3", "10-weak-c3", 0)]:
        looked_at.clear()
        assert resolve_run(text, results) == results / run
        assert looked_at == [run] * looks


def test_a_run_of_which_the_records_cannot_be_read_is_not_the_latest(results: Path) -> None:
    (results / "10-weak-c3" / "trials.jsonl.gz").write_bytes(b"")
    assert resolve_run("latest", results) == results / "20261121T01-default-b2"
    with pytest.raises(UsageError, match=r"there are 20261121T01-default-b2, 20261121T01-default-b1$"):
        resolve_run("latest~2", results)
    with pytest.raises(UsageError, match="no run '10-w'"):
        resolve_run("10-w", results)


def test_a_run_is_found_by_a_name_that_no_other_run_has(results: Path) -> None:
    kept = manifest("20261121T09-baseline-main-d4", sweep=Sweep(name="baseline-main"))
    RunStore.create(results, kept).close()
    assert resolve_run("baseline-main", results) == results / kept.run_id
    with pytest.raises(UsageError) as caught:
        resolve_run("default", results)
    several = "10-weak-c3, 20261121T01-default-b2, 20261121T01-default-b1"
    assert str(caught.value) == f"RUN: 'default' is the name of several runs: {several}"


def test_a_run_whose_folder_was_renamed_is_found_by_its_id_too(results: Path) -> None:
    (results / "10-weak-c3").rename(results / "kept")
    for text in ("10-weak-c3", "10-w", "kept", "ke", "latest"):
        assert resolve_run(text, results) == results / "kept"
    with pytest.raises(UsageError, match=r"there are kept, 20261121T01-default-b2, .*; did you mean '10-weak-c3'\?"):
        resolve_run("10-week-c3", results)


def test_two_copies_of_a_run_are_found_by_their_folders_and_their_common_id_names_both(results: Path) -> None:
    for name in ("copy-1", "copy-2"):
        shutil.copytree(results / "10-weak-c3", results / name)
    assert resolve_run("10-weak-c3", results) == results / "10-weak-c3"
    shutil.rmtree(results / "10-weak-c3")
    assert resolve_run("copy-1", results) == results / "copy-1"
    with pytest.raises(UsageError, match="RUN: '10-weak-c3' is the id of several runs: copy-2, copy-1"):
        resolve_run("10-weak-c3", results)


def test_a_folder_that_is_no_run_is_resolved_so_that_reading_it_gives_the_reason(results: Path) -> None:
    assert resolve_run("zz-broken", results) == results / "zz-broken"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026", "RUN: '2026' is the beginning of several runs: 20261121T01-default-b2, 20261121T01-default-b1"),
        ("10-week-c3", "did you mean '10-weak-c3'?"),
        ("nothing-like-it", "no run 'nothing-like-it' in"),
    ],
)
def test_a_name_that_finds_no_single_run_is_bad_usage_naming_those_there_are(
    results: Path, text: str, expected: str
) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_run(text, results)
    assert expected in str(caught.value)
    assert "10-weak-c3" in str(caught.value) or text == "2026"


def test_without_any_run_the_message_says_how_to_make_one(tmp_path: Path) -> None:
    for text in ("latest", RUN_ID):
        with pytest.raises(UsageError, match=r"there are no runs in .* yet; `python -m harness sweep` makes one"):
            resolve_run(text, tmp_path / "results")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("mesh", "batch", "expected batch:N, model:N or both"),
        ("network", "rate=fast", "expected"),
        ("replicas", -1, "expected greater than or equal to 1"),
    ],
)
@pytest.mark.parametrize("where", ["cells.0", "sweep"])
def test_a_damaged_key_of_a_cell_or_spec_is_refused_by_file_and_key(
    run: Path, key: str, value: object, says: str, where: str
) -> None:
    raw = json.loads((run / "run.json").read_text())
    damaged = raw["sweep"] if where == "sweep" else raw["cells"][0]
    damaged[key] = [value] if where == "sweep" else value
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(StorageError) as caught:
        load_run(run)
    assert str(caught.value).startswith(f"{run}/run.json: ")
    assert says in str(caught.value)
    assert f"{where}.{key}" in str(caught.value)
    assert str(caught.value).count(key) == 1


@pytest.mark.parametrize("key", ["name", "quantity"])
def test_what_a_damaged_text_of_a_spec_should_look_like_is_said_in_words(run: Path, key: str) -> None:
    raw = json.loads((run / "run.json").read_text())
    raw["sweep"][key] = "../x y"
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(StorageError) as caught:
        load_run(run)
    at = f"{key}.0" if key in AXES else key
    assert f"sweep.{at}: given '../x y', expected {PATTERNS[key]}" in str(caught.value)


def test_of_several_reasons_why_nothing_was_measured_the_most_frequent_are_said_with_their_numbers() -> None:
    assert str(NothingMeasured.of(["crashed: x", "crashed: x"])) == "nothing was measured: crashed: x"
    assert str(NothingMeasured.of([])) == "nothing was measured: no trial was run"
    assert str(NothingMeasured.of([*"abcda", "a"])) == (
        "nothing was measured: a (3 of 6 trials); b (1 of 6 trials); c (1 of 6 trials); and 1 other reason"
    )
