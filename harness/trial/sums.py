"""Known values through the sums that gradients take: what each replica sends, and whether what came back is the sum.

Replica r sends its weight times a pattern of integers, in the shapes of the model's own gradients and as one list, as
the step sends them. Integers are as large as the type of the gradient adds exactly, so no narrower type carries them.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.protocol.state import Array

Tensors = Sequence[tuple[tuple[int, ...], str]]
"""The shape and the type of each tensor of a list that is reduced together."""

ANY_MODEL: Tensors = (((1,), "float32"), ((10,), "float32"), ((3, 3, 1, 32), "float32"), ((1600, 64), "float32"))
"""What is sent where there is no model."""
BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""Integers of so many bits are exact in a type; in any other, of FEWEST_BITS."""
FEWEST_BITS = 8
POWERS = 10
"""Up to so many replicas send powers of two, so that the sum itself tells whose values are missing; beyond, r + 1."""
MOST_ELEMENTS = 1 << 22
"""Of all tensors together; in a larger model each tensor is cut to an equal part of it."""
STEP = 37
"""Neighbouring elements of a pattern differ by so much."""


def known_values(n: int, tensors: Tensors = ANY_MODEL, whole: bool = False) -> "tuple[list[float], list[Array]]":
    """(each of n replicas' weight, each tensor's pattern): replica r sends its weight times the patterns.

    Patterns of float64 are float64, all others float32, whatever type they are to be sent in. Tensors are cut to
    MOST_ELEMENTS unless they are wanted `whole`.
    """
    sent = tensors if whole else _capped(tensors)
    weights = [2.0**r for r in range(n)] if n <= POWERS else [r + 1.0 for r in range(n)]
    return weights, [_pattern(shape, dtype, int(sum(weights))) for shape, dtype in sent]


def _capped(tensors: Tensors) -> Tensors:
    if sum(math.prod(shape) for shape, _ in tensors) <= MOST_ELEMENTS:
        return tensors
    most = max(1, MOST_ELEMENTS // len(tensors))
    return [(shape if math.prod(shape) <= most else (most,), dtype) for shape, dtype in tensors]


def _pattern(shape: tuple[int, ...], dtype: str, whole: int) -> "Array":
    """Integers from the upper quarter of what can be added `whole` times, the largest of them odd.

    A bit is left for a value that is counted twice. Zeros where a type has not the bits for `whole` itself, which is
    bfloat16 from nine replicas on.
    """
    import numpy as np

    exact = 2 ** BITS.get(dtype, FEWEST_BITS)
    top = (exact // 2 - 1) // whole or int(whole <= exact)
    top -= int(top > 0 and top % 2 == 0)
    values = top - np.arange(math.prod(shape), dtype=np.int64) * STEP % max(1, top // 4)
    pattern: Array = values.reshape(shape).astype(np.float64 if dtype == "float64" else np.float32)
    return pattern


def judge_sums(
    results: "Sequence[Sequence[Array]]", patterns: "Sequence[Array]", weights: "Sequence[float]", first: int = 0
) -> str | None:
    """Whether `results[i][r]`, what r received, is the sum over all of `weights` of each times `patterns[i]`.

    The replicas are those of one process, of which `first` is the first one's number.
    """
    import numpy as np

    whole = sum(weights)
    for position, (received, pattern) in enumerate(zip(results, patterns, strict=True)):
        expected = whole * pattern
        for r, value in enumerate(received, first):
            if not np.array_equal(value.astype(expected.dtype, copy=False), expected):
                where = f"tensor {position + 1} of {len(patterns)}, as replica {r} received it"
                if value.shape != expected.shape:
                    return f"{where}: the shape is {list(value.shape)}, expected {list(expected.shape)}"
                return f"{where}: {_explain(weights, np.unique(value.astype(np.float64) / pattern))}"
    return None


def judge_copies(results: "Sequence[Array]", expected: "Array", first: int = 0) -> str | None:
    """Whether `results[r]`, what r received, is `expected`, element by element; replicas are counted from `first`."""
    import numpy as np

    for r, received in enumerate(results, first):
        if received.shape != expected.shape:
            return f"replica {r} received the shape {list(received.shape)}, expected {list(expected.shape)}"
        differs = np.flatnonzero(received != expected)
        if differs.size:
            at = int(differs[0])
            return (
                f"of what replica {r} received, {differs.size:,} of {expected.size:,} elements differ; the first, "
                f"number {at:,} from 0, is {float(received[at]):g} where {float(expected[at]):g} was sent"
            )
    return None


def _explain(weights: Sequence[float], factors: "Array") -> str:
    """What the factors of the pattern say that came back, where there should be one, the sum of the weights."""
    n, whole = len(weights), sum(weights)
    if factors.size != 1:
        off = float(abs(factors / whole - 1).max())
        rounded = f", rounded by up to {off:.2g} of it: a type with fewer bits was on the way" if off < 0.01 else ""
        return f"the sum differs between elements ({factors.size} different factors; expected {whole:g}{rounded})"
    got = float(factors[0])
    text = f"got {got:g} where the sum over {n} replicas is {whole:g}"
    if missing := _missing(weights, got):
        return f"{text}: the value of replica {', '.join(map(str, missing))} is missing"
    if math.isclose(got * n, whole, rel_tol=1e-5):
        return f"{text}: that is the mean, not the sum"
    if got - whole in weights:
        return f"{text}: the value of replica {weights.index(got - whole)} is counted twice"
    return text


def _missing(weights: Sequence[float], got: float) -> list[int]:
    """The replicas whose weights alone are not in a sum; none where it cannot be told."""
    gone = sum(weights) - got
    if gone in weights:
        return [weights.index(gone)]
    if len(weights) > POWERS or not got.is_integer() or got < 0 or gone <= 0:
        return []
    return [r for r in range(len(weights)) if int(gone) >> r & 1]
