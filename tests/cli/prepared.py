"""What `prepare` has left in a folder."""

import json
from pathlib import Path
from typing import Any


def features(target: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((target / "features.json").read_text())
    return found
