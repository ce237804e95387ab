"""Small reads of /proc and /sys. What is missing or unreadable is None, never an error.

Every caller takes a `root`, so that a test can lay out another machine's files in a folder.
"""

from pathlib import Path

ROOT_FOLDER = Path("/")


def text(path: Path) -> str | None:
    """The stripped content, or None when there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def number(path: Path) -> int | None:
    """The content as an integer, or None (`max` in a cgroup file included)."""
    content = text(path)
    try:
        return None if content is None else int(content)
    except ValueError:
        return None


def fields(path: Path, separator: str) -> dict[str, str]:
    """`name SEPARATOR value` lines; of a name that occurs again, the first."""
    found: dict[str, str] = {}
    for line in (text(path) or "").splitlines():
        name, split, value = line.partition(separator)
        if split:
            found.setdefault(name.strip(), value.strip())
    return found
