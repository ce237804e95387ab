"""A zygote and trials without TensorFlow: threads that speak the channel protocol over socket pairs.

What a trial does is a `Play`: how its windows last, and where and how it goes wrong. The zygote keeps a
`diary` of what happened in which order, by cell id.
"""

import contextlib
import itertools
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harness.protocol.channel import Channel
from harness.protocol.messages import Outcome, Report, Request, Turn, WindowTimes
from harness.record import Checks, RunManifest, RunStore
from harness.record.cluster import ClusterRecord
from harness.record.trial import PhaseName, ZygoteRecord
from harness.run.kinds.sweep import SweepRun, first_plan
from harness.run.progress import Progress, Quiet
from harness.run.runner import carry_out
from harness.spec import Cell, Sweep
from harness.spec.axes import ENGINE
from harness.spec.pipeline import PipelineCell
from tests.record.examples import manifest

PROVED = Checks(
    reduction=True,
    update=True,
    replicas_agree=True,
    updates_applied=9,
    updates_scheduled=9,
    loss_finite=True,
    sight={"doubled": 500.0},
    late=True,
    loss=True,
)
WELL = Outcome(status="ok", checks=PROVED, final_loss=0.5)
FEEDS_WELL = Outcome(status="ok", checks=Checks(gate="instrument", batches=True))
"""What becomes of `WELL` where the work is an input pipeline that `explain` measures by itself."""
SET_UP: tuple[PhaseName, ...] = ("build", "check", "first_step", "check", "warmup")


@dataclass
class Play:
    """One trial. `at` is a phase, or the round of a window, in which `happens` is called."""

    at: str | int | None = None
    happens: Callable[["Actor"], None] | None = None
    seconds: Callable[[int], float] = lambda number: 0.1 + 1e-6 * (number % 2)
    """What a window of `steps` steps takes, by its number; one of more steps takes longer in proportion."""
    outcome: Outcome = WELL
    steps: int = 4
    """Steps a window that its pilot chooses."""

    def ready(self) -> Report:
        """What its pilot says: it has seen its first window, and wants windows as long."""
        first = self.seconds(0)
        return Report(
            ready=True, sync_seconds=0.001, steps=self.steps, step_seconds=first / self.steps, window_seconds=first
        )


Plays = Callable[[Request], Play]
"""What each trial does."""


def only(sick: Cell, play: Play) -> Plays:
    """`play` for the trials of one cell, and a good play for the rest."""
    return lambda request: play if request.cell == sick and request.task == "trial" else Play()


def all_play(play: Play) -> Plays:
    """`play` for every trial."""
    return lambda request: play if request.task == "trial" else Play()


class Gone(Exception):
    """The trial's process has ended."""


class Actor:
    """A trial's end of the channel, run by a thread."""

    def __init__(self, zygote: "FakeZygote", request: Request, channel: Channel, log: Path, play: Play) -> None:
        self.zygote, self.request, self.channel, self.play = zygote, request, channel, play
        self.killed = threading.Event()
        self.log = log
        self.attempt = 1
        self.out_of_memory = False

    @property
    def cell_id(self) -> str:
        return self.request.cell.cell_id

    def end(self, status: int) -> None:
        """End the process with `status`, without a word."""
        self.zygote.statuses[self.channel] = status
        raise Gone

    def starve(self) -> None:
        """Be ended by the kernel of its host, as memory ran out there."""
        self.out_of_memory = True
        self.end(-signal.SIGKILL)

    def hang(self) -> None:
        """Do nothing until killed."""
        self.killed.wait(20)
        raise Gone

    def say(self, status: Any, reason: str | None = None) -> None:
        """Hand over an outcome and end."""
        self.channel.send(Report(outcome=Outcome(status=status, reason=reason)))
        self.end(0)

    def run(self) -> None:
        try:
            self.channel.send(Report(phase="start"))
            if self.request.task == "trial":
                self._act()
            elif self.play.happens is not None:
                self.play.happens(self)
            feeds = self.play.outcome is WELL and isinstance(self.request.cell, PipelineCell)
            self.channel.send(Report(outcome=FEEDS_WELL if feeds else self.play.outcome))
            self.zygote.statuses[self.channel] = 0
        except (Gone, OSError, EOFError):
            pass
        finally:
            self.channel.close()

    def _act(self) -> None:
        for phase in SET_UP:
            self._reach(phase)
            self.channel.send(Report(phase=phase))
        self.zygote.note(self, "ready")
        self.channel.send(Report(set_up=True))
        count = 0
        while (turn := Turn.model_validate_json(self.channel.receive_line() or "")).do != "finish":
            if turn.do == "pilot":
                self._reach("pilot")
                self.zygote.note(self, "pilot")
                self.channel.send(self.play.ready())
                continue
            self.zygote.note(self, f"window {turn.round}")
            self._reach(turn.round)
            self.zygote.note(self, f"done {turn.round}")
            self.channel.send(Report(window=self._window(turn, count)))
            count += 1
        self.channel.send(Report(phase="check"))
        self._reach("finish")

    def _reach(self, at: str | int) -> None:
        if self.play.at == at and self.play.happens is not None:
            self.play.happens(self)

    def _window(self, turn: Turn, count: int) -> WindowTimes:
        steps = turn.steps or self.play.steps
        share = steps / self.play.steps
        return WindowTimes(
            round=turn.round,
            steps=steps,
            seconds=self.play.seconds(count) * share,
            cpu_seconds=0.05 * share,
            waiting_seconds=0.25,
            waiting_cpu_seconds=0.0,
        )


