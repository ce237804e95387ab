"""Random numbers that a step's compiled programs draw otherwise than the same step does uncompiled."""

import gc
from typing import Any

from harness.engines.tensorflow.program_ops import nodes_of

OF_DATA = "_tf_data_function"
"""What TensorFlow marks functions of a dataset with, which are compiled whatever the step is."""
WITHOUT_STATE = "Stateless"
"""Beginning of the names of ops that draw by a seed that they are given, as Keras' layers do."""
LAYERS_OF_CUDNN = "Cudnn"
"""Beginning of the names of ops that have a seed, and draw only where they are asked for dropout of their own."""


def other_draws() -> str | None:
    """What of this process' traced programs draws otherwise than uncompiled, in words; None where nothing does."""
    for function in _traced_functions():
        for program in function._function_cache.values():  # to be asked for them some would be traced
            if OF_DATA in program.function_def.attr:
                continue
            if (found := _other_draws_in(program, bool(function._jit_compile))) is not None:
                return found
    return None


def _traced_functions() -> list[Any]:
    """Every `tf.function` that there is. TensorFlow keeps no list, and those of Keras and of scripts have no name."""
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    return [found for found in gc.get_objects() if type(found) is polymorphic_function.Function]


def _other_draws_in(program: Any, by_xla: bool) -> str | None:
    for node in nodes_of(program.graph.as_graph_def()):
        if "seed2" in node.attr and not node.op.startswith(LAYERS_OF_CUDNN):
            return f"{node.op}, whose numbers in a tf.function are others than outside"
        if by_xla and node.op.startswith(WITHOUT_STATE):
            return f"{node.op}, for which XLA draws other numbers from the same seed"
    return None
