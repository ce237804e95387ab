"""Interpreters of virtual environments."""

import sysconfig
import venv
from pathlib import Path


def bare_venv(folder: Path) -> str:
    """A venv with nothing in it; the path of its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


def lend_packages(python: str) -> None:
    """Let a venv see the packages of ours, and of them no editable install."""
    [site] = Path(python).parent.parent.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
