"""A comparison for people and for machines: one renderer a file, found by its name."""

import importlib

from harness.errors import not_one_of
from harness.report.comparison.base import Renderer, Surface

FORMATS = ("terminal", "markdown", "json", "html")

__all__ = ["FORMATS", "Renderer", "Surface", "renderer"]


def renderer(name: str) -> Renderer:
    """The renderer of one format. Only its module is loaded: the page needs matplotlib, the others do not.

    UsageError for another format.
    """
    if name not in FORMATS:
        raise not_one_of("--format", name, FORMATS)
    found: Renderer = importlib.import_module(f"{__name__}.as_{name}").RENDERER
    return found
