"""A profile of a few steps, taken when every window has been timed: it disturbs none of them.

TensorFlow's own profiler writes it as TensorBoard's profile plugin reads it: `plugins/profile/<time>/<name>.xplane.pb`
below the folder that is to be TensorBoard's `--logdir`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.engines.tensorflow.trace_parts import GPU_PLANE, parts_of
from harness.protocol.messages import Request, TraceRequest
from harness.record.trial import TraceRecord

STEPS = 5
"""Steps of a trace; fewer where a window has fewer."""
MOST_BYTES = 64 * 2**20
"""A larger trace is taken back: TensorBoard would not open it, and a run must stay small enough to keep."""
MOST_READ = 4 * MOST_BYTES
"""One that is larger still is not read either: the other processes would wait for it."""
COPY_TO_HOST = "MemcpyD2H"
"""What TensorFlow's profiler calls a copy from a GPU to the host (`cupti_tracer.cc`)."""
FILE_NAME = "trial.xplane.pb"
"""Instead of the machine's name, which no record holds."""


class StepTracer:
    """Steps that the clock adds after the last window, profiled by the process that leads the trial."""

    def __init__(self, request: TraceRequest, leads: bool, optimizer: str = "") -> None:
        self._request = request
        self._leads = leads
        self._optimizer = optimizer
        self._running = False
        self._steps = 0
        self._reason: str | None = None
        self._copies: int | None = None
        self._parts: dict[str, float] | None = None

    @property
    def record(self) -> TraceRecord | None:
        """What became of it; None before it was tried, and in the processes that do not lead."""
        if not self._leads or not self._steps:
            return None
        files = list(self._folder.rglob("*.xplane.pb")) if self._reason is None else []
        size = sum(file.stat().st_size for file in files)
        read = {"steps": self._steps, "bytes": size, "copies_to_host": self._copies, "parts": self._parts}
        kept = {"path": self._request.path} if files else {"reason": self._reason or "the profiler wrote nothing"}
        return TraceRecord.model_validate({**kept, **read})

    @property
    def _folder(self) -> Path:
        return Path(self._request.run, self._request.path)

    def begin(self, window_steps: int) -> int:
        """Start the profiler; returns how many steps to run."""
        import tensorflow as tf

        self._steps = min(STEPS, window_steps)
        if self._leads:
            options = tf.profiler.experimental.ProfilerOptions(
                host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
            )
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                tf.profiler.experimental.start(str(self._folder), options)
                self._running = True
            except _faults() as error:
                self._reason = _said(error)
        return self._steps

    def end(self) -> None:
        """Stop the profiler and read what it wrote, which is kept unless it is too large."""
        import tensorflow as tf

        if not self._running:
            return
        self._running = False
        try:
            tf.profiler.experimental.stop()
            files = list(self._folder.rglob("*.xplane.pb"))
            size = sum(file.stat().st_size for file in files)
            if size > MOST_BYTES:
                self._reason = f"the trace of {self._steps} steps has {size:,} bytes, more than {MOST_BYTES:,}"
                self._read_and_remove(files if size <= MOST_READ else [])
                return
            for file in files:
                file.write_bytes(self._read(file.read_bytes()))
                file.rename(file.with_name(FILE_NAME))
        except _faults() as error:
            self._reason = _said(error)

    def _read_and_remove(self, files: Sequence[Path]) -> None:
        """What is in files that are too large to keep, as far as it can be read."""
        try:
            for file in files:
                self._read(file.read_bytes())
        except Exception as error:  # noqa: BLE001  the trial is not to end for what would not be kept
            self._reason = f"{self._reason}; it could not be read: {_said(error)}"
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, trace: bytes) -> bytes:
        """The trace without the machine's name, which no record holds; what else is in it is kept for the record.

        As it is where its format cannot be imported.
        """
        try:
            from tensorflow.tsl.profiler.protobuf import xplane_pb2
        except ImportError:
            return trace
        space = xplane_pb2.XSpace.FromString(trace)
        space.hostnames[:] = ["trial"]
        self._copies = _copies_to_host(space.planes)
        self._parts = parts_of(space.planes, self._steps, self._optimizer) if self._optimizer else None
        return bytes(space.SerializeToString())


def tracer_of(request: Request, leads: bool, optimizer: str = "") -> StepTracer | None:
    """The tracer of a trial that is to be traced; None for the others. Ops of a Keras step's update are below its
    `optimizer`'s name; without one a trace is not read for parts."""
    return None if request.trace is None else StepTracer(request.trace, leads, optimizer)


def _copies_to_host(planes: Sequence[Any]) -> int | None:
    """Copies from a GPU to the host in a profile; None where it has no GPU."""
    of_gpus = [plane for plane in planes if plane.name.startswith(GPU_PLANE)]
    if not of_gpus:
        return None
    events = ((plane, event) for plane in of_gpus for line in plane.lines for event in line.events)
    return sum(bool(plane.event_metadata[event.metadata_id].name == COPY_TO_HOST) for plane, event in events)


def _faults() -> tuple[type[Exception], ...]:
    """What the profiler and the disk raise; a trial is not lost to them."""
    import tensorflow as tf

    return (tf.errors.OpError, OSError, RuntimeError)


def _said(error: Any) -> str:
    text = str(getattr(error, "message", "") or getattr(error, "strerror", "") or error)
    return f"the profiler cannot run: {type(error).__name__}: {' '.join(text.split())[:200]}"
