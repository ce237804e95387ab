"""Commits between two recorded revisions."""

import subprocess
from pathlib import Path

import pytest

from harness.environment.commits import MOST, commits_between


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    git(tmp_path, "init", "-q")
    commits = []
    for number in range(4):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", f"change {number}")
        commits.append(git(tmp_path, "rev-parse", "HEAD"))
    return tmp_path, commits


def test_they_are_named_newest_first(repository: tuple[Path, list[str]]) -> None:
    folder, commits = repository
    found = commits_between(commits[0], commits[2], folder)
    assert [subject for _, subject in found.commits] == ["change 2", "change 1"]
    assert found.commits[0][0] == commits[2][: len(found.commits[0][0])]
    assert (found.count, found.remark) == (2, None)


def test_uncommitted_changes_are_said(repository: tuple[Path, list[str]]) -> None:
    folder, commits = repository
    found = commits_between(commits[0], f"{commits[1]}-dirty", folder)
    assert found.count == 1
    assert found.remark == "the run after had changes that were not committed"
    unknown = commits_between(f"{commits[0]}-unknown", f"{commits[1]}-dirty", folder)
    assert (unknown.count, unknown.remark) == (
        1,
        f"{found.remark}; the run before may have had changes that were not committed",
    )


def test_one_commit_twice_an_earlier_one_and_an_unknown_one_say_so(repository: tuple[Path, list[str]]) -> None:
    folder, commits = repository
    assert commits_between(commits[0], commits[0], folder).remark == "both ran the same commit"
    assert commits_between(commits[2], commits[0], folder).remark == "the later run ran an earlier commit"
    assert "not in the repository" in (commits_between("0" * 40, commits[0], folder).remark or "")
    assert "do not both say" in (commits_between(None, commits[0], folder).remark or "")


@pytest.mark.parametrize("hostile", ["--output=/tmp/x", "HEAD", "$(touch x)", "main..", "a" * 41, ""])
def test_what_is_no_hash_is_never_given_to_git(hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("git was called"))
    assert commits_between(hostile, "0" * 40, tmp_path).commits == ()


def test_many_are_counted_and_the_newest_named(repository: tuple[Path, list[str]]) -> None:
    folder, commits = repository
    for number in range(MOST + 5):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"more {number}")
    found = commits_between(commits[-1], git(folder, "rev-parse", "HEAD"), folder)
    assert (len(found.commits), found.count) == (MOST, MOST + 5)
