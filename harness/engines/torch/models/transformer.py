"""A small Transformer encoder over the patches of an image."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from harness.trial.same_work.architectures.transformer import EPSILON, HEADS, HIDDEN, KEY, LAYERS, PATCH, TOKENS, WIDTH


class EncoderBlock(nn.Module):  # type: ignore[misc]  # PyTorch is not there to be looked at
    """Self-attention and a perceptron, each normalised before and added to what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.query, self.key, self.value = (nn.Linear(WIDTH, HEADS * KEY) for _ in range(3))
        self.output = nn.Linear(HEADS * KEY, WIDTH)
        self.perceptron_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.wide, self.narrow = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Any) -> Any:
        """[batch, tokens, width] to the same."""
        x = x + self.attended(self.attention_norm(x))
        return x + self.narrow(functional.gelu(self.wide(self.perceptron_norm(x))))

    def attended(self, x: Any) -> Any:
        """Self-attention over all tokens."""
        query, key, value = (
            layer(x).unflatten(-1, (HEADS, KEY)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        found = functional.scaled_dot_product_attention(query, key, value)
        return self.output(found.transpose(1, 2).flatten(2))


class Transformer(nn.Module):  # type: ignore[misc]
    """Patches, positions, blocks, the mean of all tokens, classes."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, PATCH, PATCH)
        self.positions = nn.Parameter(torch.empty(TOKENS, WIDTH))
        for block in range(LAYERS):
            self.add_module(f"block_{block}", EncoderBlock())
        self.norm, self.classes = nn.LayerNorm(WIDTH, eps=EPSILON), nn.Linear(WIDTH, classes)

    def forward(self, x: Any) -> Any:
        """[batch, 1, 28, 28] cut into 49 tokens, then the blocks, [batch, classes]."""
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        for block in range(LAYERS):
            x = self.get_submodule(f"block_{block}")(x)
        return self.classes(self.norm(x).mean(dim=1))


def build(classes: int) -> Any:
    """The module."""
    return Transformer(classes)
