"""Kinds of runs, one module or folder each: what a run of that kind is, and what to measure it with."""

from collections.abc import Mapping
from typing import cast

from harness.registry import registered
from harness.run.kinds.base import LiveRun
from harness.run.progress import Listener

__all__ = ["LiveRun", "run_kinds"]


def run_kinds() -> Mapping[str, type[LiveRun[Listener]]]:
    """Every kind of run that can be measured and gone on with, by the name that manifests have for it."""
    return cast(Mapping[str, type[LiveRun[Listener]]], registered(__name__, "KIND"))
