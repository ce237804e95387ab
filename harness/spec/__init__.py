"""What to measure: a sweep, read from TOML or flags, validated, and expanded to cells."""

from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits, DeviceTraits, StrategyTraits
from harness.spec.cell import TrainingCell
from harness.spec.expand import Matrix, expand
from harness.spec.inputs import LeftOut
from harness.spec.quantity import Quantity, Work
from harness.spec.sweep import Sweep, load_sweep, sweep_from
from harness.spec.work import CELL_KINDS, Cell, OwnStepCell, kind_of_work

__all__ = [
    "CELL_KINDS",
    "Catalogue",
    "Cell",
    "CrossDeviceOpTraits",
    "DeviceTraits",
    "LeftOut",
    "Matrix",
    "OwnStepCell",
    "Quantity",
    "StrategyTraits",
    "Sweep",
    "TrainingCell",
    "Work",
    "expand",
    "kind_of_work",
    "load_sweep",
    "sweep_from",
]
