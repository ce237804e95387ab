"""Models as PyTorch's users write them, of the architectures that every engine has. One file a model, with `build`."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.trial.same_work.architectures import architectures

if TYPE_CHECKING:
    from harness.protocol.state import Array

    Arrays = Mapping[str, Array]


def built(name: str, seed: int, classes: int) -> Any:
    """The module of an architecture, in training mode, with the weights that `seed` gives every engine."""
    import numpy as np

    architecture = architectures()[name]
    weights = architecture.initial(np.random.default_rng(seed), classes)
    return module_of(name, weights, architecture.statistics(), classes)


def module_of(name: str, weights: "Arrays", statistics: "Arrays", classes: int) -> Any:
    """The module of an architecture with these weights and statistics, of Keras' names and layout."""
    from harness.engines.torch.models._weights import load

    file = importlib.import_module(f"{__name__}.{name}")
    module = file.build(classes)
    load(module, {**(file.reordered(weights) if hasattr(file, "reordered") else weights), **statistics})
    return module.train()
