"""What a model takes and gives, also where it is a subclass of keras.Model, which does not say so by itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.structures import OpenShapes, Shapes, by_place, called, one_or_several
from harness.errors import Unsupported, UsageError

if TYPE_CHECKING:
    import keras


def shapes_of(model: "keras.Model") -> tuple[Shapes, Shapes]:
    """(an example's shape, a prediction's), both without the batch; of several inputs or outputs that of each.

    Raises UsageError where the model is not built, and Unsupported where it is called with several arguments.
    """
    inputs = inputs_of(model)
    taken = {place: tuple(part.shape[1:]) for place, part in by_place(inputs).items()}
    for place, shape in taken.items():
        if not all(isinstance(size, int) for size in shape):
            raise UsageError(
                f"model: '{model.name}' takes {called('inputs', place)} of shape {(None, *shape)}, expected only the "
                "batch open"
            )
    given = {place: tuple(part.shape[1:]) for place, part in by_place(outputs_of(model, inputs)).items()}
    return one_or_several(taken), one_or_several(given)


def inputs_for(model: "keras.Model", taken: Shapes, given: OpenShapes) -> Shapes:
    """The shapes that are `taken` by a model's inputs, as data of the shapes `given` call them where it takes these.

    Keras takes the model's own structure; for a list also a dict by the inputs' names, and for a dict of one also the
    tensor by itself.
    """
    by_name = _by_name(model, taken)
    if isinstance(given, Mapping):
        return by_name if given.keys() == by_name.keys() else taken
    return next(iter(taken.values())) if isinstance(taken, Mapping) and len(taken) == 1 else taken


def output_names(model: "keras.Model") -> list[str]:
    """Of a functional model whose outputs are in no dict, the names by which Keras takes targets in one; else none."""
    outputs = getattr(model, "_outputs_struct", None)
    return list(model.output_names) if isinstance(outputs, list | tuple) else []


def _by_name(model: "keras.Model", taken: Shapes) -> Mapping[str, tuple[int, ...]]:
    """Shapes by the names of inputs, where these are a tensor or a list of tensors of a functional model."""
    import keras

    has = getattr(model, "_inputs_struct", None)
    tensors: list[Any] = list(has) if isinstance(has, list | tuple) else [has]
    if not all(isinstance(tensor, keras.KerasTensor) for tensor in tensors):
        return {}
    shapes = list(taken.values()) if isinstance(taken, Mapping) else [taken]
    return {tensor.name: shape for tensor, shape in zip(tensors, shapes, strict=True)}


def inputs_of(model: "keras.Model") -> Any:
    """What stands for a model's inputs, in their structure, with the batch; UsageError where it is not built."""
    import keras

    if (found := getattr(model, "_inputs_struct", None)) is not None:
        return _unpacked(found)
    shapes = getattr(model, "input_shape", None) or _built_for(model)
    return keras.tree.map_shape_structure(keras.KerasTensor, shapes)


def outputs_of(model: "keras.Model", inputs: Any) -> Any:
    """What stands for its predictions of `inputs`."""
    import keras

    if (found := getattr(model, "_outputs_struct", None)) is not None:
        return _unpacked(found)
    shape = getattr(model, "output_shape", None)
    return keras.KerasTensor(shape) if shape else model(inputs)


def _unpacked(structure: Any) -> Any:
    """A functional model's list of one is that one, as it is when the model is called."""
    return structure[0] if isinstance(structure, list | tuple) and len(structure) == 1 else structure


def _built_for(model: "keras.Model") -> Any:
    """The shapes that a subclassed model was built for, of its one argument."""
    known = getattr(model, "_build_shapes_dict", None) or {}
    if len(known) > 1:
        raise Unsupported(
            f"model: '{model.name}' is built for {len(known)} arguments ({', '.join(known)}), and a trial calls it "
            "with one: take several inputs in a dict or a tuple"
        )
    if known and model.trainable_variables:
        return next(iter(known.values()))
    raise UsageError(
        f"model: '{model.name}' is not built, expected one that knows the shape of its input: a functional or "
        "sequential model with keras.Input, or a subclass that was called with an example before it is returned"
    )
