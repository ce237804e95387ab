"""The published table that comes with the harness."""

from importlib.resources import files
from pathlib import Path

PUBLISHED = Path(str(files("harness.report"))) / "data" / "published_scaling.csv"
