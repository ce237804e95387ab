"""The processes that write files: each carries out an order (`harness.trial.writing`), and none outlives the call."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from harness.errors import HarnessError, Interrupted, StorageError, UsageError
from harness.files import read_end
from harness.protocol.preparing import ANSWER, FAULT, PrepareOrder, ShardPlan
from harness.record.tfrecords import Features, WrittenShard, side_file
from harness.run.interrupts import Interrupts
from harness.run.preparing.asked import Asked, Listener
from harness.run.preparing.plan import PreparePlan, kept_at
from harness.visible import plural

LOOK_S = 0.1
LOG = "log.txt"


class Writers:
    """Processes that carry out orders for one call, none of which outlives it."""

    def __init__(self, asked: Asked, scratch: Path, interrupts: Interrupts) -> None:
        self._asked, self._scratch, self._interrupts = asked, scratch, interrupts

    def answer(self, do: Literal["describe", "compare"]) -> bytes:
        """What one process answers."""
        self._run([self._order(do)], lambda: None)
        return (self._scratch / ANSWER).read_bytes()

    def write(self, plan: PreparePlan, missing: Sequence[ShardPlan], listener: Listener) -> None:
        """Write the missing files, each process some that follow one another."""
        count = min(self._asked.processes, len(missing))
        bounds = [len(missing) * number // count for number in range(count + 1)]
        groups = [tuple(missing[bounds[k] : bounds[k + 1]]) for k in range(count)]
        features = Features(**plan.model_dump(include=set(Features.model_fields)))
        order = self._order("write").model_copy(update={"features": features, "by": self._asked.by})
        sets = [(group,) for group in groups] if self._asked.by == "local" else [tuple(groups)]
        waiting = [one.file for one in missing]

        def look() -> None:
            for file in list(waiting):
                if (shard := kept_at(side_file(self._asked.target, file), WrittenShard)) is not None:
                    waiting.remove(file)
                    listener.file(shard)

        try:
            self._run([order.model_copy(update={"groups": groups}) for groups in sets], look)
        except HarnessError as error:
            whole = plan.count - len(waiting)
            text = (
                f"{error}; {whole} of {plural(plan.count, 'file')} are whole, and the same command goes on from there"
            )
            raise type(error)(text) from None

    def _order(self, do: Literal["describe", "write", "compare"]) -> PrepareOrder:
        return PrepareOrder(
            do=do,
            source=self._asked.source,
            data_dir=str(self._asked.data_dir),
            scratch=str(self._scratch),
            parent=os.getpid(),
            target=str(self._asked.target),
        )

    def _run(self, orders: Sequence[PrepareOrder], look: Callable[[], None]) -> None:
        """A process for each order, until all have ended well. Of one that does not, the fault is raised."""
        with (self._scratch / LOG).open("wb") as log, contextlib.ExitStack() as stack:
            processes = [self._start(order, log.fileno()) for order in orders]
            for process in processes:
                stack.callback(_end, process)
            while any(process.poll() is None for process in processes):
                look()
                if any(process.poll() for process in processes):
                    break
                if self._interrupts.asked:
                    raise Interrupted("interrupted")
                time.sleep(LOOK_S)
            look()
            if any(process.poll() for process in processes):
                raise self._fault(next(process.returncode for process in processes if process.poll()))

    def _start(self, order: PrepareOrder, log: int) -> "subprocess.Popen[bytes]":
        variables = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1", **os.environ}
        command = [sys.executable, "-m", "harness.trial.writing"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=variables, start_new_session=True
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(order.model_dump_json().encode())
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        return process

    def _fault(self, status: int) -> HarnessError:
        """What a process that ended badly has left: its line, or the last one of what it printed."""
        with contextlib.suppress(OSError, ValueError):
            code, _, text = (self._scratch / FAULT).read_text(encoding="utf-8").partition(" ")
            kinds = {kind.exit_code: kind for kind in (UsageError, StorageError)}
            return kinds[int(code)](text)
        lines = [line for line in read_end(self._scratch / LOG).splitlines() if line.strip()]
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        return HarnessError(f"prepare: a process {how}: {lines[-1] if lines else 'it said nothing'}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The process and those that it has started, which are of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    process.wait()
