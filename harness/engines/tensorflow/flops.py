"""Floating-point operations of a traced program, and what they move: its matrix products and convolutions.

TensorFlow's own counts (`tf.compat.v1.profiler`, float_operation) do not serve: they know no gradient of a depthwise
convolution and no Einsum, take an unpadded convolution's gradient for one of padded images, read `transpose_a` of a
batched product, whose attribute is `adj_x`, and count what the runtime prunes.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MULTIPLY_AND_ADD = 2
"""Operations; what is added to zero counts as one, and so does what meets the zeros at an image's edge."""
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""Ops that run their function once."""
BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
"""Ops that run one of their functions."""


class NotCountable(Exception):
    """How much is computed shows only when the program runs."""


class OperationCount(NamedTuple):
    """What matrix products and convolutions do."""

    flops: int = 0
    """2 for each multiplication and addition."""
    bytes: int = 0
    """Of the tensors that each of them reads and writes, each once; what a cache holds meanwhile counts as well."""
    of_types: tuple[tuple[str, int], ...] = ()
    """How many of `flops` are of numbers of each type, the most first."""


def work_of(program: Any) -> OperationCount | None:
    """Of one call of `program`, a ConcreteFunction. Nothing but its matrix products and convolutions is counted.

    None where the graph does not say: a shape that is known only when it runs, a loop or a branch with products.
    """
    library = {name: getattr(function, "graph", None) for name, function in program.graph._functions.items()}
    try:
        return _of_graph(program.graph, library, {})
    except NotCountable:
        return None


def _of_graph(graph: Any, library: Mapping[str, Any], known: dict[str, OperationCount]) -> OperationCount:
    return _sum(_of_operation(operation, library, known) for operation in _needed(graph))


def _sum(several: Iterable[OperationCount]) -> OperationCount:
    flops, moved, of_types = 0, 0, Counter[str]()
    for one in several:
        flops, moved = flops + one.flops, moved + one.bytes
        of_types.update(dict(one.of_types))
    return OperationCount(flops, moved, tuple(of_types.most_common()))


def _needed(graph: Any) -> Iterator[Any]:
    """The ops that the runtime keeps: those with an effect, and those that a result or an effect needs."""
    effects = (operation for operation in graph.get_operations() if _kind_of(operation).stateful)
    pending = [*(tensor.op for tensor in graph.outputs), *graph.control_outputs, *effects]
    seen = set()
    while pending:
        operation = pending.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        pending += [tensor.op for tensor in operation.inputs]
        pending += operation.control_inputs
        yield operation


def _of_operation(operation: Any, library: Mapping[str, Any], known: dict[str, OperationCount]) -> OperationCount:
    if (count := COUNTS.get(operation.type)) is not None:
        flops = count(operation)
        of_types = ((operation.outputs[0].dtype.name, flops),)
        return OperationCount(flops, _moved(operation), of_types) if flops else OperationCount()
    inner = [_of_function(name, library, known) for name in _functions_of(operation)]
    if operation.type in CALLS or not any(work.flops for work in inner):
        return _sum(inner)
    if operation.type in BRANCHES and len(set(inner)) == 1:
        return inner[0]
    raise NotCountable(operation.type)


def _functions_of(operation: Any) -> Iterator[str]:
    """Names of the functions that an op calls."""
    kind = _kind_of(operation)
    if not (kind.one or kind.several):
        return
    given = operation.node_def.attr
    found = [given[name].func for name in kind.one]
    found += [function for name in kind.several for function in given[name].list.func]
    yield from (function.name for function in found if function.name)


@dataclass(frozen=True)
class _OpKind:
    """Of ops of one type: whether they have an effect, and which attributes are a function, or several."""

    stateful: bool
    one: tuple[str, ...]
    several: tuple[str, ...]


_kinds: dict[str, _OpKind] = {}
"""By type: TensorFlow makes the definition anew each time that an op is asked for it."""


def _kind_of(operation: Any) -> _OpKind:
    if operation.type not in _kinds:
        definition = operation.op_def
        one, several = (
            tuple(attribute.name for attribute in definition.attr if attribute.type == kind)
            for kind in ("func", "list(func)")
        )
        _kinds[operation.type] = _OpKind(definition.is_stateful, one, several)
    return _kinds[operation.type]


def _moved(operation: Any) -> int:
    """Bytes of the tensors that an op reads and writes; one of whole numbers only says what shape another has."""
    tensors = (tensor for tensor in (*operation.inputs, *operation.outputs) if not tensor.dtype.is_integer)
    return sum(math.prod(_dims(tensor)) * int(tensor.dtype.size) for tensor in tensors)


def _of_function(name: str, library: Mapping[str, Any], known: dict[str, OperationCount]) -> OperationCount:
    if name not in known:
        graph = library.get(name)
        if graph is None:
            raise NotCountable(name)
        known[name] = _of_graph(graph, library, known)
    return known[name]


def _dims(tensor: Any) -> list[int]:
    if not tensor.shape.is_fully_defined():
        raise NotCountable(tensor.name)
    return list(tensor.shape.as_list())


def _product(operation: Any, flag: str) -> int:
    """[…, m, k] × […, k, n]: 2·m·n·k for each of the batch, which is broadcast."""
    left = _dims(operation.inputs[0])
    inner = left[-2] if operation.get_attr(flag) else left[-1]
    return MULTIPLY_AND_ADD * inner * math.prod(_dims(operation.outputs[0]))


def _convolution(image: Any, kernel: Any, summed: int) -> int:
    """2 for each element of the forward pass's output and each element of the filter that is summed up for it.

    `image` has the shape of that output, `kernel` that of the filter, of whose dimensions the first `summed` are added
    up: height, width and, unless it is depthwise, input channels (of a group). Both gradients do as much.
    """
    return MULTIPLY_AND_ADD * math.prod(_dims(image)) * math.prod(_dims(kernel)[:summed])


def _einsum(operation: Any) -> int:
    """2 for each combination of the labels of two operands, where one that both have is summed up; else nothing."""
    terms, _, result = operation.get_attr("equation").decode().partition("->")
    sizes: list[dict[str, int]] = [
        _labelled(term, _dims(tensor)) for term, tensor in zip(terms.split(","), operation.inputs, strict=True)
    ]
    if len(sizes) != 2:
        return 0
    left, right = sizes
    kept = set(result.replace(".", ""))
    if not {label for label in left.keys() & right.keys() if len(label) == 1} - kept:
        return 0
    alone = {label for label in left.keys() ^ right.keys() if len(label) == 1} - kept  # summed up beforehand
    labels = (left.keys() | right.keys()) - alone
    return MULTIPLY_AND_ADD * math.prod(max(left.get(label, 1), right.get(label, 1)) for label in labels)


def _labelled(term: str, dims: list[int]) -> dict[str, int]:
    """The size of each label; those that an ellipsis stands for are `.1`, `.2`, … counted from the right."""
    before, dots, after = term.partition("...")
    hidden = [f".{place}" for place in range(len(dims) - len(before) - len(after), 0, -1)] if dots else []
    return dict(zip([*before, *hidden, *after], dims, strict=True))


OpCounter = Callable[[Any], int]
COUNTS: dict[str, OpCounter] = {
    "MatMul": lambda op: _product(op, "transpose_a"),
    "BatchMatMul": lambda op: _product(op, "adj_x"),
    "BatchMatMulV2": lambda op: _product(op, "adj_x"),
    "BatchMatMulV3": lambda op: _product(op, "adj_x"),
    "Einsum": _einsum,
    "Conv2D": lambda op: _convolution(op.outputs[0], op.inputs[1], 3),
    "Conv2DBackpropInput": lambda op: _convolution(op.inputs[2], op.inputs[1], 3),
    "Conv2DBackpropFilter": lambda op: _convolution(op.inputs[2], op.outputs[0], 3),
    "Conv3D": lambda op: _convolution(op.outputs[0], op.inputs[1], 4),
    "Conv3DBackpropInputV2": lambda op: _convolution(op.inputs[2], op.inputs[1], 4),
    "Conv3DBackpropFilterV2": lambda op: _convolution(op.inputs[2], op.outputs[0], 4),
    "DepthwiseConv2dNative": lambda op: _convolution(op.outputs[0], op.inputs[1], 2),
    "DepthwiseConv2dNativeBackpropInput": lambda op: _convolution(op.inputs[2], op.inputs[1], 2),
    "DepthwiseConv2dNativeBackpropFilter": lambda op: _convolution(op.inputs[2], op.outputs[0], 2),
}
"""What an op of each type computes."""
