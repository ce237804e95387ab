"""Instruments under Horovod: functions traced as the step is that lack one thing or make several steps, and what a
traced one holds."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import tensorflow as tf

from harness.engines.horovod.loops.base import HorovodLoop, Made
from harness.engines.tensorflow.flops import OperationCount, work_of
from harness.engines.tensorflow.loops._several_steps import several_in_a_call
from harness.engines.tensorflow.loops.custom import number_of
from harness.engines.tensorflow.program_ops import collect_graphs, collected, goes_backward, holds_of, nodes_of, works
from harness.record.explain import (
    EMPTY,
    FORWARD,
    FORWARD_BACKWARD,
    IN_ONE_CALL,
    NO_REDUCTION,
    NO_UPDATE,
    REDUCTION,
    WHOLE,
)
from harness.spec.cell import TrainingCell
from harness.trial.instruments import Holds
from harness.trial.same_work.instruments import BACKWARD

OF_THE_TAPE = "gradient_tape/"
"""What the name of an op begins with that TensorFlow's tape has put in."""
HOROVODS, ALL_REDUCE = "Horovod", "HorovodAllreduce"
"""What ops of Horovod that exchange begin with, and the one among them that adds up."""


class Instrument(NamedTuple):
    """What lacks one thing, or makes several steps, and the step within it; traced when they are called first."""

    whole: Made
    of_a_step: Made


def instrument_of(name: str, loop: HorovodLoop) -> Instrument:
    """The instrument of a name, as the loop calls its step; the step itself by the name of WHOLE."""
    if name == IN_ONE_CALL:
        step = loop.made(loop.one_step)
        return Instrument(Made.by_tracing(several_in_a_call(step.called)), step)
    made = loop.made(loop.one_step if name == WHOLE else _without(name, loop))
    return Instrument(made, made)


def _without(name: str, loop: HorovodLoop) -> Callable[[Any, Any], Any]:
    def own(tape: Any) -> Any:
        return tape

    def no_reduction(x: Any, y: Any) -> Any:
        loss, gradients = loop.passed(x, y, own)
        loop.apply(gradients)
        return loss

    functions: dict[str, Callable[[Any, Any], Any]] = {
        NO_REDUCTION: no_reduction,
        NO_UPDATE: lambda x, y: number_of(loop.gradients(x, y, loop.taped)),
        FORWARD_BACKWARD: lambda x, y: number_of(loop.gradients(x, y, own)),
        FORWARD: loop.loss_of,
        EMPTY: lambda _, __: tf.zeros([]),
        REDUCTION: _averages_alone(loop),
    }
    return functions[name]


def _averages_alone(loop: HorovodLoop) -> Callable[[Any, Any], Any]:
    """Averages of tensors as large as the gradients that lie there, by the tape that the loop makes of this one."""
    given = [tf.ones(source.shape, source.dtype) for source in loop.sources]

    class GivenTape(tf.GradientTape):  # type: ignore[misc]  # TensorFlow is not there to be looked at
        """A tape whose gradients are what is given."""

        def gradient(self, *_: Any, **__: Any) -> list[Any]:
            return [tf.identity(tensor) for tensor in given]  # of the program, whose tensors alone have names

    def averaged(_: Any, __: Any) -> Any:
        with GivenTape() as tape:
            return number_of(loop.taped(tape).gradient(None, loop.sources))

    return averaged


def holds_of_instrument(instrument: Instrument, batch: tuple[Any, ...], cell: TrainingCell) -> Holds:
    """What a traced function holds, which runs on `batch` for the first time. Every process must ask for the same."""
    collect_graphs()
    instrument.whole.called(*batch)
    left, program = collected(), instrument.whole.program()
    nodes = nodes_of(program.graph.as_graph_def())
    return replace(
        holds_of(program, cell),
        work=Counter(_name(node) for node in nodes if works(node.op)),
        flops=(work_of(instrument.of_a_step.program()) or OperationCount()).flops,
        sent_besides=Counter(n.op for n in nodes if n.op.startswith(HOROVODS) and n.op != ALL_REDUCE),
        left=left,
    )


def _name(node: Any) -> str:
    backward = node.name.startswith(OF_THE_TAPE) or goes_backward(node.op)
    return f"{node.op}{BACKWARD}" if backward else str(node.op)
