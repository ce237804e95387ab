"""The distributions that Keras documents. One file each, with one `LOOP`."""

from collections.abc import Mapping

from harness.engines.keras_distribution.loops.base import DistributionWay as DistributionWay
from harness.registry import registered


def loops() -> Mapping[str, DistributionWay]:
    """The registered ones by name, without importing Keras."""
    return registered(__name__, "LOOP")
