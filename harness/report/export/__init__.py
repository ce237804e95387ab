"""Exporters: a new format is a new module here with an `EXPORTER`, or `EXPORTERS`, and nothing else."""

from collections.abc import Mapping

from harness.registry import registered
from harness.report.export.base import Exporter

__all__ = ["Exporter", "exporters"]


def exporters() -> Mapping[str, Exporter]:
    """Every exporter by name, in alphabetical order."""
    return dict(sorted(registered(__name__, "EXPORTER").items()))
