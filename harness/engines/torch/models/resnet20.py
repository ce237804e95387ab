"""ResNet-20 with batch normalisation."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from harness.trial.same_work.architectures.resnet20 import BLOCKS, CHANNELS, EPSILON, MOMENTUM, STAGES


class Normalised(nn.Module):  # type: ignore[misc]  # PyTorch is not there to be looked at
    """A convolution of 3×3 without bias, then batch normalisation."""

    def __init__(self, given: int, filters: int, stride: int) -> None:
        super().__init__()
        self.halves = stride == 2
        self.convolution = nn.Conv2d(given, filters, 3, stride, padding=0 if self.halves else 1, bias=False)
        # PyTorch's momentum is the new value's share, Keras' the old one's
        self.normalisation = nn.BatchNorm2d(filters, eps=EPSILON, momentum=1 - MOMENTUM)

    def forward(self, x: Any) -> Any:
        """[batch, given, h, w] to [batch, filters, h / stride, w / stride]."""
        if self.halves:
            x = functional.pad(x, (0, 1, 0, 1))  # as "same" does it: what is odd goes to the end
        return self.normalisation(self.convolution(x))


class ResidualBlock(nn.Module):  # type: ignore[misc]
    """Two of them, and a shortcut past both."""

    def __init__(self, given: int, filters: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = Normalised(given, filters, stride), Normalised(filters, filters, 1)
        self.stride, self.missing = stride, filters - given

    def forward(self, x: Any) -> Any:
        """[batch, given, h, w] to [batch, filters, h / stride, w / stride]."""
        y = self.second(functional.relu(self.first(x)))
        short = x[:, :, :: self.stride, :: self.stride]
        before = self.missing // 2
        return functional.relu(functional.pad(short, (0, 0, 0, 0, before, self.missing - before)) + y)


class ResNet20(nn.Module):  # type: ignore[misc]
    """Three stages of three blocks."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = Normalised(CHANNELS, STAGES[0], 1)
        before = STAGES[0]
        for stage, filters in enumerate(STAGES):
            blocks = nn.Module()
            for block in range(BLOCKS):
                blocks.add_module(
                    f"block_{block}", ResidualBlock(before, filters, 2 if stage > 0 and block == 0 else 1)
                )
                before = filters
            self.add_module(f"stage_{stage}", blocks)
        self.classes = nn.Linear(before, classes)

    def forward(self, x: Any) -> Any:
        """[batch, 3, 32, 32] to [batch, classes]."""
        x = functional.relu(self.stem(x))
        for stage in range(len(STAGES)):
            for block in self.get_submodule(f"stage_{stage}").children():
                x = block(x)
        return self.classes(torch.mean(x, dim=(2, 3)))


def build(classes: int) -> Any:
    """The module."""
    return ResNet20(classes)
