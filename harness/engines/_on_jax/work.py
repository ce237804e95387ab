"""Products and convolutions of a compiled program, by which instruments are told apart."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.engines._on_jax.executed import Program, collectives
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
_BACKWARD, _NAMED = "transpose(", 'op_name="'
"""What JAX calls an op by that its automatic differentiation goes backward with; and how XLA tells what JAX says."""
_LOWERED = re.compile(r"stablehlo\.(convolution|dot)(?:_general)?\b.* loc\((#loc\d*)\)$", re.MULTILINE)
_PLACE = re.compile(r'^(#loc\d*) = loc\("([^"]*)"', re.MULTILINE)


class CompiledWork(NamedTuple):
    """Products and convolutions by op and the sizes of what they give, and the operations that they take together."""

    ops: Counter[str]
    flops: int


def holds_of_program(program: Program, changes: int) -> Holds:
    """What a program that changes so many weights holds as it is compiled."""
    text = program.compiled.as_text()
    work, found = work_of(text, program.lowered.as_text(debug_info=True)), list(collectives(text))
    sums = [one for one in found if one.name == "all-reduce"]
    of_tensors = Counter(one.name for one in sums if one.bytes)
    besides = Counter(one.name for one in found if one.name != "all-reduce")
    added_up = sum(one.bytes for one in sums)
    return Holds(work.ops, of_tensors, changes, added_up, len(found), flops=work.flops, sent_besides=besides)


def work_of(text: str, lowered: str = "") -> CompiledWork:
    """Of the text of a compiled program; of what is in a fusion, too.

    XLA drops JAX's word for what it has turned round, such as the gradient of a convolution's kernel. That goes
    backward where `lowered`, the program as XLA got it, has no more that goes forward than still says so.
    """
    shapes = {name: _dimensions(sizes) for name, _, sizes in _GIVEN.findall(text)}
    found = _WORK.findall(text)
    unnamed_go_backward = _all_forward_is_named(found, lowered)
    ops, flops = Counter[str](), 0
    for kind, sizes, op, operands, rest in found:
        name = f"{op} {kind}{sorted(_dimensions(sizes))}"  # XLA turns a product round as it likes
        backward = _BACKWARD in rest or (_NAMED not in rest and op in unnamed_go_backward)
        ops[f"{name}{BACKWARD}" if backward else name] += 1
        first, second = (shapes[_OPERAND.findall(of.strip())[0]] for of in operands.split(", ")[:2])
        summed = _of_dot(first, rest) if op == "dot" else _of_convolution(second, rest)
        flops += 2 * math.prod(_dimensions(sizes)) * summed
    return CompiledWork(ops, flops)


def _all_forward_is_named(found: Sequence[Sequence[str]], lowered: str) -> set[str]:
    """The ops of which XLA was given as many as there are, and as many that go forward as still say so."""
    places = dict(_PLACE.findall(lowered))
    given = [(op, _BACKWARD in places.get(place, "")) for op, place in _LOWERED.findall(lowered)]
    of_all, there = Counter(op for op, _ in given), Counter(op for _, _, op, _, _ in found)
    forward = Counter(op for _, _, op, _, rest in found if _NAMED in rest and _BACKWARD not in rest)
    return {op for op in of_all if of_all[op] == there[op] and given.count((op, False)) == forward[op]}


def _of_dot(first: Sequence[int], rest: str) -> int:
    """Products that are added up for each number."""
    return math.prod(first[int(place)] for place in _CONTRACTED.findall(rest)[0].split(",") if place)


def _of_convolution(kernel: Sequence[int], rest: str) -> int:
    """The same: a kernel of one of its outputs."""
    labels = _KERNEL.findall(rest)[0]
    return math.prod(size for size, label in zip(kernel, labels, strict=True) if label != "o")


def _dimensions(sizes: str) -> list[int]:
    return [int(size) for size in sizes.split(",") if size]
