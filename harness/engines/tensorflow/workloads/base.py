"""What a workload is: the model that a cell trains."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.spec.catalogue import ModelTraits

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Vocabulary:
    """Of a model whose input are whole numbers, tokens or categories: they are below `size`."""

    size: int
    next_token: bool = False
    """Whether a target is the next token of each, [tokens], and not one class."""


@dataclass(frozen=True)
class Workload:
    """A model by name.

    `input_shape` is one example as the model wants it, for example (28, 28, 1) for height, width
    and channels; None when only the built model knows it (a user's own). `build(input_shape,
    classes)` returns an uncompiled Keras model that maps [batch, *input_shape] to [batch, classes]
    logits, float32 under every precision policy; it is called inside `strategy.scope()`. For a
    user's own model both arguments are ignored and the result may be compiled.

    `cut(model)` is the layout on a mesh with a `model` axis: the dimension along which it cuts a variable, by the
    variable's path; the others lie whole on every device. None: there is no such layout.

    `takes` are the kinds of data that it can be trained on (`Source.gives`), and `data` the source that it has where
    none is asked for. `vocabulary` is that of a model of whole numbers; one of `text` is counted in tokens.

    `sizes` are the parameters that may stand behind its name, with their defaults, and `of_sizes(**sizes)` is the
    workload with all of them given (`sized`); it raises UsageError where they do not go together.
    """

    name: str
    summary: str
    input_shape: tuple[int, ...] | None
    build: "Callable[[tuple[int, ...], int], keras.Model]"
    cut: "Callable[[keras.Model], Mapping[str, int]] | None" = None
    takes: tuple[str, ...] = ("images",)
    data: str = "digits"
    vocabulary: Vocabulary | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    of_sizes: "Callable[..., Workload] | None" = None

    @property
    def traits(self) -> ModelTraits:
        """What a matrix must know of it."""
        tokens = self.input_shape[0] if self.input_shape and "text" in self.takes else 0
        return ModelTraits(self.takes, self.data, tokens)


def sized(of_sizes: Callable[..., Workload], **sizes: int) -> Workload:
    """The workload with its default `sizes`, of which each may be given behind its name."""
    return replace(of_sizes(**sizes), sizes=sizes, of_sizes=of_sizes)
