"""Strategies, one file each."""

from collections.abc import Mapping
from typing import cast

from harness.trial.registry import registered
from harness.trial.strategies.base import Strategy


def strategies() -> Mapping[str, Strategy]:
    """Every registered strategy by name."""
    return cast(Mapping[str, Strategy], registered(__name__, "STRATEGY"))


__all__ = ["Strategy", "strategies"]
