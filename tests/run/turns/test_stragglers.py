"""A worker that really is slower is named, though workers in lock-step have windows alike."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.analysis.workers import WorkerTimes, step_times
from harness.protocol.messages import Request
from harness.record.trial import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.process.zygote import Zygote
from harness.run.turns.live import LiveTrial, Slot
from harness.spec.collective import CollectiveCell
from harness.spec.work import Cell
from tests.record.examples import cell
from tests.run.fakes import FakeZygote, Play, all_play

CELL = cell(
    strategy="multi_worker_mirrored",
    workers=2,
    replicas=1,
    data="synthetic",
    model="mnist_cnn",
    optimizer="sgd",
    batch_size=128,
    global_batch_size=256,
)
COLLECTIVE = CollectiveCell(
    collective="all_reduce", size=2**16, strategy="multi_worker_mirrored", workers=2, replicas=1, device="virtual-cpu"
)
RUNS_S, STANDS_S = 0.005, 0.025
"""Short against a pass of that batch, so that every pass is interrupted about as often."""


@contextlib.contextmanager
def a_sixth_as_fast(pid: int) -> Iterator[None]:
    """While entered, the process is stopped for most of the time: other work on the machine cannot hide that."""
    over = threading.Event()

    def stop_and_go() -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            while not over.is_set():
                os.kill(pid, signal.SIGSTOP)
                over.wait(STANDS_S)
                os.kill(pid, signal.SIGCONT)
                over.wait(RUNS_S)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measured(zygote: Zygote, slow: int | None) -> TrialRecord:
    """A trial, in which one worker is slow from the first window on."""
    request = Request(cell=CELL, seed=1, data_dir="", window_s=0.05, intra_op_threads=1, inter_op_threads=4)
    trial = LiveTrial(CELL, Slot("r", 0, "b0.0", 0, 1, "none"), zygote, request, 60.0, Interrupts())
    trial.start()
    trial.set_up()
    trial.measure_from(0)
    zygote.drain()
    pid = None if slow is None else trial.child.merged.processes[slow].child.pid
    with contextlib.nullcontext() if pid is None else a_sixth_as_fast(pid):
        for number in range(4):
            trial.take_turn(number)
        trial.finish()
    return trial.record()


def workers(zygote: Zygote, slow: int | None) -> tuple[WorkerTimes, ...]:
    """Each worker's times in a trial, whose nine rounds are judged."""
    record = measured(zygote, slow)
    assert (record.status, record.reason) == ("ok", None)
    return step_times([record])[CELL.cell_id].workers


@pytest.mark.slow
def test_the_worker_that_the_others_wait_for_is_named(zygote: Zygote) -> None:
    tried = (workers(zygote, slow=1) for _ in range(3))  # nine rounds on a busy machine do not tell it every time
    found = next((found for found in tried if any(worker.slower for worker in found)), ())
    assert [worker.slower for worker in found] == [False, True]
    assert found[1].times.p50_s < 1.5 * found[0].times.p50_s  # which windows alone would not have shown


def of_block(block: int, zygote: FakeZygote, of: Cell = CELL, instrument: str = "") -> LiveTrial:
    """A trial of a block that has not begun."""
    request = Request(cell=of, seed=1, data_dir="", window_s=0.05, intra_op_threads=1, inter_op_threads=4)
    request = request.model_copy(update={"instrument": instrument})
    slot = Slot("r", block, f"{block}.0", 0, 1, "none")
    return LiveTrial(of, slot, zygote, request, 60.0, Interrupts())  # type: ignore[arg-type]


def test_only_the_first_blocks_pay_for_what_each_worker_computes_alone(tmp_path: Path) -> None:
    zygote = FakeZygote(tmp_path, all_play(Play()))
    for block in range(5):
        of_block(block, zygote, cell()).start()
    assert [one.times_alone for one in zygote.spawned] == [True, True, True, False, False]


def test_of_several_workers_those_alone_that_time_it_have_nobody_beside_them_at_their_end(tmp_path: Path) -> None:
    zygote = FakeZygote(tmp_path, all_play(Play()))
    assert [of_block(block, zygote).timed_at_its_end for block in range(5)] == [True, True, True, False, False]
    assert not of_block(0, zygote, cell()).timed_at_its_end
    assert not of_block(0, zygote, instrument="no_input").timed_at_its_end
    assert not of_block(0, zygote, COLLECTIVE).timed_at_its_end
