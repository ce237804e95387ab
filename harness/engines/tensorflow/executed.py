"""What the traced program really does: reductions, packs, XLA clusters, and a fingerprint."""

import hashlib
import math
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.engines.tensorflow.cross_device import cross_device_ops
from harness.engines.tensorflow.flops import OperationCount, work_of
from harness.record.trial import Executed
from harness.spec.work import DistributedCell

COLLECTIVES = (
    "CollectiveReduce",
    "CollectiveReduceV2",
    "CollectiveReduceV3",
    "NcclAllReduce",
    "CrossReplicaSum",
    "HorovodAllreduce",
)
"""Ops that reduce across devices by themselves, each replica issuing one."""
ADDITIONS = ("AddN", "Add", "AddV2")
"""Ops that are a reduction across devices when their inputs come from several."""
ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
"""Ops that change a variable on a parameter server, beside the fused ones."""
PASS_THROUGH = ("Identity", "StopGradient", "Reshape", "Cast")
"""Ops that a value goes through on its way without leaving its device in any sense that matters."""
_inspected: "weakref.WeakKeyDictionary[Any, tuple[DistributedCell, Executed]]" = weakref.WeakKeyDictionary()
"""What was found of each program that is still there, and of which cell."""


def inspect(program: Any, cell: DistributedCell) -> Executed:
    """Read the graph of `program`, a ConcreteFunction: once, although it is asked for where an instrument is judged and
    where it is recorded."""
    known = _inspected.get(program)
    if known is None or known[0] != cell:
        known = _inspected[program] = cell, _read(program, cell)
    return known[1]


def _read(program: Any, cell: DistributedCell) -> Executed:
    definition = program.graph.as_graph_def()
    bodies = {function.signature.name: function.node_def for function in definition.library.function}
    reductions = [found for graph in _graphs(program.graph) for found in _reductions(graph)]
    if cell.asynchronous:
        operations = Counter(_update_name(op) for graph in _graphs(program.graph) for op in _updates(graph))
    else:
        operations = Counter(_name(found.operation.node_def) for found in reductions)
    final = sorted((found.size for found in reductions if found.final), reverse=True)
    each = cell.replicas if any(name.split("[")[0] in COLLECTIVES for name in operations) else 1
    work = _work_per_step(program, cell)
    return Executed(
        operations=dict(sorted(operations.items())),
        packs=len(final) // each,
        pack_bytes=[size for size in final[::each] if size],
        xla_clusters=_clusters([program.function_def, *definition.node], *bodies.values()),
        fingerprint=_fingerprint(definition.node, bodies),
        differs_from_request=_difference(cell, operations),
        flops_per_step=work.flops or None,
        bytes_per_step=work.bytes or None,
        product_types=[name for name, _ in work.of_types],
    )


def steps_a_call(program: Any) -> int | None:
    """How many steps the loop of `program`, a ConcreteFunction, makes at most: the number that its counter is held
    against. None where it has no loop that is bound by one."""
    import tensorflow as tf

    bounds = [
        tf.get_static_value(operation.inputs[1])
        for graph in _graphs(program.graph)
        for operation in graph.get_operations()
        if operation.type == "Less" and operation.inputs[1].op.type == "Const"
    ]
    return int(max(bounds)) if bounds else None


def _work_per_step(program: Any, cell: DistributedCell) -> OperationCount:
    """Of all replicas of all workers in lock-step; of workers that wait for nobody a step is one's update.

    Nothing where there is none or the graph does not say; nor of TPU cores, whose one program for all was not looked
    at.
    """
    counted = (None if cell.device == "tpu" else work_of(program)) or OperationCount()
    workers = 1 if cell.asynchronous else cell.workers
    return OperationCount(counted.flops * workers, counted.bytes * workers, counted.of_types)


def inspect_expanded(definition: Any, layouts: Mapping[str, str]) -> Executed:
    """Read a graph in which every device of a mesh has its own part, as the runtime made it of one program."""
    found = [node for node in definition.node if node.op.startswith("Collective")]
    on_one = [node for node in found if node.device == found[0].device]
    sizes = [_bytes_of(node) for node in on_one]
    return Executed(
        operations=dict(sorted(Counter(_name(node) for node in found).items())),
        packs=len(on_one),
        pack_bytes=sorted((size for size in sizes if size), reverse=True),
        fingerprint=_structure(definition.node, str)[:16],
        layouts=dict(layouts),
    )


def _bytes_of(node: Any) -> int:
    """Bytes of the tensor that a collective gives; 0 where the graph does not say."""
    import tensorflow as tf

    shapes = node.attr["_output_shapes"].list.shape
    if not shapes or any(dimension.size < 0 for dimension in shapes[0].dim):
        return 0
    elements = math.prod(dimension.size for dimension in shapes[0].dim)
    return int(elements) * int(tf.dtypes.as_dtype(node.attr["T"].type).size)


@dataclass(frozen=True)
class _Reduction:
    """An op that combines tensors across devices. `final`: its result goes into no further reduction."""

    operation: Any
    size: int
    final: bool


