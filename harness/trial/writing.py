"""A process of `prepare`: writes TFRecord files itself, or has Dask or Apache Beam start others that do."""

import contextlib
import multiprocessing
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.errors import HarnessError
from harness.protocol.preparing import ANSWER, PrepareOrder
from harness.spec.values import RunBy
from harness.trial import forking
from harness.trial.orders import answer, carry_out, carry_out_for_another, keep_fault
from harness.trial.parent import die_with_parent

WAITS_FOR_WORKER = "run_worker"
"""The name of Beam's thread that waits for the end of a worker."""
LONGEST, OF_A_SOCKET = 107, len("/pymp-12345678/listener-12345678")
"""Bytes that Linux has for a socket's path, and what `multiprocessing` appends to a folder's to name its own."""


def _by_dask(orders: Sequence[str], scratch: str) -> None:
    """Each in a process of Dask's scheduler of this machine, which by default gives several tasks to one."""
    import dask

    tasks = [dask.delayed(carry_out_for_another)(order, os.getpid()) for order in orders]
    with _started_by(scratch) as context, dask.config.set({"multiprocessing.context": context}):
        dask.compute(*tasks, scheduler="processes", num_workers=len(tasks), chunksize=1)


@contextlib.contextmanager
def _started_by(scratch: str) -> Iterator[str]:
    """How `multiprocessing` is to start Dask's processes: as forks of one that has imported TensorFlow, whose socket is
    in the folder `scratch`. To import it in each of them takes many times what a few files do; so it is where the
    socket's path would be too long, and on systems whose libraries do not stand a fork."""
    if sys.platform != "linux" or len(os.fsencode(scratch)) + OF_A_SOCKET > LONGEST:
        yield "spawn"
        return
    before, tempfile.tempdir = tempfile.tempdir, scratch
    os.environ[forking.FOR] = str(os.getpid())
    multiprocessing.set_forkserver_preload([forking.__name__, "dask.multiprocessing"])
    try:
        yield "forkserver"
    finally:
        tempfile.tempdir = before
        del os.environ[forking.FOR]  # lest what the user's source starts takes itself for such a one


def _by_beam(orders: Sequence[str], scratch: str) -> None:
    """Each in a worker of Beam's runner of this machine, which is written in Python: another one is downloaded.

    Beam calls a shell with its workers' command line, and does not quote the interpreter. Where a worker ends badly it
    raises in a thread, and waits for ever: so this process ends.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    def end(raised: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(raised)
        if raised.thread is not None and raised.thread.name == WAITS_FOR_WORKER:
            with contextlib.suppress(HarnessError), keep_fault(Path(scratch)):
                raise HarnessError(f"prepare: Apache Beam: {raised.exc_value}")
            os._exit(1)

    threading.excepthook = end
    command = f"{shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main"
    runner = FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(command_string=command))
    options = PipelineOptions([f"--direct_num_workers={len(orders)}"])
    with beam.Pipeline(runner=runner, options=options) as pipeline:
        _ = pipeline | beam.Create(list(orders)) | beam.Reshuffle() | beam.Map(carry_out_for_another, os.getpid())


DRIVERS: dict[RunBy, Callable[[Sequence[str], str], None]] = {"dask": _by_dask, "beam": _by_beam}
"""Run orders of one group each, which have one folder for what is said of them, side by side, until all have ended;
they raise what one of them did."""


def main() -> None:
    """Carry out the orders on standard input, a line each, until it ends; the exit status is 1 where one raised a
    HarnessError."""
    die_with_parent(int(sys.argv[1]))
    try:
        for text in sys.stdin:
            order = PrepareOrder.model_validate_json(text)
            if order.by in DRIVERS and order.do == "write":
                alone = [order.model_copy(update={"groups": (group,)}) for group in order.groups]
                DRIVERS[order.by]([one.model_dump_json() for one in alone], order.scratch)
            else:
                carry_out(text)
            if not (Path(order.scratch) / ANSWER.format(order.number)).exists():
                answer(order)
    except HarnessError:
        sys.exit(1)


if __name__ == "__main__":
    main()
