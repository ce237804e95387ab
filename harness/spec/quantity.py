"""What work is counted in, and how much of it a step does."""

import re
from dataclasses import dataclass

from harness.errors import UsageError
from harness.spec.axes import NO_MODEL
from harness.visible import quoted

_SAID_OF_EXAMPLES = re.compile(r"\ban example\b|examples|example")


@dataclass(frozen=True)
class Quantity:
    """What work is counted in. `many` names it in records and units: `examples`, `tokens`, `bytes`."""

    many: str

    @property
    def one(self) -> str:
        """`example`, `token`, `query`, `batch`: the singular, by the regular endings of English."""
        for ending, singular in (("ies", "y"), ("ches", "ch"), ("xes", "x"), ("sses", "ss"), ("s", "")):
            if self.many.endswith(ending):
                return self.many.removesuffix(ending) + singular
        return self.many

    @property
    def each(self) -> str:
        """`an example`, `a token`."""
        return f"{'an' if self.one[0] in 'aeiou' else 'a'} {self.one}"

    @property
    def unit(self) -> str:
        """The unit of a rate: `examples/s`."""
        return f"{self.many}/s"

    def worded(self, text: str) -> str:
        """`text`, which is said of examples, said of this: headings, names of columns, notes."""
        said = {"an example": self.each, "examples": self.many, "example": self.one}
        return _SAID_OF_EXAMPLES.sub(lambda found: said[found[0]], text)

    @property
    def throughput_key(self) -> str:
        """The column of a rate: `throughput_examples_per_s`."""
        return f"throughput_{self.many}_per_s"

    @property
    def cpu_key(self) -> str:
        """The column of processor time: `cpu_seconds_per_example`."""
        return f"cpu_seconds_per_{self.one}"


EXAMPLES = Quantity("examples")
TOKENS = Quantity("tokens")
SEVERAL = Quantity("units")
"""What a table or a figure says that holds work of several quantities, each row in that of its own cell."""


@dataclass(frozen=True)
class Work:
    """What one step does: `amount` of `quantity`."""

    quantity: Quantity
    amount: int

    def rate(self, step_time_s: float) -> float:
        """Throughput in `quantity.unit`: amount ÷ step time."""
        return self.amount / step_time_s


def of_examples(count: int, tokens: int, quantity: str = "") -> Work:
    """So many examples, or all of their tokens where a model's work is counted in those; where a `quantity` is asked
    for, `NAME` or `NAME=NUMBER`, one of that an example, or as many."""
    if quantity:
        name, _, of_each = quantity.partition("=")
        return Work(Quantity(name), count * int(of_each or 1))
    return Work(TOKENS, count * tokens) if tokens else Work(EXAMPLES, count)


def checked_quantity(quantity: str, model: str, tokens: int) -> str:
    """The `quantity` that is asked for of a model whose examples have so many `tokens`, empty where it is the model's
    own. UsageError where it says otherwise than the model, or leaves open how many there are."""
    name, _, of_each = quantity.partition("=")
    own = tokens if name == TOKENS.many else int(name == EXAMPLES.many)
    if name == TOKENS.many and not (tokens or of_each):
        of = "the data" if model == NO_MODEL else f"'{model}'"
        raise UsageError(f"quantity: how many tokens an example of {of} has is not known; say {name}=NUMBER")
    if own and int(of_each or own) != own:
        raise UsageError(f"quantity: given {quoted(quantity)}, and an example of '{model}' has {own}; say {name}")
    return "" if name == (TOKENS if tokens else EXAMPLES).many else quantity
