"""Strategies, one file each."""

from collections.abc import Mapping
from typing import cast

from harness.engines.tensorflow.strategies.base import Strategy
from harness.registry import registered


def strategies() -> Mapping[str, Strategy]:
    """Every registered strategy by name."""
    return cast(Mapping[str, Strategy], registered(__name__, "STRATEGY"))


__all__ = ["Strategy", "strategies"]
