"""What every figure is made of: matplotlib, imported here alone.

A person's own plots are set up by variables that matplotlib reads when it is imported, and a backend that it does not
know is an error then. Figures are drawn without a backend; the variables are back for whoever imports it later.
"""

import os

_OF_THE_PERSON = {name: os.environ.pop(name) for name in ("MPLBACKEND", "MATPLOTLIBRC") if name in os.environ}
try:
    from matplotlib import rc_context, rcParams
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.markers import TICKDOWN, TICKLEFT
    from matplotlib.patches import Patch, PathPatch, Rectangle
    from matplotlib.path import Path
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter
finally:
    os.environ.update(_OF_THE_PERSON)

__all__ = [
    "TICKDOWN",
    "TICKLEFT",
    "Artist",
    "Axes",
    "Figure",
    "FuncFormatter",
    "Line2D",
    "MaxNLocator",
    "NullFormatter",
    "NullLocator",
    "Patch",
    "Path",
    "PathPatch",
    "Rectangle",
    "StrMethodFormatter",
    "rcParams",
    "rc_context",
]
