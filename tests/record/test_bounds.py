"""What no machine could have measured is refused by key; whatever one could is read back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import harness as api
from harness.errors import StorageError
from harness.record import RunStore, list_runs, load_run, schema
from harness.record.imported import PublishedFigure
from harness.record.manifest import Machine
from tests.record.examples import failed_trial, manifest, trial

Change = Callable[[dict[str, Any]], object]
MANY_DIGITS = 10**400


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of one trial."""
    with RunStore.create(tmp_path / "results", manifest()) as store:
        store.append(trial())
    return store.path


def edit(file: Path, change: Change) -> None:
    """Change the one record that `file` holds."""
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record) + "\n")


IMPOSSIBLE: dict[str, Change] = {
    "windows.cpu_seconds.0": lambda r: r["windows"]["cpu_seconds"].__setitem__(0, 1e308),
    "windows.seconds.3": lambda r: r["windows"]["seconds"].__setitem__(3, 1e-322),
    "windows.seconds.4": lambda r: r["windows"]["seconds"].__setitem__(4, 1e10),
    "windows.steps_per_window": lambda r: r["windows"].update(steps_per_window=MANY_DIGITS),
    "windows.rounds.0": lambda r: r["windows"]["rounds"].__setitem__(0, MANY_DIGITS),
    "phases.steady_s": lambda r: r["phases"].update(steady_s=1.7e308),
    "peak_memory_bytes": lambda r: r.update(peak_memory_bytes=MANY_DIGITS),
    "peak_device_memory_bytes": lambda r: r.update(peak_device_memory_bytes=2**61),
    "step_time_s": lambda r: r.update(step_time_s=1e-300),
    "throughput_examples_per_s": lambda r: r.update(throughput_examples_per_s=1e300),
    "cpu_seconds_per_example": lambda r: r.update(cpu_seconds_per_example=1e300),
    "block": lambda r: r.update(block=MANY_DIGITS),
    "checks.updates_applied": lambda r: r["checks"].update(updates_applied=MANY_DIGITS),
    "executed.packs": lambda r: r["executed"].update(packs=MANY_DIGITS),
    "resources.inter_op_threads": lambda r: r["resources"].update(inter_op_threads=-MANY_DIGITS),
    "cell.global_batch_size": lambda r: r["cell"].update(global_batch_size=MANY_DIGITS),
}


@pytest.mark.parametrize("key", IMPOSSIBLE)
def test_a_number_that_nobody_measured_is_one_line_that_names_its_key(run: Path, key: str) -> None:
    edit(run / "trials.jsonl", IMPOSSIBLE[key])
    with pytest.raises(StorageError) as caught:
        load_run(run)
    assert str(caught.value).startswith(f"{run}/trials.jsonl:1: {key}: given ")
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", IMPOSSIBLE)
def test_the_published_schema_refuses_it_too(run: Path, key: str) -> None:
    record = json.loads((run / "trials.jsonl").read_text())
    IMPOSSIBLE[key](record)
    published = json.loads((schema.FOLDER / "trial-1.json").read_text(encoding="utf-8"))
    assert not jsonschema.Draft202012Validator(published).is_valid(record)


def test_what_is_merely_extreme_is_read_back(tmp_path: Path) -> None:
    """A step of a nanosecond, a day for a window, a terabyte, a check that timed out at 0 s."""
    record = json.loads(trial().model_dump_json())
    record["windows"]["seconds"][:2] = [1e-9, 86_400.0]
    record["windows"]["cpu_seconds"][:2] = [0.0, 1e6]
    record |= {"peak_memory_bytes": 2**40, "step_time_s": 1e-9, "throughput_examples_per_s": 6.4e10}
    record["phases"] |= {"check_s": 0.0, "waiting_s": 7 * 86_400.0}
    with RunStore.create(tmp_path, manifest()) as store:
        (store.path / "trials.jsonl").write_text(json.dumps(record) + "\n")
    [read] = load_run(store.path).trials
    assert json.loads(read.model_dump_json()) == record


def test_the_reference_run_is_within_all_bounds() -> None:
    assert len(load_run(Path("results/reference")).trials) == 114


