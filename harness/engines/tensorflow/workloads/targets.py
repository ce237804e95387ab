"""Which target is an output's, where a model has several."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.structures import ALONE, by_place, fits
from harness.engines.tensorflow.workloads.shapes import output_names, shapes_of
from harness.errors import UsageError

if TYPE_CHECKING:
    import keras
    import numpy as np


def target_places(model: "keras.Model", outputs: Collection[str], targets: Collection[str]) -> dict[str, str]:
    """By the place of each output that of its target: in the same structure, in a dict by the names of the outputs, or,
    of one output in a dict, by itself. UsageError where that fits nothing."""
    if set(outputs) == set(targets):
        return {place: place for place in outputs}
    if set(names := output_names(model)) == set(targets) and len(names) == len(outputs):
        return dict(zip(outputs, names, strict=True))
    if len(outputs) == 1 and [*targets] == [ALONE]:
        return dict(zip(outputs, targets, strict=True))
    raise UsageError(
        f"model: '{model.name}' gives {listed(outputs)}, and a target is {listed(targets)}, expected one for each "
        "output, in the same structure or in a dict by the outputs' names"
    )


def classes_of(model: "keras.Model", targets: Any) -> Any:
    """How many classes there are of which each of `targets` is one: a number, or of several a structure of numbers, 0
    for one that is no class."""
    import keras

    found = shapes_of(model)[1]
    outputs = found if isinstance(found, Mapping) else {ALONE: found}
    shapes = {target: outputs[place] for place, target in target_places(model, outputs, by_place(targets)).items()}
    numbers = [_classes(shapes[place], part) for place, part in by_place(targets).items()]
    return keras.tree.pack_sequence_as(targets, numbers)


def _classes(output: tuple[int | None, ...], targets: "np.ndarray[Any, Any]") -> int:
    """One output is of a binary classifier where targets are 0 and 1."""
    import numpy as np

    *places, classes = output or (None,)
    if not (classes and np.issubdtype(targets.dtype, np.integer) and fits(tuple(places), targets.shape[1:])):
        return 0
    return classes if targets.min() >= 0 and targets.max() < max(2, classes) else 0


def listed(places: Collection[str]) -> str:
    """The parts of a structure, by place, in words."""
    return "one tensor" if [*places] == [ALONE] else ", ".join(f"'{place}'" for place in places)
