"""Runs of every kind as `report` gets them from disk: a page whole and honest, or one line that says what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run as harness
from harness.record.trial import TrialRecord
from harness.report.export import exporters
from tests.many import write_run
from tests.report.conftest import Open
from tests.report.golden import RUNS, Made, one_trial
from tests.report.pages import NASTY
from tests.synthetic import default_cells, make_run


def written(folder: Path, made: Made) -> Path:
    """The run on disk."""
    manifest, trials = made
    run = folder / "results" / manifest.run_id
    run.mkdir(parents=True)
    (run / "run.json").write_bytes(manifest.model_dump_json().encode("utf-8", "surrogatepass"))
    (run / "trials.jsonl").write_text("".join(trial.model_dump_json() + "\n" for trial in trials), encoding="utf-8")
    return run


def reported(run: Path) -> Path:
    page = run.parent.parent / "report.html"
    assert harness(["report", str(run), "--output", str(page)]) == 0
    return page


def sound(it: Any) -> None:
    """No figure without data, no empty axis, nothing that is no number."""
    it.quiet()
    words = it.page.evaluate("document.body.innerText")
    for wrong in ("NaN", "nan", "Infinity", "undefined", "[object", "None", "null"):
        assert wrong not in words.replace(NASTY, ""), wrong
    drawn = it.page.locator("figure svg[role=img]").evaluate_all(  # a key of a legend is one mark
        "all => all.map(svg => [svg.querySelectorAll('path, use, rect, circle').length, svg.getAttribute('viewBox')])"
    )
    for marks, box in drawn:
        assert marks > 1, "a figure without data"
        assert "NaN" not in box
    assert it.page.evaluate("document.querySelectorAll('figure:not(:has(svg))').length") == 0
    assert "NaN" not in it.page.evaluate(
        "[...document.querySelectorAll('svg [d], svg [x]')].map(e => e.outerHTML).join()"
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_every_kind_is_a_sound_page(opened: Open, tmp_path: Path, name: str) -> None:
    made = RUNS[name]()
    with opened(reported(written(tmp_path, made)), 900) as it:
        sound(it)
        if made[1]:
            count = it.page.locator("#trials-count").inner_text()
            assert count == f"{len(made[1])} trial{'s' if len(made[1]) != 1 else ''}"
            it.page.locator("#trials-table tbody button").first.click()
            it.page.get_by_role("dialog").wait_for()
            sound(it)
        else:
            assert it.page.locator("#trials").count() == 0
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 900


EARLIER: tuple[tuple[str, ...], ...] = (
    ("cell", "ps"),
    ("cell", "partitioner"),
    ("cell", "updates"),
    ("cluster",),
    ("updates",),
    ("plant",),
    ("side",),
    ("windows", "workers"),
    ("windows", "waiting_cpu_seconds"),
    ("phases", "waiting_s"),
    ("checks", "gate"),
    ("checks", "update_error"),
    ("checks", "losses_agree"),
    ("resources",),
    ("executed",),
    ("evidence",),
    ("attempt",),
    ("schema_version",),
)
"""Keys that records of earlier versions do not have."""


def test_records_of_earlier_versions_without_their_later_keys_are_a_page(opened: Open, tmp_path: Path) -> None:
    run = written(tmp_path, make_run(default_cells((1, 2), (32,))))
    lines = []
    for line in (run / "trials.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for *parents, key in EARLIER:
            part = record
            for parent in parents:
                part = part.get(parent) or {}
            part.pop(key, None)
        lines.append(json.dumps(record))
    (run / "trials.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with opened(reported(run)) as it:
        sound(it)
        assert it.page.locator("#trials-count").inner_text() == f"{len(lines)} trials"


def edited(**changes: object) -> bytes:
    _, trials = one_trial()
    return json.dumps(json.loads(trials[0].model_dump_json()) | changes).encode()


def windowed(**changes: object) -> bytes:
    _, trials = one_trial()
    record = json.loads(trials[0].model_dump_json())
    return json.dumps(record | {"windows": record["windows"] | changes}).encode()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "a huge line": (b'{"run_id": "' + b"x" * 30_000_000 + b'"}', "missing"),
    "deep nesting": (b"[" * 200_000 + b"]" * 200_000, "not valid JSON"),
    "wrong type": (edited(block="first"), "block: given 'first'"),
    "NaN": (edited(step_time_s=float("nan")), "step_time_s: given nan"),
    "infinity": (edited(throughput_examples_per_s=float("inf")), "throughput_examples_per_s: given inf"),
    "a window shorter than any clock": (windowed(seconds=[1e-322] * 12), "windows.seconds.0: given 1e-322"),
    "an age of processor time": (windowed(cpu_seconds=[1e308] * 12), "windows.cpu_seconds.0: given 1e+308"),
    "an endless phase": (edited(phases={"steady_s": 1.7e308}), "phases.steady_s: given 1.7e+308"),
    "memory of many digits": (edited(peak_memory_bytes=10**400), "peak_memory_bytes: given 1000"),
    "no time": (edited(started_utc="yesterday"), "started_utc: given 'yesterday'"),
    "another run": (edited(run_id="\x1b[2J" + "y" * 9999), "is not this run's"),
    "unknown key": (edited(**{"\x1b]0;title\x07" + "k" * 9999: 1}), "unknown key"),
    "a list": (b"[1, 2, 3]", "record: given [1, 2, 3]"),
    "a number of many digits": (b"9" * 100_000, "record"),
    "binary junk": (bytes(range(256)).replace(b"\n", b"") * 40, "not valid JSON"),
}


@pytest.mark.parametrize("place", ["before the last line", "last"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record_is_one_short_printable_line_or_a_torn_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, place: str
) -> None:
    run = written(tmp_path, one_trial())
    line, expected = HOSTILE[name]
    good = (run / "trials.jsonl").read_bytes()
    (run / "trials.jsonl").write_bytes(line + b"\n" + good if place != "last" else good + line + b"\n")
    code = harness(["report", str(run), "--output", str(tmp_path / "page.html")])
    said = capsys.readouterr().err
    if code == 0:  # what is not whole JSON at the very end is what a kill leaves, and is left out
        assert place == "last"
        assert name in ("binary junk", "a number of many digits")
        assert (tmp_path / "page.html").exists()
        return
    assert code == 4
    assert expected in said
    assert "trials.jsonl:" in said
    assert len(said) < 700
    assert said.count("\n") == 1
    assert said.strip().isprintable()
    assert not (tmp_path / "page.html").exists()


WORST = {"as short as a clock tells": 1e-9, "as long as a record holds": 1e9}


def at_the_bounds(seconds: float, blocks: int) -> Made:
    """Every other trial with windows of `seconds`, and all else as large as a record may hold it."""

    def changed(record: TrialRecord) -> TrialRecord:
        if record.block % 2 or record.windows is None:
            return record
        raw = json.loads(record.model_dump_json())
        count = len(raw["windows"]["seconds"])
        raw["windows"] |= {"seconds": [seconds] * count, "steps_per_window": 1, "sync_seconds": 1e9}
        raw["windows"] |= {"cpu_seconds": [1e9] * count, "rounds": [2**60] * count}
        raw |= {"step_time_s": seconds, "throughput_examples_per_s": record.cell.global_batch_size / seconds}
        raw |= {"phases": dict.fromkeys(raw["phases"], 1e9), "peak_memory_bytes": 2**60, "final_loss": 1.7e308}
        return TrialRecord.model_validate(raw | {"cpu_seconds_per_example": 1e9})

    manifest, trials = make_run(default_cells((1, 2), (32,)), blocks=blocks, faults=False, change=changed)
    machine = manifest.machine.model_copy(update={"facts": {**manifest.machine.facts, "git.revision": "a" * 40}})
    return manifest.model_copy(update={"machine": machine}), trials


@pytest.mark.parametrize(
    ("name", "blocks"),
    [("as short as a clock tells", 2), ("as long as a record holds", 1), ("as long as a record holds", 2)],
)
def test_the_most_extreme_records_there_may_be_are_a_page_a_text_and_every_export(
    opened: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, blocks: int
) -> None:
    run = written(tmp_path, at_the_bounds(WORST[name], blocks))
    with opened(reported(run)) as it:
        sound(it)
        it.page.locator("#trials-table tbody button").first.click()
        it.page.get_by_role("dialog").wait_for()
        sound(it)
    for verb in (["show"], ["show", "--json"], ["compare", "--along", "strategy"]):
        assert harness([verb[0], str(run), *verb[1:]]) in (0, 1, 4), verb
    for form in exporters():
        assert harness(["export", str(run), "--format", form, "--output", str(tmp_path / form)]) == 0, form
    assert "Traceback" not in capsys.readouterr().err


def test_facts_that_are_no_numbers_are_not_known_on_the_page_and_null_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written(tmp_path, one_trial())
    manifest = json.loads((run / "run.json").read_text())
    manifest["machine"]["facts"]["cpu.max_mhz"] = float("nan")
    (run / "run.json").write_text(json.dumps(manifest))
    page = reported(run).read_text(encoding="utf-8")
    assert "<dt>cpu.max_mhz</dt><dd>not known</dd>" in page
    capsys.readouterr()
    assert harness(["show", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["manifest"]["machine"]["facts"]["cpu.max_mhz"] is None


def test_a_run_that_calls_itself_a_path_is_reported_in_the_reports_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, trials = one_trial()
    away = "../../away\n"
    run = written(tmp_path, (manifest, trials))
    for name in ("run.json", "trials.jsonl"):
        text = (run / name).read_text()
        (run / name).write_text(text.replace(json.dumps(manifest.run_id), json.dumps(away)))
    monkeypatch.chdir(tmp_path)
    assert harness(["report", str(run)]) == 0
    assert sorted(page.name for page in (tmp_path / "reports").iterdir()) == ["..-..-away.html", "index.html"]


@pytest.fixture(scope="module")
def ten_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of so many trials, which is more than it has room for the windows of."""
    return reported(write_run(tmp_path_factory.mktemp("many") / "results", 10_000))


def test_ten_thousand_trials_are_a_page_under_five_megabytes_with_every_trial_in_it(
    opened: Open, ten_thousand: Path
) -> None:
    assert ten_thousand.stat().st_size < 5e6
    with opened(ten_thousand) as it:
        assert it.page.locator("#trials-count").inner_text() == "10,000 trials"
        it.page.get_by_label("Search").fill("mirrored ×2 b128 nccl")
        assert it.page.locator("#trials-count").inner_text().endswith(" of 10,000 trials")
        it.quiet()


def test_a_page_whose_windows_have_no_room_drops_no_trial_and_says_what_it_holds(
    opened: Open, ten_thousand: Path
) -> None:
    with opened(ten_thousand) as it:
        assert "All 10,000 trials are in the table" in it.page.locator("#trials").inner_text()
        it.page.locator("#trials-pager").get_by_role("button", name="Last").click()
        it.page.locator("#trials-table tbody button").last.click()
        it.page.get_by_role("dialog").wait_for()
        assert "Trial 10000: " in it.page.get_by_role("dialog").inner_text()
        it.quiet()
