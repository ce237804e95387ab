"""What random examples for a user's own model are made like: the parts of its inputs and of its targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.structures import by_place
from harness.engines.tensorflow.workloads.loss import takes_classes
from harness.engines.tensorflow.workloads.shapes import inputs_for, inputs_of, outputs_of, shapes_of

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class ExamplePart:
    """One tensor of an example."""

    shape: tuple[int, ...]
    dtype: str
    below: int = 0
    """Its values are whole numbers below this one; 0 is any numbers."""


def spec_of(model: "keras.Model") -> tuple[Any, Any]:
    """(inputs, targets): a `ExamplePart` each, or a structure of them.

    Whole numbers that a model takes are below the size of the table (`keras.layers.Embedding`) in which it looks them
    up; where that cannot be told, below that of its smallest, or 2. A target is a class where the loss takes classes,
    or is the user's own; else 0 or 1 for each number of the output, which every other loss of Keras takes.
    Raises what `shapes_of`, `inputs_for` and `loss_of` do.
    """
    import keras

    inputs = inputs_of(model)
    outputs = outputs_of(model, inputs)
    sizes, _ = shapes_of(model)
    inputs_for(model, sizes, sizes)  # must leave none open
    inputs, outputs = keras.tree.lists_to_tuples(inputs), keras.tree.lists_to_tuples(outputs)  # tf.data stacks lists
    limits, classes = _limits(model, inputs), takes_classes(model)
    taken = [
        ExamplePart(tuple(tensor.shape[1:]), str(tensor.dtype), limits[place] if "int" in str(tensor.dtype) else 0)
        for place, tensor in by_place(inputs).items()
    ]
    wanted = [_target(tuple(tensor.shape[1:]), classes[place]) for place, tensor in by_place(outputs).items()]
    return keras.tree.pack_sequence_as(inputs, taken), keras.tree.pack_sequence_as(outputs, wanted)


def _target(output: tuple[int, ...], is_class: bool) -> ExamplePart:
    if is_class and output[-1:] > (1,):
        return ExamplePart(output[:-1], "int32", output[-1])
    return ExamplePart(output, "float32", 2)


def _limits(model: "keras.Model", inputs: Any) -> Mapping[str, int]:
    """By the place of each input, below what its whole numbers must be."""
    import keras

    tables = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)]
    sizes: dict[int, list[int]] = {}
    for table in tables:
        for node in table._inbound_nodes:
            for tensor in node.input_tensors:
                sizes.setdefault(id(tensor), []).append(table.input_dim)
    every = [table.input_dim for table in tables] or [2]
    return {place: min(sizes.get(id(tensor), every)) for place, tensor in by_place(inputs).items()}
