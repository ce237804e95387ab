"""Work trees of the user's repository: what they hold, and that nothing of the user's is touched."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.run.process.scratch import Scratch
from harness.run.process.worktrees import Repository
from tests.run.repositories import Repo


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go; and nobody's own git settings."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Two commits, below a folder with a space in its name; `first` is a tag of the older."""
    made = Repo.new(tmp_path / "my work" / "repo")
    made.commit({"net.py": "UNITS = 1\n", "sub/x.py": "X = 1\n"})
    made.git("tag", "first")
    made.commit({"net.py": "UNITS = 2\n"})
    return made


def around(repo: Repo, below: str = ".") -> Repository:
    return Repository.around(repo.root / below, "--rev-a")


def test_a_tree_holds_the_revision_and_goes_afterwards(repo: Repo, place: Path) -> None:
    repository = around(repo)
    before = repo.state()
    with repository.tree(repository.commit("first")) as tree:
        assert (tree / "net.py").read_text() == "UNITS = 1\n"
        assert place.resolve() in tree.parents
    assert list(place.iterdir()) == []
    assert repo.state() == before


def test_uncommitted_and_staged_work_is_untouched(repo: Repo) -> None:
    repo.write({"net.py": "UNITS = 3\n", "new.py": "staged\n", "loose.py": "untracked\n"})
    repo.git("add", "new.py")
    before = repo.state(), repo.git("status", "--porcelain"), repo.git("diff", "HEAD")
    repository = around(repo)
    assert repository.has_changes()
    with repository.tree(repository.commit("HEAD")) as tree:
        assert (tree / "net.py").read_text() == "UNITS = 2\n"
        assert not (tree / "new.py").exists()
    assert (repo.state(), repo.git("status", "--porcelain"), repo.git("diff", "HEAD")) == before


def test_looking_for_changes_does_not_write_the_index(repo: Repo) -> None:
    index = repo.root / ".git" / "index"
    os.utime(repo.root / "net.py")  # git would refresh its index for that
    before = index.stat().st_mtime_ns, index.read_bytes()
    assert not around(repo).has_changes()
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


def test_an_error_in_between_removes_the_tree_too(repo: Repo, place: Path) -> None:
    before = repo.state()
    repository = around(repo)
    with pytest.raises(KeyboardInterrupt), repository.tree(repository.commit("main")):
        raise KeyboardInterrupt
    assert list(place.iterdir()) == []
    assert repo.state() == before


def test_the_trees_of_a_killed_process_go_at_the_next_start_and_no_others(
    repo: Repo, place: Path, tmp_path: Path
) -> None:
    repo.git("worktree", "add", "--detach", "--quiet", str(tmp_path / "unmounted"), "first")
    shutil.rmtree(tmp_path / "unmounted")
    before = repo.state()
    code = f"""
import os, pathlib, signal
from harness.run.process.worktrees import Repository
repository = Repository.around(pathlib.Path({str(repo.root)!r}), "x")
with repository.tree(repository.commit("first")) as tree:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert "harness-ab" in repo.git("worktree", "list")
    repository = around(repo)
    with repository.tree(repository.commit("main")) as tree:
        assert repo.git("worktree", "list").count("harness-ab") == 1
        assert [entry.name for entry in place.iterdir()] == [tree.parent.name]
    assert repo.state() == before
    assert "unmounted" in before[3]


def test_the_tree_of_another_process_that_lives_stays(repo: Repo) -> None:
    repository = around(repo)
    with repository.tree(repository.commit("first")) as one, repository.tree(repository.commit("main")) as two:
        assert (one / "net.py").read_text() != (two / "net.py").read_text()
        Scratch().close()
        assert (one / "net.py").exists()


def test_ctrl_c_while_git_works_reaches_the_harness_and_not_git(repo: Repo, place: Path) -> None:
    # A smudge filter that takes its time, as a large checkout does
    repo.commit({".gitattributes": "*.slow filter=slow\n", "a.slow": "x\n"})
    repo.git("config", "filter.slow.smudge", f"touch '{place}/began'; sleep 5; cat")
    before = repo.state()
    code = f"""
import pathlib
from harness.run.process.worktrees import Repository
repository = Repository.around(pathlib.Path({str(repo.root)!r}), "x")
with repository.tree(repository.commit("main")) as tree:
    pass
