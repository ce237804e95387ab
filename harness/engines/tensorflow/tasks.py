"""What a fresh process is asked besides a trial: prepare data, probe the machine, find its limits, load your own."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from harness.engines.tensorflow.collectives import replica_buffers
from harness.engines.tensorflow.cross_device import build_op
from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.base import Source
from harness.engines.tensorflow.data.own_batches import OwnBatches
from harness.engines.tensorflow.data.pipeline import gate_batches
from harness.engines.tensorflow.data.store import TELL
from harness.engines.tensorflow.data.tfds import TfdsSource
from harness.engines.tensorflow.data_for_model import (
    as_given,
    must_have_targets,
    must_have_weights,
    refuse_several,
    taken_by,
)
from harness.engines.tensorflow.devices import device_kinds
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.limits import run_limits
from harness.engines.tensorflow.own_reference import build_step
from harness.engines.tensorflow.own_step import OwnStep
from harness.engines.tensorflow.own_training import own_training
from harness.engines.tensorflow.pipelines import PipelineTrial
from harness.engines.tensorflow.recovery.task import run_job
from harness.engines.tensorflow.sharded import make_ready
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.structures import Weighted, arrays_in, unweighted
from harness.engines.tensorflow.workloads import Workload, load_workload, loss_for, shapes_of
from harness.errors import HarnessError, Unsupported, UsageError
from harness.protocol.channel import Channel
from harness.protocol.engine import Task
from harness.protocol.messages import Outcome, Report, Request
from harness.spec.axes import NO_MODEL
from harness.spec.collective import COLLECTIVE
from harness.spec.pipeline import APPETITE, PIPELINE
from harness.spec.work import OWN_STEP, TRAINING, Cell
from harness.trial.collectives import CollectiveTrial, collective_of


def _prepare(request: Request, channel: Channel) -> Outcome:
    """Make the cell's data ready on disk, once a run; a step of the user's own brings its own.

    A name that nothing has crashes it, as in `_preflight`; data that cannot be had here and now are unsupported.
    """
    TELL.set(lambda words: channel.send(Report(note=words)))
    try:
        if request.cell.data_set is not None:
            make_ready(request.cell, Path(request.data_dir))
    except UsageError as error:
        return Outcome(status="crashed", reason=str(error))
    except (HarnessError, Unsupported) as error:
        return Outcome(status="unsupported", reason=str(error))
    return Outcome(status="ok")


def _probe(request: Request, _: Channel) -> Outcome:
    """Whether the cell's device, strategy and op run here at all, and reduce rightly, for `doctor`."""
    cell = request.training
    try:
        devices = device_kinds()[cell.device].set_up(request)
        kind = strategies()[cell.strategy]
        wrong = kind.check_reduction(kind.build(cell, devices, build_op(cell)))
    except Unsupported as error:
        return Outcome(status="unsupported", reason=str(error))
    except Exception as error:  # noqa: BLE001  the reason is what is asked for
        status, reason = classify(error)
        return Outcome(status=status, reason=reason)
    return Outcome(status="ok" if wrong is None else "wrong_result", reason=wrong)


def _preflight(request: Request, channel: Channel) -> Outcome:
    """Load a user's own step, or model, op and data; a UsageError becomes the reason.

    Told as the phase `build` is that all names are known and what is wrong from then on is wrong with the model.
    """
    try:
        LOADED[request.cell.tag](request, lambda: channel.send(Report(phase="build")))
    except HarnessError as error:
        return Outcome(status="crashed", reason=str(error))
    return Outcome(status="ok")


def _load_training(request: Request, builds: Callable[[], None]) -> None:
    """Load op and model, and try data where these are the user's own."""
    build_op(request.training)
    _load_model(request, builds)


def _load_pipeline(request: Request, builds: Callable[[], None]) -> None:
    """Load the model that it feeds, and try data where these are the user's own; or data that feed none."""
    if request.cell.get("model") != NO_MODEL:
        _load_model(request, builds)
        return
    source, data_dir = load_source(request.cell.data_set or ""), Path(request.data_dir)
    builds()
    size = _size_for(source, request.cell)
    gate_batches(source, data_dir, as_given(source, source.info(data_dir)), 0, size, 1)


def _size_for(source: Source, cell: Cell) -> int:
    """How many examples are read to see whether there are any: a batch where they come in those, else one."""
    if not isinstance(source, OwnBatches):
        return 1
    source.are_for(cell)
    return source.size


def _load_model(request: Request, builds: Callable[[], None]) -> None:
    workload = load_workload(request.cell.subject)
    if workload.input_shape is None:
        source = load_source(request.cell.data_set or "")
        builds()
        _try_data(request, workload, source)


def _try_data(request: Request, workload: Workload, source: Source) -> None:
    """Read an example of the user's own data, if they are; UsageError where it is none, or the model cannot take it."""
    model, data_dir = workload.build((), 0), Path(request.data_dir)
    must_have_weights(model, request.cell.subject)
    if isinstance(source, TfdsSource):
        with contextlib.suppress(HarnessError):  # what is on disk already says what its examples are
            source.info(data_dir)
        if source.gives == "anything":
            return
    with contextlib.suppress(Unsupported):
        source = source.for_model(model)
    if source.gives != "own":  # the others are prepared first
        with contextlib.suppress(Unsupported):  # its trials say so
            refuse_several(model, *shapes_of(model), source)
        return
    size = _size_for(source, request.cell)
    inputs, classes, _ = taken_by(model, workload, source, source.info(data_dir))
    [(x, target)] = gate_batches(source, data_dir, inputs, classes, size, 1)
    must_have_targets(model, unweighted(target), source)
    loss = loss_for(model, unweighted(target))
    if isinstance(target, Weighted) and loss and not own_training(model):
        one, *others = arrays_in(target.weights)
        if others or one.ndim > 1:
            loss.weighted(target.targets, model(x), target.weights)


def _own_step(request: Request, channel: Channel) -> Outcome:
    """A trial of a user's own training step."""
    return OwnStep(request, channel, classify).run()


def _collective(request: Request, channel: Channel) -> Outcome:
    """A trial of a collective by itself."""
    return CollectiveTrial(request, channel, classify, replica_buffers).run()


def _pipeline(request: Request, channel: Channel) -> Outcome:
    """A trial of an input pipeline by itself."""
    return PipelineTrial(request, channel, classify).run()


LOADED: dict[str, Callable[[Request, Callable[[], None]], object]] = {
    TRAINING: _load_training,
    OWN_STEP: lambda request, _: build_step(request.cell.subject),
    COLLECTIVE: lambda request, _: build_op(collective_of(request.cell)),
    PIPELINE: _load_pipeline,
    APPETITE: _load_model,
}
"""Loads what may be the user's own, by the cell's tag, and calls what it is given before it builds a model; a
HarnessError says what is wrong with it."""
TASKS: dict[str, Task] = {
    "prepare": _prepare,
    "probe": _probe,
    "preflight": _preflight,
    "job": run_job,
    "limits": run_limits,
    "own_step": _own_step,
    "collective": _collective,
    "pipeline": _pipeline,
}
"""By `Request.task`."""
