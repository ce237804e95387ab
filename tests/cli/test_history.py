"""`history`, `report --base` and the other verbs that read runs, on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.record import Machine, RunStore
from harness.spec.sweep import PROVING, Sweep
from tests.synthetic import make_cell, make_run

Run = Callable[..., tuple[int, str, str]]
CELLS = [make_cell("none"), make_cell("mirrored", 2)]


def store(
    results: Path,
    number: int,
    slow: float = 1.0,
    machine: str = "here",
    hosts: dict[str, Any] | None = None,
    sweep: Sweep | None = None,
    **facts: Any,
) -> str:
    """A run of two cells in `results`, the mirrored one slower by `slow`; its id."""

    def slower(record: Any) -> Any:
        if record.cell.strategy != "mirrored":
            return record
        windows = record.windows.model_copy(update={"seconds": [value * slow for value in record.windows.seconds]})
        return record.model_copy(
            update={
                "windows": windows,
                "step_time_s": record.step_time_s * slow,
                "throughput_examples_per_s": record.throughput_examples_per_s / slow,
            }
        )

    run_id = f"202611{number + 1:02d}T010000Z-nightly-{number:04x}"
    created = f"2026-11-{number + 1:02d}T01:00:00+00:00"
    manifest, trials = make_run(
        CELLS,
        blocks=3,
        seed=number,
        drift=0.01,
        windows=5,
        faults=False,
        change=slower,
        run_id=run_id,
        created_utc=created,
    )
    known = {**manifest.machine.facts, "machine.id": machine, **facts}
    elsewhere = {name: Machine(facts={**known, **more}) for name, more in (hosts or {}).items()}
    started = manifest.machine.model_copy(update={"facts": known})
    changes = {"machine": started, "hosts": elsewhere, "sweep": sweep or manifest.sweep}
    manifest = manifest.model_copy(update=changes)
    with RunStore.create(results, manifest) as writer:
        for trial in trials:
            writer.append(trial.model_copy(update={"run_id": run_id}))
    return run_id


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    """Fourteen runs; TensorFlow changes before the ninth, and one cell is 10 % slower from then on."""
    for number in range(14):
        changed = number >= 8
        version = "2.21.0" if changed else "2.20.0"
        store(tmp_path / "results", number, 1.1 if changed else 1.0, **{"package.tensorflow": version})
    return tmp_path / "results"


def test_a_change_is_marked_with_its_size_the_runs_and_what_differed(harness: Run, nightly: Path) -> None:
    code, out, error = harness("history", "--cell", "mirrored")
    assert (code, error) == (0, "")
    assert "none ×1" not in out
    [line] = [line for line in out.splitlines() if "× no strategy: −" in line]
    assert "−9." in line
    assert "from run 20261108T010000Z-nightly-0007 to run 20261109T010000Z-nightly-0008" in line
    assert "package.tensorflow: 2.20.0 → 2.21.0" in out
    assert "the runs do not both say which commit they ran" in out
    assert nightly.is_dir()


def test_runs_that_were_proved_and_not_timed_are_left_out_and_counted(harness: Run, nightly: Path) -> None:
    before = harness("history", "--json")[1]
    for number in (20, 21):
        store(nightly, number, sweep=Sweep(name="suite", **PROVING))
    code, out, error = harness("history", "--json")
    assert (code, error) == (0, "harness: left out: 2 runs proved, not timed\n")
    assert out == before
    store(nightly, 22, sweep=Sweep(name="suite", **{**PROVING, "max_warmup": 1}))
    assert json.loads(harness("history", "--json")[1])["runs"] == 15


def test_a_label_can_be_typed_on_a_keyboard_without_its_sign(harness: Run, nightly: Path) -> None:
    for typed in ("mirrored x2", "mirrored ×2"):
        found = json.loads(harness("history", "--cell", typed, "--json", "--results", str(nightly))[1])
        assert {series["label"] for series in found["series"]} == {"mirrored ×2 b32"}


def test_as_json_it_is_one_object(harness: Run, nightly: Path) -> None:
    code, out, _ = harness("history", "--json", "--results", str(nightly))
    found = json.loads(out)
    assert code == 0
    assert found["runs"] == 14
    labels = [(series["label"], series["measure"]) for series in found["series"]]
    assert labels == [("none ×1 b32", "throughput"), ("mirrored ×2 b32", "throughput"), ("mirrored ×2 b32", "speed-up")]
    assert found["series"][0]["changes"] == []
    [change] = found["series"][2]["changes"]
    assert change["index"] == 8
    assert change["ratio"] == pytest.approx(1 / 1.1, abs=0.01)
    assert {"key": "package.tensorflow", "before": "2.20.0", "after": "2.21.0"} in change["environment"]


def test_the_page_has_a_figure_for_each_series_with_caption_and_text_alternative(harness: Run, nightly: Path) -> None:
    assert harness("history", "--output", "history.html")[0] == 0
    page = (nightly.parent / "history.html").read_text(encoding="utf-8")
    assert page.count("<figcaption>") == page.count("<svg") == page.count('role="img"') == 3
    told = (
        "14 runs, each with its own 95 % interval, of its own minutes; lines are levels, dashed where they change: −9."
    )
    assert told in page
    assert "E-divisive" in page
    assert "http" not in page.replace("http://www.w3.org", "")


NODES = {"n1": {"machine.id": "aaa", "cpu.model": "one"}, "n2": {"machine.id": "bbb", "cpu.model": "one"}}
OTHER_NODES = {"n1": NODES["n1"], "n3": {"machine.id": "ccc", "cpu.model": "another"}}


def test_runs_on_other_nodes_are_of_other_machines_though_started_on_the_same_one(harness: Run, tmp_path: Path) -> None:
    first = store(tmp_path / "results", 0, hosts=NODES)
    store(tmp_path / "results", 1, hosts=NODES)
    other = store(tmp_path / "results", 2, hosts=OTHER_NODES)
    found = json.loads(harness("history", "--cell", "mirrored", "--json")[1])
    assert {(series["machine"], len(series["points"])) for series in found["series"]} == {
        ("aaa | bbb", 2),
        ("aaa | ccc", 1),
    }
    code, _, error = harness("compare", first, other)
    assert code == 4
    assert "the runs' machines differ in what decides speed" in error
    assert "cpu.model: one → another | one" in error


def test_machines_are_kept_apart_and_few_runs_are_said_to_be_few(harness: Run, tmp_path: Path) -> None:
    for number in range(3):
        store(tmp_path / "results", number, machine="one" if number < 2 else "other")
    found = json.loads(harness("history", "--json")[1])
    assert {(series["machine"], len(series["points"])) for series in found["series"]} == {("one", 2), ("other", 1)}
    assert not any(series["long_enough"] for series in found["series"])
    assert "too few runs (2 of 9)" in harness("history")[1]


def test_runs_that_have_not_finished_are_named_and_no_part_of_a_series(harness: Run, tmp_path: Path) -> None:
    names = [store(tmp_path, night) for night in range(3)]
    path = tmp_path / names[1] / "run.json"
    path.write_text(path.read_text().replace('"finished"', '"interrupted"', 1))
    code, out, err = harness("history", "--results", str(tmp_path), "--json")
    assert code == 0
    assert err.splitlines() == [f"harness: left out: {names[1]} has not finished (interrupted)"]
    assert {point["run_id"] for one in json.loads(out)["series"] for point in one["points"]} == {names[0], names[2]}


def test_no_runs_an_unknown_cell_and_an_unreadable_run_say_so(harness: Run, tmp_path: Path) -> None:
    assert "No series in 0 runs" in harness("history")[1]
    store(tmp_path / "results", 0)
    code, _, error = harness("history", "--cell", "nothing")
    assert (code, error.count("\n")) == (2, 1)
    broken = tmp_path / "results" / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{}")
    code, out, error = harness("history", "--json")
    assert code == 0
    assert json.loads(out)["runs"] == 1
    assert "left out" in error


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    results = tmp_path / "results"
    old = store(results, 0, **{"package.tensorflow": "2.20.0"})
    return old, store(results, 1, 1.3, **{"package.tensorflow": "2.21.0"})


def test_a_report_with_a_base_run_has_verdicts_then_sizes_and_names_what_differs(
    harness: Run, two: tuple[str, str], tmp_path: Path
) -> None:
    code, out, error = harness("report", two[1], "--base", two[0], "--output", "page.html")
    assert (code, error) == (0, "")
    assert f"against {two[0]}: 1 slower, 1 undecided\n" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="base"') :]
    places = [
        section.index(text)
        for text in ("<strong>1 slower, 1 undecided.</strong>", "The environments differ", "Sizes", "<svg")
    ]
    assert places == sorted(places)
    assert "package.tensorflow" in section
    assert "2.20.0" in section
    assert f"Compared with run {two[0]}" in page


def test_a_base_run_that_makes_no_sense_is_bad_usage(harness: Run, two: tuple[str, str]) -> None:
    for arguments, says in (
        (["--base", two[1]], "--base: '"),
        (["--base", "nothing"], "no run 'nothing'"),
        (["--across-machines"], "--across-machines: is for a comparison"),
    ):
        code, _, error = harness("report", two[1], *arguments)
        assert (code, error.count("\n")) == (2, 1)
        assert says in error


def test_open_shows_the_page_in_the_browser_that_is_named(
    harness: Run, two: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("BROWSER", "a-browser")
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)) or True)
    code, _, error = harness("report", two[0], "--open", "--output", "a page.html")
    assert (code, error) == (0, "")
    assert opened == [(tmp_path / "a page.html").as_uri()]


def test_open_says_what_to_do_where_there_is_no_browser(
    harness: Run, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    code, out, error = harness("report", two[0], "--open")
    assert code == 0
    assert "report: reports/" in out
    assert "no browser was found here" in error
    assert "BROWSER" in error


KEYS = {
    ("report", "latest"): {"run_id", "report", "answer"},
    ("show", "latest"): {"manifest", "trials"},
    ("compare", "20261101", "20261102"): {"verdict", "rows", "kind"},
    ("sweep", "--dry-run"): {"cells", "plan", "trials", "estimate_s"},
    ("history",): {"series", "runs", "schema_version"},
}


@pytest.mark.parametrize("arguments", KEYS, ids=" ".join)
def test_json_is_one_object_with_the_documented_keys_and_nothing_else(
    harness: Run, two: tuple[str, str], arguments: tuple[str, ...]
) -> None:
    assert len(two) == 2
    code, out, error = harness(*arguments, "--json")
    assert code in (0, 1), error
    assert json.loads(out).keys() >= KEYS[arguments]
    assert error == ""


def test_list_is_one_array(harness: Run, two: tuple[str, str]) -> None:
    rows = json.loads(harness("list", "--json")[1])
    assert [row["run_id"] for row in rows] == list(two)
    documented = (Path(__file__).parents[2] / "docs" / "scripting.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in documented for key in rows[0])


@pytest.mark.parametrize("width", [40, 90, 130, 200])
def test_show_says_what_was_measured_the_answer_and_each_cells_windows(
    harness: Run, two: tuple[str, str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.report.comparison import Surface

    monkeypatch.setattr("harness.cli._table.surface", lambda: Surface(width))
    out = harness("show", two[0])[1]
    assert "Measured 2026-11-01 01:00 UTC" in out
    assert "The answer\n  " in out
    assert max(map(len, out.splitlines())) <= width
    windows = any(set("▁▂▃▄▅▆▇█") & set(line) for line in out.splitlines() if "none" in line or "mirrored" in line)
    assert windows == (width >= 130)
    assert windows != ("'windows': a terminal of" in " ".join(out.split())), "what there is no room for is told"
    assert " – " in out, "and the intervals stay"
    assert "What failed" not in out
