"""Cells put in order with the machine's drift between groups taken out.

Every cell's own throughput is the plain mean of its trials, as the protocol prints it. To *order* cells
that is not enough where they did not all run in the same groups (a trial that crashed, or groups that
memory made): the machine may have been 10–20 % faster in one group than in another. So the order comes
from the additive model x = cell + group fitted by least squares to all log throughputs. When every
cell ran once in every group, the fit gives the plain means back.
"""

from collections.abc import Mapping

import numpy as np

from harness.analysis.estimates.intervals import Sample

_ROUNDS = 500
_CLOSE = 1e-12


def adjusted_means(samples: Mapping[str, Sample]) -> dict[str, float]:
    """ln X of each cell at the machine's mean speed over groups, by backfitting x = cell + group.

    Groups that share no cell with the others cannot be adjusted; their cells keep their plain means.
    """
    if not samples:
        return {}
    names = list(samples)
    groups = {group: index for index, group in enumerate(dict.fromkeys(g for s in samples.values() for g in s.groups))}
    cell = np.array([index for index, name in enumerate(names) for _ in samples[name].values])
    group = np.array([groups[g] for name in names for g in samples[name].groups])
    value = np.array([x for name in names for x in samples[name].values])
    per_cell, per_group = np.bincount(cell), np.bincount(group)
    group_effect = np.zeros(len(groups))
    cell_effect = np.bincount(cell, value) / per_cell
    for _ in range(_ROUNDS):
        group_effect = np.bincount(group, value - cell_effect[cell]) / per_group
        updated = np.bincount(cell, value - group_effect[group]) / per_cell
        change = float(np.abs(updated - cell_effect).max())
        cell_effect = updated
        if change < _CLOSE:
            break
    # the level is free in x = cell + group: keep the mean over all trials where it is
    level = float((group_effect * per_group).sum() / per_group.sum())
    return {name: float(effect) + level for name, effect in zip(names, cell_effect, strict=True)}
