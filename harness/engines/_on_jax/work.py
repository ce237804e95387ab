"""Products and convolutions of a compiled program, by which instruments are told apart."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.engines._on_jax.executed import collectives
from harness.trial.instruments import Holds
from harness.trial.same_work.instruments import BACKWARD

_GIVEN = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\w+)\[([\d,]*)\]", re.MULTILINE)
_WORK = re.compile(
    r"^\s*(?:ROOT )?%?[\w.-]+ = (\w+)\[([\d,]*)\]\S* (dot|convolution)\(([^)]*)\)(.*)$",
    re.MULTILINE,
)
_OPERAND = re.compile(r"%?([\w.-]+)$")
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_KERNEL = re.compile(r"dim_labels=\w+_(\w+)->")
_BACKWARD = "transpose("
"""What JAX calls an op by that its automatic differentiation goes backward with."""


class CompiledWork(NamedTuple):
    """Products and convolutions by op and the sizes of what they give, and the operations that they take together."""

    ops: Counter[str]
    flops: int


def held_by(compiled: Any, changes: int) -> Holds:
    """What a compiled program holds that changes so many weights."""
    text = compiled.as_text()
    work, found = work_of(text), list(collectives(text))
    sums = [one for one in found if one.name == "all-reduce"]
    of_tensors = Counter(one.name for one in sums if one.bytes)
    besides = Counter(one.name for one in found if one.name != "all-reduce")
    added_up = sum(one.bytes for one in sums)
    return Holds(work.ops, of_tensors, changes, added_up, len(found), flops=work.flops, sent_besides=besides)


def work_of(text: str) -> CompiledWork:
    """Of the text of a compiled program; of what is in a fusion, too."""
    shapes = {name: _dimensions(sizes) for name, _, sizes in _GIVEN.findall(text)}
    ops, flops = Counter[str](), 0
    for kind, sizes, op, operands, rest in _WORK.findall(text):
        name = f"{op} {kind}{sorted(_dimensions(sizes))}"  # XLA turns a product round as it likes
        ops[f"{name}{BACKWARD}" if _BACKWARD in rest else name] += 1
        first, second = (shapes[_OPERAND.findall(of.strip())[0]] for of in operands.split(", ")[:2])
        summed = _of_dot(first, rest) if op == "dot" else _of_convolution(second, rest)
        flops += 2 * math.prod(_dimensions(sizes)) * summed
    return CompiledWork(ops, flops)


def _of_dot(first: Sequence[int], rest: str) -> int:
    """Products that are added up for each number."""
    return math.prod(first[int(place)] for place in _CONTRACTED.findall(rest)[0].split(",") if place)


def _of_convolution(kernel: Sequence[int], rest: str) -> int:
    """The same: a kernel of one of its outputs."""
    labels = _KERNEL.findall(rest)[0]
    return math.prod(size for size, label in zip(kernel, labels, strict=True) if label != "o")


def _dimensions(sizes: str) -> list[int]:
    return [int(size) for size in sizes.split(",") if size]
