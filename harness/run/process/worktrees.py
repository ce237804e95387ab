"""Revisions of the user's own git repository, each in a work tree that is gone afterwards.

Nothing here writes to the user's branches, index or files. What git needs while a work tree is there
(`.git/worktrees/…`) is removed with it.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.run.process.scratch import SCRATCH_NAME, Scratch

TREE = "harness-ab"
"""What a work tree is called, in `git worktree list` too."""

_WHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
)
"""Set inside a hook, for one: git would go by these and not by the working folder."""

_QUIETLY = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false")
"""No hook of the user's runs, no daemon is left to watch the work tree, and nothing is fetched for submodules."""

_WITHOUT_LFS = ("-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false")
"""Files that git-lfs keeps stay pointers: it may not be installed, and must not ask a network."""


@dataclass(frozen=True)
class Repository:
    """A git repository with a working tree, as seen from a folder in it."""

    root: Path
    """The top folder of the working tree, symbolic links resolved."""
    below: Path
    """The folder that it was found from, relative to `root`."""
    flag: str
    """What an error begins with, such as `--rev-a`."""

    @classmethod
    def around(cls, folder: Path, flag: str) -> "Repository":
        """The repository that holds `folder`; UsageError without one, or without git."""
        done = _git(folder, flag, "rev-parse", "--show-toplevel")
        if done.returncode:
            absent = "not a git repository" in done.stderr or "run in a work tree" in done.stderr
            what = "the working folder is in no git working tree" if absent else _said(done.stderr)
            if "dubious ownership" in done.stderr:
                what += "; git config --global --add safe.directory with that folder, if you trust it"
            raise UsageError(f"{flag}: {what}")
        root = Path(done.stdout.removesuffix("\n")).resolve()
        return cls(root, folder.resolve().relative_to(root), flag)

    def commit(self, revision: str) -> str:
        """The full hash of the commit that `revision` names now.

        UsageError when it names none, or one that has not the folder that the repository was found from.
        """
        if revision and not revision.startswith("-"):
            done = self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
            if not done.returncode:
                self._check_folder(done.stdout.strip(), revision)
                return done.stdout.strip()
        hint = ""
        if self._git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
            hint = "; this clone is shallow: git fetch --unshallow (or, in CI, a full checkout)"
        raise UsageError(f"{self.flag}: '{revision}' names no commit of the repository{hint}")

    def _check_folder(self, commit: str, revision: str) -> None:
        if self.below != Path() and self._git("cat-file", "-e", f"{commit}:{self.below.as_posix()}").returncode:
            raise UsageError(f"{self.flag}: '{revision}' has no folder '{self.below}', where you are; go to one it has")

    def has_changes(self) -> bool:
        """Whether tracked files differ from HEAD."""
        return bool(self._git("status", "--porcelain", "--untracked-files=no", "--ignore-submodules").stdout)

    def has_other_code(self) -> bool:
        """Whether the working tree's code may be other than HEAD's: it has changes, or modules unknown to git."""
        unknown = self._git("ls-files", "--others", "--exclude-standard", "--", "*.py")
        return self.has_changes() or bool(unknown.stdout)

    def is_at(self, revision: str) -> bool:
        """Whether the working tree's code is that of `revision`. UsageError when that names no commit."""
        return self.commit(revision) == self.commit("HEAD") and not self.has_other_code()

    def remarks(self, commit: str, revision: str) -> list[str]:
        """What a work tree of `commit` lacks, as sentences."""
        found = []
        if not self._git("cat-file", "-e", f"{commit}:.gitmodules").returncode:
            found.append(f"{revision}: submodules are empty in its work tree")
        if not self._git("grep", "-q", "-e", "filter=lfs", commit, "--", "*.gitattributes").returncode:
            found.append(f"{revision}: files that git-lfs keeps are pointers in its work tree")
        return found

    @contextlib.contextmanager
    def tree(self, commit: str) -> Iterator[Path]:
        """A work tree of `commit` in a temporary folder, removed afterwards.

        UsageError when git cannot make one. A process that is killed leaves it behind until the next
        start: see `Scratch`.
        """
        try:
            scratch = Scratch()  # which also removes what a killed process has left
        except OSError as error:
            raise UsageError(f"{self.flag}: TMPDIR: no folder for a work tree: {error.strerror or error}") from None
        tree = scratch.path / TREE
        try:
            self._forget_lost_trees()
            done = self._git("worktree", "add", "--detach", "--quiet", str(tree), commit, options=_WITHOUT_LFS)
            if done.returncode:
                raise UsageError(f"{self.flag}: git cannot make a work tree in '{scratch.path}': {_said(done.stderr)}")
            yield tree
        finally:
            scratch.close()
            self._forget(tree)

    def _forget_lost_trees(self) -> None:
        """Forget work trees of ours whose folders are gone; no others, whose disk may only be unmounted."""
        for line in self._git("worktree", "list", "--porcelain").stdout.splitlines():
            tree = Path(line.removeprefix("worktree "))
            ours = tree.name == TREE and SCRATCH_NAME.fullmatch(tree.parent.name) is not None
            if line.startswith("worktree ") and ours and not tree.exists():
                self._forget(tree)

    def _forget(self, tree: Path) -> None:
        self._git("worktree", "remove", "--force", "--force", str(tree))

    def _git(self, *arguments: str, options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        return _git(self.root, self.flag, *options, *arguments)


def _git(folder: Path, flag: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run git in `folder`. In a session of its own: Ctrl-C is for the harness, which then cleans up with git."""
    environment = {name: value for name, value in os.environ.items() if name not in _WHERE}
    # No optional locks: `status` would refresh the user's index. No question to a terminal, no other language.
    settings = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *_QUIETLY, *arguments],
            cwd=folder,
            env={**environment, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise UsageError(f"{flag}: needs git, which is not on the PATH") from None


def _said(stderr: str) -> str:
    """The line of git's complaint that says what is wrong."""
    lines = [line.strip() for line in stderr.splitlines()]
    for mark in ("fatal: ", "error: ", ""):
        for line in lines:
            if line and line.startswith(mark):
                return line.removeprefix(mark)
    return "git failed without a word"
