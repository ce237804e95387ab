"""The processes that write files: each carries out an order (`harness.trial.writing`), and none outlives the call."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import psutil

from harness.errors import HarnessError, StorageError, UsageError
from harness.files import cut_log, new_log, read_end
from harness.protocol.preparing import ANSWER, FAULT, SIGN, PrepareOrder, ShardPlan
from harness.protocol.shards import whole_at
from harness.record.tfrecords import Features, WrittenShard, side_file
from harness.run.data import PREPARE_LIMIT_S
from harness.run.interrupts import Interrupts
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.plan import SHARDS, PreparePlan
from harness.run.process.startup import TOKEN_VARIABLE
from harness.trial.sign_of_life import EVERY_S
from harness.visible import plural

LOOK_S = 0.1
LOG = "log.txt"
AND_ON = ", and the same command goes on from there"


class _Watch:
    """What is heard of the processes that carry out an order."""

    def __init__(self, scratch: Path, number: int) -> None:
        self.number, self.done = number, 0
        self._scratch, self._since = scratch, time.monotonic()
        self.signed: dict[str, int] = {}
        """When each has last told how far it is, as its file tells. The machine's clock may have been set back since.
        """

    def news(self) -> bool:
        """Whether one has got further since this was asked last."""
        before = self.signed.copy()
        for sign in self._scratch.glob(SIGN.format(self.number, "*")):
            if (at := sign.stat().st_mtime_ns) != before.get(sign.name):
                self.signed[sign.name] = at
                with contextlib.suppress(ValueError):  # half-written
                    self.done = int(sign.read_text(encoding="utf-8"))
        if self.signed != before:
            self._since = time.monotonic()
        return self.signed != before

    def silent_s(self) -> float:
        """Seconds without news."""
        return time.monotonic() - self._since


class Writers:
    """Processes that carry out one order after the other, until the call is over. The first also answers."""

    def __init__(self, asked: AskedFiles, scratch: Path, interrupts: Interrupts) -> None:
        self._asked, self._scratch, self._interrupts = asked, scratch, interrupts
        self._processes: list[subprocess.Popen[bytes]] = []
        self._numbers = itertools.count()
        self._log, self._left_out = new_log(scratch / LOG), 0

    def close(self) -> None:
        """End them, and those that they have started, which are of their sessions."""
        for process in self._processes:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
        self._log.close()

    def warm_up(self) -> None:
        """Have the others import TensorFlow while the first one describes the source, where they are not Dask's."""
        if self._asked.by == "local":
            for place in range(1, min(self._asked.processes, self._asked.shards or SHARDS)):
                self._send(place, self._order("import"))

    def cpu_s(self) -> float:
        """Processor seconds of all that are alive, and of what they have started."""
        used = 0.0
        for process in self._processes:
            with contextlib.suppress(psutil.Error):
                first = psutil.Process(process.pid)
                used += sum(first.cpu_times()[:4])  # with those of its children that have ended
                used += sum(sum(child.cpu_times()[:4]) for child in first.children(recursive=True))
        return used

    def answer(self, do: Literal["describe", "compare"], read: Callable[[int], None] = lambda _: None) -> bytes:
        """What the first process answers; `read` is told now and then how many examples it has read."""
        number = self._send(0, self._order(do))
        self._wait([number], lambda: None, read)
        return self._path_of(number).read_bytes()

    def write(
        self, plan: PreparePlan, missing: Sequence[ShardPlan], listener: FilesListener, keep_cost: Callable[[], None]
    ) -> None:
        """Write the missing files, each process some that follow one another; what it cost is kept after each.

        Raises what a process of it ended with, and how to go on.
        """
        count = min(self._asked.processes, len(missing))
        bounds = [len(missing) * number // count for number in range(count + 1)]
        groups = [tuple(missing[bounds[k] : bounds[k + 1]]) for k in range(count)]
        features = Features(**plan.model_dump(include=set(Features.model_fields)))
        sets = [(group,) for group in groups] if self._asked.by == "local" else [tuple(groups)]
        waiting = [deque(one.file for one in group) for group in groups]

        def look() -> None:
            for files in waiting:  # each group is written in its order: only its next file is looked for
                while files and (shard := whole_at(side_file(self._asked.target, files[0]), WrittenShard)) is not None:
                    files.popleft()
                    listener.file(shard)
                    keep_cost()

        try:
            of_all = {"features": features, "by": self._asked.by}
            orders = [self._order("write").model_copy(update={**of_all, "groups": groups}) for groups in sets]
            self._wait([self._send(place, order) for place, order in enumerate(orders)], look)
        except HarnessError as error:
            done = f"{plan.count - sum(map(len, waiting))} of {plural(plan.count, 'file')} are whole"
            then = f" by {self._asked.by}, and the same command begins anew" if self._asked.timed else AND_ON
            raise type(error)(f"{error}; {done}{then}") from None

    def _order(self, do: Literal["import", "describe", "write", "compare"]) -> PrepareOrder:
        return PrepareOrder(
            number=next(self._numbers),
            do=do,
            source=self._asked.source,
            data_dir=str(self._asked.data_dir),
            scratch=str(self._scratch),
            target=str(self._asked.target),
        )

    def _send(self, place: int, order: PrepareOrder) -> int:
        """Give an order to the process of that place, which is started where there is none; the order's number."""
        while len(self._processes) <= place:
            self._processes.append(self._start())
        stdin = self._processes[place].stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # one that is gone is seen by who waits
            stdin.write(order.model_dump_json().encode() + b"\n")
            stdin.flush()
        return order.number

    def _start(self) -> "subprocess.Popen[bytes]":
        log = self._log.fileno()
        variables = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
        variables.pop(TOKEN_VARIABLE, None)  # the user's own function has no use for it
        command = [sys.executable, "-m", "harness.trial.writing", str(os.getpid())]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=variables, start_new_session=True
        )

    def _path_of(self, number: int) -> Path:
        return self._scratch / ANSWER.format(number)

    def _wait(
        self, numbers: Sequence[int], look: Callable[[], None], read: Callable[[int], None] = lambda _: None
    ) -> None:
        """Until the orders of these numbers are carried out; the fault of a process that has ended is raised, and that
        one gets no further."""
        watches = [_Watch(self._scratch, number) for number in numbers]
        while waited_for := [one for one in watches if not self._path_of(one.number).exists()]:
            look()
            for one in waited_for:
                if one.news():
                    read(one.done)
                    continue
                limit = self._asked.timeout_s if one.signed else max(self._asked.timeout_s, PREPARE_LIMIT_S)
                if one.silent_s() > limit + EVERY_S + LOOK_S:  # signs are so far apart, and seen so late
                    raise UsageError(
                        f"source: '{self._asked.source}' has given no further example within {limit:g} s; mend it, or "
                        "allow more seconds by --timeout"
                    )
            self._interrupts.check()
            self._left_out = cut_log(self._log.fileno(), self._left_out)
            if ended := [process for process in self._processes if process.poll() is not None]:
                raise self._fault(ended[0].returncode)
            time.sleep(LOOK_S)
        look()

    def _fault(self, status: int) -> HarnessError:
        """What a process that ended badly has left: its line, or the last one of what it printed."""
        with contextlib.suppress(OSError, ValueError):
            code, _, text = (self._scratch / FAULT).read_text(encoding="utf-8").partition(" ")
            kinds = {kind.exit_code: kind for kind in (UsageError, StorageError)}
            return kinds[int(code)](text)
        lines = [line for line in read_end(self._scratch / LOG).splitlines() if line.strip()]
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        return HarnessError(f"prepare: a process {how}: {lines[-1] if lines else 'it said nothing'}")