def _reductions(graph: Any) -> Iterator[_Reduction]:
    """Reductions of tensors across devices in `graph`; scalars, such as the reported loss, are not counted."""
    found = [operation for operation in graph.get_operations() if _reduces(operation)]
    inner = {source.name for operation in found for source in _sources(operation)}
    for operation in found:
        shape = operation.inputs[0].shape
        known = shape.is_fully_defined()
        size = int(shape.num_elements()) * int(operation.inputs[0].dtype.size) if known else 0
        yield _Reduction(operation, size, final=operation.name not in inner)


def _reduces(operation: Any) -> bool:
    if operation.type not in (*COLLECTIVES, *ADDITIONS) or operation.inputs[0].shape.rank == 0:
        return False
    if operation.type in COLLECTIVES:
        return True
    return len({source.device for source in _sources(operation) if source.device}) > 1


def _sources(operation: Any) -> Iterator[Any]:
    """The ops that made the inputs of `operation`, seen through copies."""
    for tensor in operation.inputs:
        source = tensor.op
        while source.type in PASS_THROUGH and source.inputs:
            source = source.inputs[0].op
        yield source


def _updates(graph: Any) -> Iterator[Any]:
    """Ops of `graph` that change a variable."""
    return (op for op in graph.get_operations() if op.type in ASSIGNMENTS or op.type.startswith("ResourceApply"))


def _update_name(operation: Any) -> str:
    locked = "use_locking" in operation.node_def.attr and operation.node_def.attr["use_locking"].b
    return f"{operation.type}[locked]" if locked else str(operation.type)


def _name(node: Any) -> str:
    """The op with its communication hint, and what TensorFlow makes of that where it is something else."""
    hint = node.attr["communication_hint"].s.decode() if "communication_hint" in node.attr else ""
    if not hint:
        return str(node.op)
    made = _implementation(hint, node.device)
    return f"{node.op}[{hint}]" if made == hint else f"{node.op}[{hint}: {made}]"


def _implementation(hint: str, device: str) -> str:
    """What carries out a collective on `device`, as `CollectiveParamResolverLocal::AssignCollectiveType` decides it.

    NCCL between GPUs where the hint or the runtime's configuration says so, else TensorFlow's ring. No strategy sets
    that configuration, so `auto` is a ring on GPUs, too.
    """
    from tensorflow.python.eager import context

    nccl = hint == "nccl" or context.context()._collective_use_nccl_communication
    return "nccl" if nccl and "GPU" in device else "ring"


def _graphs(graph: Any) -> Iterator[Any]:
    """`graph` and the graphs of the functions that it calls, as far as Python still holds them."""
    yield graph
    for name in getattr(graph, "_functions", {}):
        inner = getattr(graph._functions[name], "graph", None)
        if inner is not None:
            yield inner


def _clusters(*parts: Sequence[Any]) -> int:
    """How many calls of functions, and whether the program itself, are compiled by XLA."""
    return sum(1 for nodes in parts for node in nodes if _compiled(node))


def _compiled(node: Any) -> bool:
    return "_XlaMustCompile" in node.attr and bool(node.attr["_XlaMustCompile"].b)


def _fingerprint(nodes: Sequence[Any], bodies: Mapping[str, Sequence[Any]]) -> str:
    """SHA-256 (16 digits) of the program's structure: op, device, types, shapes and edges, no names."""
    digests: dict[str, str] = {}

    def of_function(name: str) -> str:
        if name not in digests:
            digests[name] = "recursive"
            digests[name] = _structure(bodies[name], of_function) if name in bodies else name
        return digests[name]

    return _structure(nodes, of_function)[:16]


def _structure(nodes: Sequence[Any], of_function: Any) -> str:
    """Digest of a graph: each node's digest covers its inputs' digests, whatever they are called."""
    known: dict[str, str] = {}
    for node in nodes:
        parts = [node.op, node.device]
        parts += [known.get(name.lstrip("^").split(":")[0], "") + ":" + _port(name) for name in node.input]
        for key in sorted(node.attr):
            value = node.attr[key]
            kind = value.WhichOneof("value")
            if kind == "func":
                parts.append(of_function(value.func.name))
            elif kind in ("type", "shape", "i", "f", "b") and not key.startswith("_"):
                parts.append(f"{key}={value.SerializeToString()!r}")
            elif key in ("communication_hint", "merge_op", "final_op", "reduction", "padding", "data_format"):
                parts.append(f"{key}={value.s!r}")
        known[node.name] = hashlib.sha256("|".join(parts).encode()).hexdigest()
    return hashlib.sha256("".join(sorted(known.values())).encode()).hexdigest()


def _port(name: str) -> str:
    return "^" if name.startswith("^") else name.partition(":")[2]


def _difference(cell: DistributedCell, operations: Mapping[str, int]) -> str | None:
    """What was asked for and is not what runs, in words; None when nothing differs."""
    op = cross_device_ops().get(cell.cross_device_op)
    if op is None or cell.replicas_in_sync == 1 or not op.promises:
        return None
    found = {name.split("[")[0] for name in operations} | {name.lower() for name in operations}
    if found & {name if "[" not in name else name.lower() for name in op.promises}:
        return None
    ran = ", ".join(f"{count} {name}" for name, count in sorted(operations.items())) or "no reduction"
    return f"asked for {cell.cross_device_op}, whose program has {' or '.join(op.promises)}; executed {ran}"
