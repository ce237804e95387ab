"""The ratio of the fastest of several cells to the fastest of several others, though both were picked by their luck.

The fastest of fourteen equal cells seems 1 to 3 % faster than it is, and its plain interval holds the truth 86 to 89
times in 100. So the value is averaged from blocks that did not choose: each block's ratio is that of the two cells
that are fastest in all other blocks. And the interval is simultaneous (Dunnett 1955): its lower end stays below the
truth for every one of the cells that might have been picked, its upper end above it for every base that might have
been. The ends need no more than that: the picked cell's estimate is never low because it was picked.
"""

import math
from collections.abc import Sequence

import numpy as np

from harness.analysis.estimates.dunnett import critical_value
from harness.analysis.estimates.intervals import CONFIDENCE, Interval
from harness.analysis.estimates.layout import Array, Layout

LEAST_BLOCKS = 4
"""Of fewer, the blocks that choose for another one are one or two, and mostly choose other cells than all together."""


def fastest_over(layout: Layout, cells: Sequence[str], bases: Sequence[str]) -> Interval:
    """X(fastest of `cells`) ÷ X(fastest of `bases`), both in the order of the layout's means and neither empty."""
    ratio = layout.ratio(cells[0], bases[0])
    below, above = limits_over(layout, cells, bases)
    found = ratio.reaching(below, above, CONFIDENCE, "Dunnett" if len(cells) > 1 or len(bases) > 1 else None)
    if not layout.linked(cells[0], bases[0]):
        return found
    linked = ([name for name in names if layout.linked(name, bases[0])] for names in (cells, bases))
    by_block = [layout.by_block(names) for names in linked]
    value = _from_other_blocks(*by_block) if by_block[0].shape[1] >= LEAST_BLOCKS else None
    return found if value is None else found.at(math.exp(value))


def limits_over(layout: Layout, cells: Sequence[str], bases: Sequence[str]) -> tuple[float | None, float | None]:
    """How many standard errors that interval reaches below the ratio, and above it."""
    ratio, one_sided = layout.ratio(cells[0], bases[0]), (1 + CONFIDENCE) / 2
    return (
        critical_value(ratio, len(cells), layout.correlation(bases[0], cells), one_sided),
        critical_value(ratio, len(bases), layout.correlation(cells[0], bases), one_sided),
    )


def _from_other_blocks(cells: Array, bases: Array) -> float | None:
    """The mean over blocks of ln X_cell/X_base, both the fastest of the other blocks; None where no block has both.

    Both are (cells, blocks) with NaN where a cell has no trial.
    """
    if not len(cells) or not len(bases):
        return None
    found = _fastest_elsewhere(cells) - _fastest_elsewhere(bases)
    known = found[~np.isnan(found)]
    return float(known.mean()) if len(known) else None


def _fastest_elsewhere(values: Array) -> Array:
    """In each block the value of the cell that is fastest in all others, of those that the block has; else NaN."""
    there = ~np.isnan(values)
    others = there.sum(axis=1, keepdims=True) - there
    total = np.where(there, values, 0.0)
    mean = (total.sum(axis=1, keepdims=True) - total) / np.maximum(others, 1)
    usable = there & (others > 0)
    chosen = np.where(usable, mean, -np.inf).argmax(axis=0)
    every = np.arange(values.shape[1])
    return np.where(usable[chosen, every], values[chosen, every], np.nan)
