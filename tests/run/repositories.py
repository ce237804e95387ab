"""Real git repositories, small, for tests of what measures revisions."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class Repo:
    """A repository at `root` with a branch `main`."""

    root: Path

    @classmethod
    def new(cls, root: Path) -> "Repo":
        root.mkdir(parents=True)
        made = cls(root)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def git(self, *arguments: str) -> str:
        command = ["git", *IDENTITY, *arguments]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: Mapping[str, str]) -> str:
        """Commit these files; the new commit's hash."""
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=x")
        return self.git("rev-parse", "HEAD").strip()

    def state(self) -> tuple[str, ...]:
        """All that must not change: HEAD, references, files and index, and no work tree but the first."""
        index = (self.root / ".git" / "index").read_bytes().hex()
        trees = self.git("worktree", "list", "--porcelain")
        return (
            (self.root / ".git" / "HEAD").read_text(),
            self.git("for-each-ref"),
            index,
            trees,
            str(sorted(str(p) for p in self.root.rglob("*") if ".git" not in p.parts)),
        )
