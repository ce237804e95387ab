"""Launchers, one file each: who starts the processes of a trial that has several."""

from collections.abc import Mapping
from typing import cast

from harness.run.launchers.base import CannotPlace, Launcher, Placement, Seat
from harness.trial.registry import registered


def launchers() -> Mapping[str, Launcher]:
    """Every registered launcher by name."""
    return cast(Mapping[str, Launcher], registered(__name__, "LAUNCHER"))


__all__ = ["CannotPlace", "Launcher", "Placement", "Seat", "launchers"]
