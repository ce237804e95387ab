"""What a traced program holds, by which instruments are told apart, and what the graph optimiser leaves of it."""

from collections import Counter
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


def holds_of(program: Any, cell: TrainingCell) -> Holds:
    """What a ConcreteFunction holds, with all that it calls."""
    ops = _ops(program.graph.as_graph_def())
    work = Counter(op for op in ops if works(op))
    changes = sum(op.startswith(CHANGES) for op in ops)
    executed, collectives = inspect(program, cell), sum(op in COLLECTIVES for op in ops)
    of_reductions = Counter(executed.operations), changes, sum(executed.pack_bytes), collectives
    return Holds(work, *of_reductions, reads=ops.count(READ), flops=executed.flops_per_step)


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
