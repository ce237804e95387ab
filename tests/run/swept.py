"""The cells of sweeps on a fake zygote, two that compete and their base case."""

from tests.record.examples import cell

TWO, THREE = cell(), cell(replicas=3, global_batch_size=96)
BASE = TWO.base
CELLS = [BASE, TWO, THREE]
