"""Work for a device: matrix products in a chain, or passes over a matrix."""

from collections.abc import Callable
from typing import Any

SIZE = 32
"""Rows and columns of the matrices: one product takes some microseconds, most of them a loop's own."""

More = Callable[[Any, Any], Any]
"""(products so far, the last product) -> whether another one is to follow, as tensors."""


def multiplied(matrix: Any) -> Any:
    """Its product with a matrix whose powers are itself: none can overflow."""
    import tensorflow as tf

    return tf.matmul(matrix, tf.fill([SIZE, SIZE], 1.0 / SIZE))


def passed_over(matrix: Any) -> Any:
    """Each of its elements anew, by something that no optimisation of the graph knows to do nothing."""
    import tensorflow as tf

    return tf.tanh(matrix)


class Chain:
    """Results of `make` on `device`, each made from the one before, as long as somebody wants more of them.

    The chain ends in a variable, so that no optimisation of the graph can remove it. Nothing else reads its result.
    """

    def __init__(self, device: str, make: Callable[[Any], Any] = multiplied) -> None:
        import tensorflow as tf

        self._device, self._make = device, make
        with tf.device(device):
            self._sink = tf.Variable(0.0, trainable=False)

    def traced(self, more: More) -> tuple[Any, Any]:
        """(how many products there were, the op that ends them), in a graph that is being traced."""
        import tensorflow as tf

        with tf.device(self._device):
            first = tf.fill([SIZE, SIZE], 1.0 / SIZE)
            count, product = tf.while_loop(more, lambda k, m: (k + 1, self._make(m)), (0, first), parallel_iterations=1)
            return count, self._sink.assign(product[0, 0])
