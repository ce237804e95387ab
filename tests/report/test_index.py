"""The index of a folder of reports: right after every report, whatever else is in the folder."""

import multiprocessing
import os
import subprocess
from pathlib import Path

import pytest

from harness.analysis.faults import summarise_faults
from harness.analysis.history.series import history
from harness.cli import run
from harness.errors import StorageError
from harness.record.reading import load_run
from harness.report.faults.page import faults_page
from harness.report.history import history_page
from harness.report.page import index as index_module
from harness.report.page.index import update_index
from harness.report.page.report import write_report
from tests.comparisons import as_run, stored
from tests.faulted import PLAN, example, run_manifest
from tests.report.pages import NASTY, Page
from tests.synthetic import make_cell, make_run

ROOT = Path(__file__).parents[2]


def report(folder: Path, name: str = "a.html", **changes: object) -> Path:
    manifest, trials = make_run([make_cell()], blocks=2, faults=False, **changes)  # type: ignore[arg-type]
    write_report(manifest, trials, folder / name)
    return folder / name


def listed(folder: Path) -> Page:
    written = update_index(folder)
    assert written is not None
    return Page(written.read_text(encoding="utf-8"))


def links(page: Page) -> list[str | None]:
    return [attributes["href"] for attributes in page.named("a")]


def test_it_lists_each_report_with_its_answer_and_date(tmp_path: Path) -> None:
    report(tmp_path, "one.html", created_utc="2026-11-20T10:00:00Z")
    report(tmp_path, "two.html", created_utc="2026-11-21T11:30:00+00:00")
    page = listed(tmp_path)
    assert links(page) == ["two.html", "one.html"]
    assert "2026-11-20 10:00" in page.words
    assert "Fastest: no strategy, one device, batch 32" in page.words
    assert "2 reports" in page.words


@pytest.mark.parametrize("ignored", ["", "reports/\n"])
def test_a_new_folder_of_reports_that_git_does_not_ignore_is_told_once_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ignored: str
) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(ignored)
    monkeypatch.chdir(tmp_path)
    small = as_run(*make_run([make_cell()], blocks=1, faults=False), "20260101T000000Z-small-0001")
    arguments = ["report", str(stored(small, tmp_path.parent / f"{tmp_path.name}-kept"))]
    assert run(arguments) == 0
    told = "harness: git does not ignore the new reports: echo '*' > reports/.gitignore\n"
    assert capsys.readouterr().err == ("" if ignored else told)
    assert run(arguments) == 0
    assert capsys.readouterr().err == "", "the folder was there"
    assert run([*arguments, "--output", "elsewhere/page.html"]) == 0
    assert capsys.readouterr().err == "", "somebody named the place"
    (tmp_path / "reports" / ".gitignore").write_text("*\n")
    left = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "reports" not in left.stdout


def test_a_report_that_is_gone_is_gone_from_the_next_index(tmp_path: Path) -> None:
    gone = report(tmp_path, "gone.html")
    report(tmp_path, "stays.html")
    assert "gone.html" in links(listed(tmp_path))
    gone.unlink()
    assert links(listed(tmp_path)) == ["stays.html"]


def test_hostile_and_unreadable_files_do_no_harm(tmp_path: Path) -> None:
    report(tmp_path, "good.html")
    (tmp_path / "junk.html").write_bytes(os.urandom(200_000))
    (tmp_path / "declared.html").write_text("<![\x00 no name", encoding="utf-8")
    (tmp_path / "empty.html").touch()
    (tmp_path / "other.html").write_text("<title>My holiday</title>", encoding="utf-8")
    (tmp_path / "gone.html").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.html").mkdir()
    evil = '<meta name="harness-kind" content="run"><meta name="harness-headline" content="{}">'
    (tmp_path / "javascript:alert(1)#?.html").write_text(
        evil.format("&lt;script>alert(1)&lt;/script>" + "x" * 10_000), encoding="utf-8"
    )
    (tmp_path / "kind.html").write_text('<meta name="harness-kind" content="<script>">', encoding="utf-8")
    name = os.fsencode(tmp_path) + b"/\xff\xfe'\".html"
    Path(os.fsdecode(name)).write_text(evil.format("bytes"), encoding="utf-8")
    page = listed(tmp_path)
    assert set(links(page)) == {"good.html", "javascript%3Aalert%281%29%23%3F.html", "%FF%FE%27%22.html"}
    assert len(page.named("script")) == 1
    assert "<script>alert(1)</script>" in page.words
    assert "5 other pages in this folder" in page.words
    assert max(map(len, page.text)) < 1000