NO_TIMES = (
    "yesterday",
    "",
    "20261121T012345Z",
    "2026-11-31T00:00:00Z",
    "2026-W47-6",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2026-11-21T01:23:45+99:00",
    "2026-11-21T01:23:45Z\x1b[2J",
    "٢٠٢٦-11-21T01:23:45Z",
)
TIMES = (
    "2026-11-21T01:23:45+00:00",
    "2026-11-21T01:23:45.678+00:00",
    "2026-11-21T01:23:45Z",
    "2026-11-21T03:23:45+02:00",
    "2026-11-21T01:23:45",
    "2026-11-21 01:23",
    "2026-11-21",
    "1970-01-01T00:00:00Z",
)


@pytest.mark.parametrize("text", NO_TIMES)
def test_a_time_that_is_none_is_refused_where_it_stands(run: Path, text: str) -> None:
    edit(run / "trials.jsonl", lambda r: r.update(started_utc=text))
    with pytest.raises(StorageError, match=r"trials\.jsonl:1: started_utc: given .*, expected a time such as 2026"):
        load_run(run)
    edit(run / "run.json", lambda r: r.update(created_utc=text))
    with pytest.raises(StorageError, match=r"run\.json: created_utc: given .*, expected a time such as 2026"):
        load_run(run)


@pytest.mark.parametrize("text", TIMES)
def test_every_usual_way_to_write_a_time_is_read_by_the_frames_too(run: Path, text: str) -> None:
    edit(run / "trials.jsonl", lambda r: r.update(started_utc=text))
    edit(run / "run.json", lambda r: r.update(created_utc=text, finished_utc=text))
    assert api.load(run)["started_utc"].notna().all()
    assert api.runs(run.parent)["finished_utc"].notna().all()


def test_a_run_with_a_broken_time_does_not_hide_the_others(run: Path) -> None:
    with RunStore.create(run.parent, manifest("broken")) as other:
        pass
    edit(other.path / "run.json", lambda r: r.update(finished_utc="soon"))
    good, bad = sorted(list_runs(run.parent), key=lambda row: row.problem is not None)
    assert good.problem is None
    assert bad.problem is not None
    assert "finished_utc: given 'soon'" in bad.problem
    assert list(api.runs(run.parent)["problem"].isna()) == [False, True]


def test_a_fact_that_is_no_number_is_not_known(run: Path) -> None:
    edit(run / "run.json", lambda r: r["machine"]["facts"].update({"a": float("nan"), "b": float("-inf"), "c": 0.5}))
    facts = load_run(run).manifest.machine.facts
    assert (facts["a"], facts["b"], facts["c"]) == (None, None, 0.5)
    assert Machine(facts={"measured": float("nan")}).facts == {"measured": None}


def test_a_fact_of_more_digits_than_any_machine_has_is_refused(run: Path) -> None:
    limit = 2**63 - 1  # how a kernel says that there is none
    edit(run / "run.json", lambda r: r["machine"]["facts"].update({"memory.limit_bytes": limit}))
    assert load_run(run).manifest.machine.facts["memory.limit_bytes"] == limit
    edit(run / "run.json", lambda r: r["machine"]["facts"].update({"memory.limit_bytes": MANY_DIGITS}))
    with pytest.raises(StorageError, match=r"machine\.facts\.memory\.limit_bytes.*: given a number of 401 digits"):
        load_run(run)


def test_a_trial_that_failed_with_a_loss_that_is_no_number_is_still_written(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        store.append(failed_trial(final_loss=float("nan")))
    assert load_run(store.path).trials[0].final_loss is None


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"strategy": "x", "model": "m"}, "replicas is missing"),
        ({"strategy": "x", "model": "m", "replicas": "two"}, "replicas: given 'two', expected a count"),
        ({"strategy": "x", "model": "m", "replicas": True}, "replicas: given 'True', expected a count"),
        ({"strategy": 3, "model": "m", "replicas": 1}, "strategy: given '3', expected a name"),
        ({"strategy": "x", "model": "m", "replicas": 1, "workers": MANY_DIGITS}, "workers: expected a count"),
        ({"strategy": "x", "model": "m", "replicas": 1, "colour": "red"}, "'colour' is no key of a cell"),
    ],
)
def test_keys_of_a_published_figure_are_those_of_a_cell(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PublishedFigure(row=2, keys=keys, throughput_examples_per_s=1.0)