"""
    # In the background of a shell Ctrl-C is ignored, and a child inherits that.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (place / "began").exists():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert b"KeyboardInterrupt" in said
    assert [entry.name for entry in place.iterdir()] == ["began"]
    assert repo.state() == before


@pytest.mark.parametrize("hook", ["post-checkout", "post-index-change"])
def test_no_hook_of_the_users_runs(repo: Repo, tmp_path: Path, hook: str) -> None:
    script = repo.root / ".git" / "hooks" / hook
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    script.chmod(0o755)
    repository = around(repo)
    with repository.tree(repository.commit("first")):
        pass
    assert not (tmp_path / "ran").exists()


def test_variables_that_a_hook_sets_do_not_lead_elsewhere(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo.new(tmp_path / "other")
    other.commit({"other.py": ""})
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    repository = around(repo)
    with repository.tree(repository.commit("first")) as tree:
        assert (tree / "net.py").read_text() == "UNITS = 1\n"
    assert not (tmp_path / "index").exists()


def test_from_a_folder_below_it_is_known_where_one_stands(repo: Repo) -> None:
    repository = around(repo, "sub")
    assert repository.root == repo.root.resolve()
    assert repository.below == Path("sub")


def test_a_folder_that_the_revision_has_not_is_named(repo: Repo) -> None:
    repo.commit({"later/y.py": ""})
    with pytest.raises(UsageError) as caught:
        around(repo, "later").commit("first")
    assert str(caught.value) == "--rev-a: 'first' has no folder 'later', where you are; go to one it has"


@pytest.mark.parametrize("revision", ["nowhere", "", "-h", "--all", "first..main", "first:net.py", "a b"])
def test_what_names_no_commit_is_said_in_one_line(repo: Repo, revision: str) -> None:
    with pytest.raises(UsageError) as caught:
        around(repo).commit(revision)
    assert str(caught.value) == f"--rev-a: '{revision}' names no commit of the repository"


@pytest.mark.parametrize("revision", ["main~1", "first", "HEAD^", "@~1", "HEAD^{/x}~1"])
def test_a_revision_is_whatever_git_takes_for_one(repo: Repo, revision: str) -> None:
    assert around(repo).commit(revision) == repo.git("rev-parse", "main~1").strip()


def test_in_a_shallow_clone_the_remedy_is_named(repo: Repo, tmp_path: Path) -> None:
    clone = Repo(tmp_path / "clone")
    repo.git("clone", "--quiet", "--depth=1", repo.root.as_uri(), str(clone.root))
    repository = around(clone)
    with repository.tree(repository.commit("HEAD")) as tree:
        assert (tree / "net.py").read_text() == "UNITS = 2\n"
    with pytest.raises(UsageError, match="shallow: git fetch --unshallow"):
        repository.commit("HEAD~1")


def test_outside_a_repository_and_in_a_bare_one_it_is_said(repo: Repo, tmp_path: Path) -> None:
    repo.git("clone", "--quiet", "--bare", str(repo.root), str(tmp_path / "bare"))
    for folder in (tmp_path, tmp_path / "bare", repo.root / ".git"):
        with pytest.raises(UsageError) as caught:
            Repository.around(folder, "--rev-b")
        assert str(caught.value) == "--rev-b: the working folder is in no git working tree"


def test_a_machine_without_git_is_told_so(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        around(repo)
    assert str(caught.value) == "--rev-a: needs git, which is not on the PATH"


def test_submodules_and_files_of_git_lfs_are_remarked_on(repo: Repo, tmp_path: Path) -> None:
    part = Repo.new(tmp_path / "part")
    part.commit({"p.py": ""})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.root), "part")
    commit = repo.commit({"data/.gitattributes": "*.npz filter=lfs diff=lfs merge=lfs -text\n"})
    repository = around(repo)
    assert repository.remarks(commit, "HEAD") == [
        "HEAD: submodules are empty in its work tree",
        "HEAD: files that git-lfs keeps are pointers in its work tree",
    ]
    assert repository.remarks(repository.commit("first"), "first") == []
    before = repo.state()
    with repository.tree(commit) as tree:
        assert list((tree / "part").iterdir()) == []
    assert repo.state() == before


def test_without_git_lfs_its_files_stay_pointers(repo: Repo) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    repo.commit({".gitattributes": "*.npz filter=lfs\n", "a.npz": pointer})
    for key, value in {
        "smudge": "no-such-git-lfs smudge",
        "process": "no-such-git-lfs process",
        "required": "true",
    }.items():
        repo.git("config", f"filter.lfs.{key}", value)
    repository = around(repo)
    with repository.tree(repository.commit("HEAD")) as tree:
        assert (tree / "a.npz").read_text() == pointer


def test_a_checkout_that_fails_says_why_and_leaves_nothing(repo: Repo, place: Path) -> None:
    repo.commit({".gitattributes": "*.secret filter=crypt\n", "a.secret": "x\n"})
    repo.git("config", "filter.crypt.smudge", "false")
    repo.git("config", "filter.crypt.required", "true")
    before = repo.state()
    repository = around(repo)
    with pytest.raises(UsageError, match=r"--rev-a: git cannot make a work tree in .*crypt") as caught:
        repository.tree(repository.commit("HEAD")).__enter__()
    assert "\n" not in str(caught.value)
    assert list(place.iterdir()) == []
    assert repo.state() == before
