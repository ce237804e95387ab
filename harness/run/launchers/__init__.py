"""Launchers, one file each: who starts the processes of a trial that has several."""

from collections.abc import Mapping, Sequence
from typing import cast

from harness.protocol.messages import Request
from harness.registry import registered
from harness.run.launchers.base import CannotPlace, Launcher, NotNow, Placement, Seat
from harness.run.process.zygote import Zygote


def launchers() -> Mapping[str, Launcher]:
    """Every registered launcher by name."""
    return cast(Mapping[str, Launcher], registered(__name__, "LAUNCHER"))


def open_launchers(requests: Sequence[Request], zygote: Zygote) -> None:
    """Let the launcher of `requests` take, before anything is measured, what all their trials will share."""
    for name in dict.fromkeys(request.launcher for request in requests):
        launchers()[name].open([request for request in requests if request.launcher == name], zygote)


__all__ = ["CannotPlace", "Launcher", "NotNow", "Placement", "Seat", "launchers", "open_launchers"]
