"""A log folder of TensorBoard: a run a trial with its windows as scalars, and the HParams plugin over all of them.

Written with the protocol buffers of the `tensorboard` package, which TensorFlow no longer brings along; TensorFlow
itself is not imported. Trials of one cell have the same hyperparameters, so that the plugin shows their mean.
"""

import datetime
import importlib.util
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, UsageError
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.report.export.base import Exporter, write_folder
from harness.report.values import value_at
from harness.report.words.names import slug, told_apart
from harness.spec.quantity import EXAMPLES
from harness.spec.work import Cell

METRICS = {
    "throughput_examples_per_s": "examples/s of the trial",
    "step_time_s": "mean seconds of a step",
    "cpu_seconds_per_example": "processor seconds of an example",
    "peak_memory_bytes": "largest resident set",
    "final_loss": "the loss at the end of the last window",
}
"""One scalar a trial each, at step 0, and a metric of HParams; of other work than examples in its own quantity."""
_PLACES = {EXAMPLES.throughput_key: "throughput", EXAMPLES.cpu_key: "cpu_seconds_each"}
"""Where a record has them whatever its quantity."""
WINDOW_SCALARS = ("step_time_s", "throughput_examples_per_s", "cpu_seconds_per_example")
"""One scalar a window each, under `windows/`; the step is the window's index, warm-up included."""


@dataclass(frozen=True)
class _TensorBoard:
    name: str = "tensorboard"
    summary: str = "a log folder: windows as scalars, cells as HParams (needs tensorboard)"
    suffix: str = ".tensorboard"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        if importlib.util.find_spec("tensorboard") is None:
            raise HarnessError("format tensorboard needs the tensorboard package: pip install tensorboard")
        if target is None:
            raise UsageError("--output: tensorboard is a folder and cannot be printed; name one with --output DIR")
        files = {f"{_file_name(run.manifest.created_utc)}": _encoded([_experiment(run)])}
        cells = {trial.cell_id: trial.cell for trial in run.trials}
        names = dict(
            zip(cells, told_apart([slug(cell.full_name) for cell in cells.values()], [*cells.values()]), strict=True)
        )
        for trial in run.trials:
            files[f"{names[trial.cell_id]}/{_folder(trial)}/{_file_name(trial.started_utc)}"] = _encoded(_events(trial))
        write_folder(target, files)
        return None


def hparams_of(cell: Cell) -> dict[str, Any]:
    """The cell's keys as hyperparameters: every one, so that two cells never look alike."""
    return {key: value for key, value in cell.model_dump(mode="json").items() if value is not None}


def _experiment(run: Run) -> Any:
    """What the HParams plugin reads first: which hyperparameters and metrics there are."""
    from tensorboard.compat.proto import event_pb2
    from tensorboard.plugins.hparams import summary_v2 as hparams

    cells = [hparams_of(cell) for cell in {trial.cell_id: trial.cell for trial in run.trials}.values()]
    keys = [hparams.HParam(key) for key in dict.fromkeys(key for cell in cells for key in cell)]
    metrics = [hparams.Metric(name, description=words) for name, words in _metrics(run).items()]
    started = _seconds(run.manifest.created_utc)
    summary = hparams.hparams_config_pb(keys, metrics, time_created_secs=started)
    return event_pb2.Event(wall_time=started, summary=summary)


def _metrics(run: Run) -> dict[str, str]:
    """The metrics of all trials, in the quantities that their cells have."""
    quantities = list(dict.fromkeys(trial.cell.work.quantity for trial in run.trials)) or [EXAMPLES]
    return {of.worded(name): of.worded(words) for name, words in METRICS.items() for of in quantities}


def _events(trial: TrialRecord) -> Iterator[Any]:
    from tensorboard.compat.proto import event_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from tensorboard.plugins.hparams import summary_v2 as hparams

    started = _seconds(trial.started_utc)
    begin = hparams.hparams_pb(hparams_of(trial.cell), start_time_secs=started)
    yield event_pb2.Event(wall_time=started, summary=begin)
    ended = started
    for index, (ended, values) in enumerate(_windows(trial, started)):
        yield _scalars(ended, index, {f"windows/{name}": value for name, value in values.items()})
    worded = trial.cell.work.quantity.worded
    known = {worded(name): value for name in METRICS if (value := value_at(trial, _PLACES.get(name, name))) is not None}
    if known:
        yield _scalars(ended, 0, known)
    ends = {"ok": api_pb2.STATUS_SUCCESS, "unproved": api_pb2.STATUS_UNKNOWN}
    status = ends.get(trial.status, api_pb2.STATUS_FAILURE)
    info = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=ended)
    end = event_pb2.Event(wall_time=ended)
    end.summary.value.add(
        tag=metadata.SESSION_END_INFO_TAG,
        metadata=metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=info)),
        tensor=metadata.NULL_TENSOR,
    )
    yield end


def _windows(trial: TrialRecord, started: float) -> Iterator[tuple[float, dict[str, float]]]:
    """Of each window: about when it ended, and its scalars."""
    if trial.windows is None:
        return
    windows, batch = trial.windows, trial.cell.work.amount
    ends = accumulate(windows.seconds, initial=started)
    next(ends)
    for end, seconds, cpu in zip(ends, windows.seconds, windows.cpu_seconds, strict=True):
        step = seconds / windows.steps_per_window
        amount = batch * windows.steps_per_window
        yield (
            end,
            dict(
                zip(
                    map(trial.cell.work.quantity.worded, WINDOW_SCALARS),
                    (step, batch / step, cpu / amount),
                    strict=True,
                )
            ),
        )


def _scalars(wall_time: float, step: int, values: dict[str, float]) -> Any:
    from tensorboard.compat.proto import event_pb2, tensor_pb2, types_pb2
    from tensorboard.plugins.scalar import metadata

    event = event_pb2.Event(wall_time=wall_time, step=step)
    for tag, value in values.items():
        tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, float_val=[value])
        event.summary.value.add(tag=tag, metadata=metadata.create_summary_metadata(None, None), tensor=tensor)
    return event


def _encoded(events: Sequence[Any] | Iterator[Any]) -> bytes:
    """An event file: a header, then the events, each with its checksums."""
    from tensorboard.compat.proto import event_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    buffer = io.BytesIO()
    writer = RecordWriter(buffer)
    events = list(events)
    writer.write(event_pb2.Event(wall_time=events[0].wall_time, file_version="brain.Event:2").SerializeToString())
    for event in events:
        writer.write(event.SerializeToString())
    return buffer.getvalue()


def _folder(trial: TrialRecord) -> str:
    """`block-0`: what TensorBoard calls the run, behind its cell's name (`mnist_cnn-on-…-mirrored-x2-b64/`)."""
    parts = [f"block-{trial.block}", *([trial.side] if trial.side else [])]
    if trial.attempt > 1:
        parts.append(f"attempt-{trial.attempt}")
    return slug("-".join(parts))


def _file_name(started_utc: str) -> str:
    """TensorBoard reads files with `tfevents` in their name; the usual host name is left out."""
    return f"events.out.tfevents.{int(_seconds(started_utc))}.harness.v2"


def _seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


EXPORTER: Exporter = _TensorBoard()
