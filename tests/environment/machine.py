"""Other machines, laid out as files in a folder."""

from pathlib import Path


def lay_out(root: Path, files: dict[str, str]) -> Path:
    """Another machine's /proc and /sys files below `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root
