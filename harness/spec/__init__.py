"""What to measure: a sweep, read from TOML or flags, validated, and expanded to cells."""

from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits, DeviceTraits, StrategyTraits
from harness.spec.cell import Cell
from harness.spec.expand import LeftOut, Matrix, expand
from harness.spec.sweep import Sweep, load_sweep, sweep_from

__all__ = [
    "Catalogue",
    "Cell",
    "CrossDeviceOpTraits",
    "DeviceTraits",
    "LeftOut",
    "Matrix",
    "StrategyTraits",
    "Sweep",
    "expand",
    "load_sweep",
    "sweep_from",
]
