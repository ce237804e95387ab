"""Inputs and targets that are one tensor each, or several in dicts and tuples: how their parts and shapes are named.

`tf.nest` and `keras.tree` walk such structures. A part is known by its place in its own: `user`, `0`, `words/title`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

Batch = tuple[Any, Any]
"""(inputs, targets): each an array whose first axis is the batch, or a structure of such, targets with weights, too."""
Shapes = tuple[int, ...] | Mapping[str, tuple[int, ...]]
"""Without the batch: that of one tensor, or of several by place."""
OpenShapes = tuple[int | None, ...] | Mapping[str, tuple[int | None, ...]]
"""The same, where a size may be None: not the same for all examples."""
_Size = TypeVar("_Size", int, int | None)
PARTS = ("inputs", "targets", "weights")
"""What an example has, the last only where each counts differently."""
ALONE = ""
"""The place of a tensor that is in no structure."""


class Weighted(NamedTuple):
    """Targets, and how much the loss of each example counts [batch], or of each of its places [batch, ...], such as the
    tokens of a text: what Keras calls sample weights. Of several outputs they may be a structure of such."""

    targets: Any
    weights: Any


class InputsInATuple(NamedTuple):
    """No targets, of inputs alone that the data gave as `(x,)`: so a train_step of Keras' gets them, too."""


def unweighted(targets: Any) -> Any:
    """Targets without the weights that they may have."""
    return targets.targets if isinstance(targets, Weighted) else targets


def has_targets(y: Any) -> bool:
    """Whether there are targets: none are an empty tuple, of data for a train_step that takes inputs alone."""
    return not (isinstance(y, tuple) and not y)


def as_keras_takes(x: Any, y: Any) -> Any:
    """What a train_step of Keras' is given: (inputs, targets), with weights three, or the inputs alone."""
    if not has_targets(y):
        return (x,) if isinstance(y, InputsInATuple) else x
    return (x, *y) if isinstance(y, Weighted) else (x, y)


def by_place(structure: Any) -> dict[str, Any]:
    """The parts of a structure by place."""
    import keras

    return {"/".join(map(str, path)): part for path, part in keras.tree.flatten_with_path(structure)}


def from_places(parts: Mapping[str, Any]) -> Any:
    """The structure of dicts and tuples whose parts by place these are: places that count from 0 are a tuple's."""
    if [*parts] == [ALONE]:
        return parts[ALONE]
    within: dict[str, dict[str, Any]] = {}
    for place, part in parts.items():
        first, _, rest = place.partition("/")
        within.setdefault(first, {})[rest] = part
    made = {place: from_places(of) for place, of in within.items()}
    counted = [str(number) for number in range(len(made))]
    return tuple(made[place] for place in counted) if made.keys() == set(counted) else made


def one_or_several(shapes: Mapping[str, tuple[_Size, ...]]) -> tuple[_Size, ...] | Mapping[str, tuple[_Size, ...]]:
    """Shapes by place, or the shape of a tensor that is in no structure."""
    return shapes[ALONE] if [*shapes] == [ALONE] else shapes


def only(shapes: tuple[_Size, ...] | Mapping[str, tuple[_Size, ...]]) -> tuple[_Size, ...]:
    """The shape of what is one tensor; TypeError for several, which were refused before a training was built."""
    if isinstance(shapes, Mapping):
        raise TypeError(f"expected one tensor, got several: {', '.join(shapes)}")
    return shapes


def fits(open_shape: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    """Whether a shape is this one, but for the sizes that it leaves open."""
    return len(open_shape) == len(shape) and all(a in (None, b) for a, b in zip(open_shape, shape, strict=True))


def parts_of(batch: Batch) -> dict[str, Any]:
    """The parts of a batch, or of an example, as they are called: `inputs`, `inputs 'user'`, `targets`, `weights`."""
    x, y = batch
    named = zip(PARTS, (x, *y) if isinstance(y, Weighted) else (x, y), strict=False)
    return {called(of, place): part for of, has in named for place, part in by_place(has).items()}


def called(of: str, place: str) -> str:
    """How a part of inputs or targets is called."""
    return of if place == ALONE else f"{of} '{place}'"


def arrays_in(structure: Any) -> list[Any]:
    """The arrays of a structure, in the order of `tf.nest`; TensorFlow is asked only where there is a structure."""
    if hasattr(structure, "dtype"):
        return [structure]
    import tensorflow as tf

    return list(tf.nest.flatten(structure))


def stacked(batches: Sequence[Batch]) -> Batch:
    """Batches behind one another: each array has a leading axis of batches."""
    import numpy as np
    import tensorflow as tf

    together: Batch = tf.nest.map_structure(lambda *of_each: np.stack(of_each), *batches)
    return together