def test_names_of_a_report_are_text_in_the_index(tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell(model=NASTY)], blocks=2, faults=False)
    write_report(manifest, trials, tmp_path / "nasty.html")
    assert len(listed(tmp_path).named("script")) == 1


def test_a_page_of_an_earlier_version_is_listed_by_its_title(tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text("<title>run-1 · distributed training benchmark</title>", encoding="utf-8")
    page = listed(tmp_path)
    assert links(page) == ["old.html"]
    assert "run-1" in page.words
    assert "made by an earlier version" in page.words


def test_an_index_that_is_not_ours_is_left_alone_and_the_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "index.html").write_text("my own page", encoding="utf-8")
    assert run(["report", str(ROOT / "results" / "reference"), "--output", str(folder / "r.html")]) == 0
    assert (folder / "index.html").read_text(encoding="utf-8") == "my own page"
    assert (folder / "r.html").exists()
    assert "is not of this harness and stays as it is" in capsys.readouterr().err


def test_compare_writes_the_index_beside_a_page_and_beside_nothing_else(tmp_path: Path) -> None:
    compare = ["compare", str(ROOT / "results" / "reference"), "--along", "replicas", "--base", "1"]
    folder = tmp_path / "reports"
    run([*compare, "--output", str(folder / "c.md")])
    assert not (folder / "index.html").exists()
    run([*compare, "--output", str(folder / "c.html")])
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    assert links(page) == ["c.html"]
    assert "comparison" in page.words


def test_a_folder_without_a_report_says_so(tmp_path: Path) -> None:
    assert "There is no report in this folder yet" in listed(tmp_path).words


def test_a_folder_that_is_held_for_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_PATIENCE_S", 0.05)
    with index_module._alone(tmp_path), pytest.raises(StorageError, match="the report itself is written"):
        update_index(tmp_path)


def _write_many(folder: Path, start: int) -> None:
    for number in range(start, start + 20):
        page = folder / f"r{number:03d}.html"
        page.write_text('<meta name="harness-kind" content="run">', encoding="utf-8")
        assert update_index(folder) is not None


def test_writers_at_the_same_time_lose_no_report_and_leave_a_whole_index(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(tmp_path, start)) for start in (0, 100, 200)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    page = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert len(links(page)) == 60
    assert not list(tmp_path.glob(".*"))


def test_history_and_faults_pages_are_listed_with_what_they_found(tmp_path: Path) -> None:
    series = history(load_run(ROOT / "results" / "reference") for _ in range(2))
    (tmp_path / "history.html").write_text(history_page(series, {}, 2, None), encoding="utf-8")
    text = faults_page(run_manifest(), summarise_faults(PLAN, example()))
    (tmp_path / "faults.html").write_text(text, encoding="utf-8")
    page = listed(tmp_path)
    assert set(links(page)) == {"history.html", "faults.html"}
    assert "other page" not in page.words
    assert "2 runs" in page.words
    assert "of 5 disturbed jobs reached the last step with the right state" in page.words
    assert {"history", "faults"} <= set(page.words.split())


def test_history_writes_the_index_beside_its_page(tmp_path: Path) -> None:
    runs = ["--results", str(ROOT / "results")]
    assert run(["history", *runs, "--output", str(tmp_path / "reports" / "h.html")]) == 0
    assert links(Page((tmp_path / "reports" / "index.html").read_text(encoding="utf-8"))) == ["h.html"]


def test_half_written_pages_go_once_nobody_can_be_writing_them(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (f".{'0' * 16}.tmp", f".{'1' * 16}.tmp", ".mine.tmp"))
    for file in (old, new, other):
        file.write_text("<")
    for file in (old, other):
        os.utime(file, (0, 0))
    update_index(tmp_path)
    assert {path.name for path in tmp_path.glob(".*.tmp")} == {new.name, other.name}
