"""Working folders of `prepare`, and what it has left in one."""

import json
import textwrap
from pathlib import Path
from typing import Any


def with_numbers(folder: Path, module: str) -> Path:
    """The folder, with a module `own_numbers` of this text."""
    (folder / "own_numbers.py").write_text(textwrap.dedent(module))
    return folder


def features(target: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((target / "features.json").read_text())
    return found
