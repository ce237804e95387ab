"""What a model takes and gives, also where it is a subclass of keras.Model, which does not say so by itself."""

from typing import TYPE_CHECKING, Any

from harness.errors import Unsupported, UsageError

if TYPE_CHECKING:
    import keras


def shapes_of(model: "keras.Model") -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(an example's shape, a prediction's), both without the batch.

    Raises UsageError where the model is not built, and Unsupported where it has several inputs or outputs.
    """
    given = getattr(model, "input_shape", None) or _built_for(model)
    inputs = _one(model, given)
    if not all(isinstance(size, int) for size in inputs):
        raise UsageError(f"model: '{model.name}' takes inputs of shape {(None, *inputs)}, expected only the batch open")
    return inputs, _one(model, getattr(model, "output_shape", None) or _given_back(model, inputs))


def _built_for(model: "keras.Model") -> Any:
    """The one shape that a subclassed model was built for."""
    known = list((getattr(model, "_build_shapes_dict", None) or {}).values())
    if known and model.trainable_variables:
        return known[0] if len(known) == 1 else known
    raise UsageError(
        f"model: '{model.name}' is not built, expected one that knows the shape of its input: a functional or "
        "sequential model with keras.Input, or a subclass that was called with an example before it is returned"
    )


def _given_back(model: "keras.Model", inputs: tuple[int, ...]) -> Any:
    import keras

    return [output.shape for output in keras.tree.flatten(model(keras.KerasTensor((None, *inputs))))]


def _one(model: "keras.Model", shape: Any) -> tuple[int, ...]:
    """`shape` without the batch, where it is one."""
    if isinstance(shape, dict):
        shape = list(shape.values())
    if isinstance(shape, list) and len(shape) == 1:
        shape = shape[0]
    if isinstance(shape, list) or (shape and not isinstance(shape[0], int | None)):
        raise Unsupported(f"model: '{model.name}' has {len(shape)} inputs or outputs, and a trial trains one of each")
    return tuple(shape[1:])
