"""A model's own variables that Keras does not know: a `tf.Variable` in a layer, the state of a `tf.random.Generator`.

Neither the model nor the optimizer lists them, so they are in no state that an update could be proved from. As long as
they stay as they were built the reference, which is built from the same seed, has the same ones; once a step has
changed one nothing can be held against it.
"""

from typing import Any

from harness.engines.tensorflow.server_state import FusedOptimizer, StatelessModel
from harness.errors import Unprovable


class RawVariables:
    """Those of a model and its optimizer, as they are when this is made."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._owners = [model.template if isinstance(model, StatelessModel) else model]
        if not isinstance(optimizer, FusedOptimizer):  # which has kernels, and no code of anybody's own
            self._owners.append(optimizer)
        self._before = {id(variable): _values(variable) for variable in self._found()}

    def must_be_as_built(self) -> None:
        """Raises Unprovable with the names of those that were changed, or made, since."""
        if changed := [variable.name.partition(":")[0] for variable in self._found() if self._is_changed(variable)]:
            raise Unprovable(
                f"the step changes {', '.join(sorted(changed)[:3])}, which Keras does not know, so that no reference "
                "can begin where it stands: in place of a tf.Variable take add_weight(trainable=False)"
            )

    def _is_changed(self, variable: Any) -> bool:
        import numpy as np

        before = self._before.get(id(variable))
        now = _values(variable)
        return before is None or not all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))

    def _found(self) -> list[Any]:
        import keras
        import tensorflow as tf

        parts = [part for owner in self._owners for part in tf.train.TrackableView(owner).descendants()]
        parts += [one for part in parts if isinstance(part, keras.Layer) for one in _in_collections(part)]
        known = {id(part.value) for part in parts if isinstance(part, keras.Variable)}
        found = {id(part): part for part in parts if isinstance(part, tf.Variable) and id(part) not in known}
        return list(found.values())


def _in_collections(layer: Any) -> list[Any]:
    """What a layer has in lists and dicts, which TensorFlow's own view does not see where Keras tracks them."""
    found = [list(each.values()) if isinstance(each, dict) else each for each in vars(layer).values()]
    return [one for each in found if isinstance(each, list) for one in each]


def _values(variable: Any) -> list[Any]:
    """Its copy on every replica."""
    return [copy.numpy() for copy in getattr(variable, "values", None) or [variable]]