class FakeChild:
    """An actor as its parent handles it; see `harness.protocol.hosting.Child`."""

    who = ""
    gone = "the preloaded parent process ended"
    host: str | None = None
    pids: tuple[int, ...] = ()

    def __init__(self, zygote: "FakeZygote", actor: Actor, channel: Channel, thread: threading.Thread) -> None:
        self.channel = channel
        self.status: int | None = None
        self._zygote, self._actor, self._thread = zygote, actor, thread

    @property
    def out_of_memory(self) -> bool:
        return self._actor.out_of_memory

    @property
    def lost(self) -> bool:
        return not self._zygote.alive

    def stderr_tail(self, characters: int = 4000) -> str:
        return self._actor.log.read_text()[-characters:]

    def awaited(self) -> str:
        return ""

    def cluster(self) -> ClusterRecord | None:
        return None

    def signal(self, number: int) -> None:
        if number == signal.SIGUSR1:
            self._actor.log.write_text("Thread 0x01 (most recent call first):\n  in hang")
        elif number == signal.SIGKILL:
            self._zygote.statuses.setdefault(self._actor.channel, -signal.SIGKILL)
            self._actor.killed.set()

    def kill(self) -> None:
        self._zygote.killing()
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, limit_s: float = 5.0) -> int | None:
        deadline = time.monotonic() + limit_s
        while self._actor.channel not in self._zygote.statuses and self._thread.is_alive():
            if time.monotonic() >= deadline:
                break
            self._thread.join(0.01)
        self.status = self._zygote.statuses.get(self._actor.channel)
        return self.status

    def release(self) -> None:
        self.channel.close()


NUMBERS = itertools.count(1)


class FakeZygote:
    """Stands in for `harness.run.process.zygote.Zygote`; `plays` says what each trial does.

    With a `name`, what its trials do is in the diary under that instead of their cell.
    """

    versions: ClassVar[dict[str, str]] = {"python": "3.11.9", "tensorflow": "2.21.0", "keras": "3.11.0"}

    def __init__(
        self, folder: Path, plays: Plays, name: str | None = None, diary: list[tuple[str, str]] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.scratch = str(folder)
        self.start_record: ZygoteRecord | None = ZygoteRecord(number=next(NUMBERS), padding_bytes=0, hash_seed=0)
        self.due = False
        self.name = name
        self.alive = True
        self.plain = True
        self.machine = ""
        self.host: str | None = None
        self.hosts: dict[str, Any] = {}
        self.closing = contextlib.ExitStack()
        self.diary = [] if diary is None else diary
        self.spawned: list[Request] = []
        self.statuses: dict[Channel, int] = {}
        self.plays = plays
        self.engine = "tensorflow"
        self.check: Callable[[], None] = lambda: None
        self.killing: Callable[[], None] = lambda: None
        """Called before a trial is killed."""

    def stop(self) -> None:
        self.alive = False

    def launch(self) -> None:
        assert not self.alive
        self.start_record = ZygoteRecord(number=next(NUMBERS), padding_bytes=0, hash_seed=0)
        self.diary.append((self.name or "zygote", "is launched"))

    def start(self) -> None:
        self.alive = True
        self.diary.append((self.name or "zygote", "is ready"))

    def note(self, actor: Actor, what: str) -> None:
        self.diary.append((self.name or actor.cell_id, what))

    def trials(self) -> list[str]:
        """The cell ids of the trials that were started, in order."""
        return [request.cell.cell_id for request in self.spawned if request.task == "trial"]

    def spawn(self, request: Request) -> FakeChild:
        number = len(self.spawned)
        attempt = 1 + sum((old.cell, old.task) == (request.cell, request.task) for old in self.spawned)
        self.spawned.append(request)
        if self.name is not None:
            self.diary.append((self.name, f"{request.task} is spawned"))
        ours, theirs = socket.socketpair()
        log = Path(self.scratch) / f"trial-{number}.log"
        log.write_text("")
        actor = Actor(self, request, Channel(theirs), log, self.plays(request))
        actor.attempt = attempt
        thread = threading.Thread(target=actor.run, daemon=True)
        thread.start()
        return FakeChild(self, actor, Channel(ours), thread)


@dataclass
class Bench:
    """A run in a folder, with a fake zygote; `start` and `resume` do what the command line does."""

    folder: Path
    cells: Sequence[Cell]
    plays: Plays = field(default=all_play(Play()))
    sweep: dict[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Quiet)

    def __post_init__(self) -> None:
        self.zygote = FakeZygote(self.folder, self.plays)

    def manifest(self) -> RunManifest:
        short = {"trials": 1, "windows": 5, "max_warmup": 0, "timeout": 5.0, "window": 0.01}
        settings = {**short, "data_dir": str(self.folder / "data"), **self.sweep}
        sweep = Sweep(**settings)
        return manifest(sweep=sweep, cells=list(self.cells), plans=[first_plan(sweep, self.cells)])

    def start(self) -> SweepRun:
        """Run from the beginning."""
        with RunStore.create(self.folder / "results", self.manifest()) as store:
            return self._run(store, new=True)

    def resume(self, retry: bool = False) -> SweepRun:
        """Run what is missing, with `retry` also what failed."""
        with RunStore.open_for_resume(self.path) as store:
            return self._run(store, new=False, retry=retry)

    @property
    def path(self) -> Path:
        return self.folder / "results" / self.manifest().run_id

    def _run(self, store: RunStore, new: bool, retry: bool = False) -> SweepRun:
        run = SweepRun(store, self.progress)
        run.retry = retry
        run.environments = lambda: contextlib.nullcontext({ENGINE: self.zygote})  # type: ignore[assignment, return-value, dict-item]
        carry_out(run, new)
        return run
