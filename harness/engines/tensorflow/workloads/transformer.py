"""A small Transformer encoder over the patches of an image."""

import functools
import math

from harness.engines._keras.blocks import check_heads
from harness.engines._keras.transformer import PATCH, build, cut
from harness.engines.tensorflow.workloads.base import Workload, sized


def of_sizes(layers: int, width: int, heads: int, tokens: int) -> Workload:
    """Blocks of `width`, their perceptrons twice as wide; a token is a patch of 4×4, and an image has `tokens` of them
    in the most nearly square grid."""
    check_heads(width, heads)
    rows = next(rows for rows in range(math.isqrt(tokens), 0, -1) if tokens % rows == 0)
    height, breadth = PATCH * rows, PATCH * (tokens // rows)
    return Workload(
        name="transformer",
        summary=f"{layers}-block Transformer encoder of width {width} over 4×4 patches, {height}×{breadth}×1",
        input_shape=(height, breadth, 1),
        build=functools.partial(build, layers=layers, width=width, heads=heads),
        cut=functools.partial(cut, hidden=2 * width),
    )


WORKLOAD = sized(of_sizes, layers=2, width=64, heads=4, tokens=49)
