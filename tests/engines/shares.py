"""Which examples a process is given whose data are in another order than they should be."""

from typing import Any

from harness.spec.cell import TrainingCell
from harness.trial.same_work.batches import Data


def with_the_first_ones_for_the_last(own: slice, cell: TrainingCell) -> Any:
    """The examples of a global batch that `own` has, but those of the last replica, which are the first one's: as many
    as before."""
    import numpy as np

    examples, each = np.arange(own.start, own.stop), cell.replica_batch_size
    last = cell.global_batch_size - each
    return np.where(examples < last, examples, examples - last)


def in_another_order(data: Data) -> Data:
    """The gate's batches as they are, and behind them as many examples as another seed shuffles them."""
    data._seed += 1
    return data
