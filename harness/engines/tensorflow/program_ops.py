"""What a traced program holds, by which instruments are told apart, and what the graph optimiser leaves of it."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from harness.engines.tensorflow.executed import COLLECTIVES, inspect
from harness.spec.cell import TrainingCell
from harness.trial.instruments import Holds

HEAVY = ("MatMul", "Conv", "Einsum", "DepthwiseConv")
"""Parts of the names of ops that do a step's work, of the fused ones too."""
BACKWARD = ("Grad", "Backprop")
"""Parts of the names of ops that go backward, but for those whose names say that nothing does there, and for those
that change a variable by a gradient."""
NOT_BACKWARD = ("StopGradient", "PreventGradient")
CHANGES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
"""Beginnings of the names of ops that change a variable."""
READ = "ReadVariableOp"


OTHER_WAYS = ("While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase")
"""Ops whose functions lie in a program once more where it is differentiated."""
BACKWARD_SCOPES = ("gradient_tape", "gradients")
"""Of what a tape adds to a program, what its names begin with, within a plain function."""


def holds_of(program: Any, cell: TrainingCell, optimizers: Collection[str] = ()) -> Holds:
    """What a ConcreteFunction holds, with all that it calls. `optimizers` are the names that an update's ops are below;
    without any nobody tells what is of the update and what of the forward pass."""
    graph = program.graph.as_graph_def()
    nodes = nodes_of(graph)
    ops = [node.op for node in nodes]
    work = Counter(op for op in ops if works(op))
    changes = [node for node in nodes if node.op.startswith(CHANGES)]
    executed, collectives = inspect(program, cell), sum(op in COLLECTIVES for op in ops)
    of_reductions = Counter(executed.operations), len(changes), sum(executed.pack_bytes), collectives
    return Holds(
        work,
        *of_reductions,
        reads=ops.count(READ),
        flops=executed.flops_per_step,
        forward=_forward(graph, nodes, optimizers) if optimizers else None,
        updates=sum(_is_below(node, optimizers) for node in changes),
    )


def _forward(graph: Any, nodes: Sequence[Any], optimizers: Collection[str]) -> Counter[str] | None:
    """Products and convolutions that are of no backward pass and of no update. None where names do not tell: of what a
    tape differentiates as a function, a loop or a branch there is a copy, and a gradient of the user's own, as of what
    is computed again, has the names of a forward pass."""
    copies = any("_backward_" in function.signature.name for function in graph.library.function)
    nodes = [node for node in nodes if not _is_below(node, optimizers)]
    own = any(node.attr["_gradient_op_type"].s.startswith(b"CustomGradient") for node in nodes)
    if copies or own or any(node.op in OTHER_WAYS for node in nodes):
        return None
    heavy = [node for node in nodes if any(part in node.op for part in HEAVY)]
    return Counter(node.op for node in heavy if not _is_below(node, BACKWARD_SCOPES))


def _is_below(node: Any, scopes: Collection[str]) -> bool:
    return any(scope in scopes for scope in node.name.split("/")[:-1])


def works(op: str) -> bool:
    """Whether an op of the name does a step's work: a product, a convolution, or whatever goes backward."""
    return any(part in op for part in HEAVY) or goes_backward(op)


def goes_backward(op: str) -> bool:
    """Whether an op of the name is there for a backward pass alone."""
    return op not in NOT_BACKWARD and not op.startswith(CHANGES) and any(part in op for part in BACKWARD)


def collect_graphs() -> None:
    """From here on TensorFlow keeps what its graph optimiser makes of each program that is run for the first time."""
    from tensorflow.python.eager import context

    context.context().enable_graph_collection()


def collected() -> int:
    """Products and convolutions in the largest program since `collect_graphs`, which ends."""
    from tensorflow.python.eager import context

    kept = context.context().export_run_metadata()
    context.context().disable_graph_collection()
    programs = [_ops(graph.post_optimization_graph) for graph in kept.function_graphs]
    return max((sum(any(part in op for part in HEAVY) for op in ops) for ops in programs), default=0)


def nodes_of(graph: Any) -> list[Any]:
    """Every node of a GraphDef and of the functions that it holds."""
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def _ops(graph: Any) -> list[str]:
    return [node.op for node in nodes_of(graph)]
