"""Exporters, one a file: a new format is a new module here with an `EXPORTER`, and nothing else."""

import importlib
import pkgutil
from collections.abc import Mapping

from harness.report.export.base import Exporter, RunData

__all__ = ["Exporter", "RunData", "exporters"]


def exporters() -> Mapping[str, Exporter]:
    """Every exporter by name, in alphabetical order."""
    found: dict[str, Exporter] = {}
    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        exporter: Exporter | None = getattr(importlib.import_module(module.name), "EXPORTER", None)
        if exporter is not None:
            found[exporter.name] = exporter
    return dict(sorted(found.items()))
