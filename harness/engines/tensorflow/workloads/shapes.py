"""What a model takes and gives, also where it is a subclass of keras.Model, which does not say so by itself."""

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.structures import ALONE, OpenShapes, Shapes, by_place, called, one_or_several
from harness.errors import Unsupported, UsageError

if TYPE_CHECKING:
    import keras

_KNOWN: dict[int, tuple[OpenShapes, OpenShapes]] = {}
"""By the model's id, as long as it lives: one of the user's own may say that it equals another, or have no hash."""


def shapes_of(model: "keras.Model") -> tuple[OpenShapes, OpenShapes]:
    """(an example's shape, a prediction's), both without the batch; of several inputs or outputs that of each. A size
    that the model leaves open is None.

    Raises UsageError where the model is not built, and Unsupported where it is called with several arguments. Asked of
    a model once: a subclass is traced to tell.
    """
    if id(model) not in _KNOWN:
        inputs = inputs_of(model)
        taken = {place: tuple(part.shape[1:]) for place, part in by_place(inputs).items()}
        given = {place: tuple(part.shape[1:]) for place, part in by_place(outputs_of(model, inputs)).items()}
        _KNOWN[id(model)] = one_or_several(taken), one_or_several(given)
        weakref.finalize(model, _KNOWN.pop, id(model), None)
    return _KNOWN[id(model)]


def inputs_for(model: "keras.Model", taken: OpenShapes, given: OpenShapes) -> Shapes:
    """The shapes that are `taken` by a model's inputs, as data of the shapes `given` call them where it takes these,
    and of their sizes where it leaves one open. UsageError where the data leave that open, too.

    Keras takes the model's own structure; for a list also a dict by the inputs' names, and for a dict of one also the
    tensor by itself.
    """
    by_name = _by_name(model, taken)
    if isinstance(given, Mapping):
        taken = by_name if given.keys() == by_name.keys() else taken
    elif isinstance(taken, Mapping) and len(taken) == 1:
        taken = next(iter(taken.values()))
    several, of_data = (shapes if isinstance(shapes, Mapping) else {ALONE: shapes} for shapes in (taken, given))
    return one_or_several(
        {place: _closed(model.name, place, shape, of_data.get(place, ())) for place, shape in several.items()}
    )


def _closed(model: str, place: str, taken: tuple[int | None, ...], given: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape of an input, whose open sizes are those of the data."""
    sizes = [*given] if len(given) == len(taken) else [None] * len(taken)
    found = [known if size is None else size for size, known in zip(taken, sizes, strict=True)]
    known = tuple(size for size in found if size is not None)
    if len(known) < len(taken):
        raise UsageError(
            f"model: '{model}' takes {called('inputs', place)} of shape {(None, *taken)}, and the data are of shape "
            f"{given}, expected sizes that one of them tells: give them to keras.Input"
        )
    return known


def output_names(model: "keras.Model") -> list[str]:
    """Of a functional model whose outputs are in no dict, the names by which Keras takes targets in one; else none."""
    outputs = getattr(model, "_outputs_struct", None)
    return list(model.output_names) if isinstance(outputs, list | tuple) else []


def _by_name(model: "keras.Model", taken: OpenShapes) -> Mapping[str, tuple[int | None, ...]]:
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

    built = getattr(model, "_functional", None) or model  # what a sequential one is made of
    if (found := getattr(built, "_inputs_struct", None)) is not None:
        return _unpacked(found)
    shapes = getattr(model, "input_shape", None) or _built_for(model)
    return keras.tree.map_shape_structure(keras.KerasTensor, shapes)


def input_types(model: "keras.Model") -> list[str]:
    """Of each input the type that the model takes it as; UsageError where it is not built."""
    return [str(part.dtype) for part in by_place(inputs_of(model)).values()]


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
