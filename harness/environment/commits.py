"""What git says of the repository at hand: the commits between two recorded revisions, and what it does not ignore."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.visible import one_line

MOST = 20
"""Commits that are named."""
_HASH = re.compile(r"([0-9a-f]{40})(-dirty|-unknown)?")
_CHANGES = {"-dirty": "had changes that were not committed", "-unknown": "may have had changes that were not committed"}
_LIMIT_S = 5


@dataclass(frozen=True)
class Commits:
    """`commits` are (short hash, subject), newest first; `count` is how many there are in all.

    `remark` says why there is none to name, or what else to know; None when there is nothing to say.
    """

    commits: tuple[tuple[str, str], ...] = ()
    count: int = 0
    remark: str | None = None


def commits_between(before: str | None, after: str | None, folder: Path | None = None) -> Commits:
    """The commits that `after` has and `before` has not, as `git log` in `folder` tells; only reads.

    The revisions come from records, so anything but a full hash, with a mark of `_CHANGES` or none, is never given it.
    """
    a, b = (_HASH.fullmatch(text or "") for text in (before, after))
    if a is None or b is None:
        return Commits(remark="the runs do not both say which commit they ran")
    sides = {mark: [side for side, match in (("before", a), ("after", b)) if match[2] == mark] for mark in _CHANGES}
    told = [f"the run {' and '.join(of)} {_CHANGES[mark]}" for mark, of in sides.items() if of]
    remark = "; ".join(told) or None
    if a[1] == b[1]:
        return Commits(remark=remark or "both ran the same commit")
    span = f"{a[1]}..{b[1]}"
    counted = _git(folder, "rev-list", "--count", span)
    if counted is None:
        return Commits(remark="the commits are not in the repository at hand")
    listed = _git(folder, "log", f"--max-count={MOST}", "--no-color", "--format=%h%x09%s", span) or ""
    rows = (line.partition("\t") for line in listed.splitlines())
    commits = tuple((short, subject) for short, _, subject in rows)
    if not commits:
        remark = "the later run ran an earlier commit"
    return Commits(commits, int(counted), remark)


def untracked(path: Path) -> bool:
    """Whether `path` is in a git work tree that does not ignore it."""
    done = _run(path.parent, "check-ignore", "--quiet", "--", path.name)
    return done is not None and done.returncode == 1


@contextlib.contextmanager
def telling_unignored(folder: Path) -> Iterator[None]:
    """Where `folder` is made and filled meanwhile and git does not ignore it, standard error says so, with the remedy.

    Whoever makes a folder in a place that may be somebody's repository does it in here.
    """
    new = not os.path.lexists(folder)
    try:
        yield
    finally:
        if new:
            with contextlib.suppress(OSError, ValueError):  # the folder, or standard error, is for its maker to judge
                _tell_unignored(folder)


def _tell_unignored(folder: Path) -> None:
    inside = next(folder.iterdir(), None)  # git may ignore what is in a folder by its name
    if inside is not None and untracked(inside):
        hidden = shlex.quote(str(folder / ".gitignore"))
        words = f"harness: git does not ignore the new {one_line(str(folder))}: echo '*' > {one_line(hidden)}"
        print(words, file=sys.stderr, flush=True)


def _git(folder: Path | None, *arguments: str) -> str | None:
    """What git says; None where it fails, is not there or takes too long."""
    done = _run(folder, *arguments, "--")
    return done.stdout.strip() if done is not None and done.returncode == 0 else None


def _run(folder: Path | None, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", "--no-pager", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
