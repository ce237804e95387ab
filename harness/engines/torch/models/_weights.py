"""Weights of Keras' names and layout into a module's parameters: channels first, and outputs first."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from harness.protocol.state import Array

PARTS = (".convolution", ".normalisation")
"""Modules that share the name of the one that holds them."""


def load(module: Any, given: "Mapping[str, Array]") -> None:
    """Fill every parameter and buffer of `module` from what is given of the same place."""
    for path, part in module.named_modules():
        name = next((path.removesuffix(end) for end in PARTS if path.endswith(end)), path).replace(".", "/")
        for own, value in _arrays(part, name, given):
            with torch.no_grad():
                own.copy_(torch.from_numpy(value.copy()))


def _arrays(part: Any, name: str, given: "Mapping[str, Array]") -> "list[tuple[Any, Array]]":
    """The tensors of one layer, each with what belongs there."""
    if isinstance(part, nn.Conv2d):
        kernel = given[f"{name}/kernel"].transpose(3, 2, 0, 1)
    elif isinstance(part, nn.Linear):
        kernel = given[f"{name}/kernel"].reshape(part.in_features, part.out_features).T
    elif isinstance(part, nn.LayerNorm | nn.BatchNorm2d):
        found = [(part.weight, given[f"{name}/gamma"]), (part.bias, given[f"{name}/beta"])]
        if isinstance(part, nn.BatchNorm2d):
            found += [(part.running_mean, given[f"{name}/mean"]), (part.running_var, given[f"{name}/variance"])]
        return found
    else:
        prefix = f"{name}/" if name else ""
        return [(own, given[f"{prefix}{key}"]) for key, own in part.named_parameters(recurse=False)]
    bias = [] if part.bias is None else [(part.bias, given[f"{name}/bias"].reshape(-1))]
    return [(part.weight, kernel), *bias]
