"""What a run of any kind is to the runner: what it needs, what it does, and what it says."""

import contextlib
import functools
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from harness.environment.software import other_versions
from harness.errors import HarnessError, UsageError
from harness.protocol.messages import Request, TraceRequest
from harness.record.engines import TOLD_BY_ENGINE, facts_of_engines, named_by_engine
from harness.record.own_files import TRACES
from harness.record.store import RunStore
from harness.record.trial import Plant
from harness.run.data import unavailable
from harness.run.interrupts import Interrupts
from harness.run.process.engines import newer_words, python_for, with_interpreters
from harness.run.process.renewal import packages_of, renew
from harness.run.process.sources import Sources
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.run.progress import Listener, Progress
from harness.run.request import data_dir_of, request_for
from harness.run.turns.live import LiveTrial
from harness.spec.engines import engine_for
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.engines import DEFAULT, catalogue_of, engine_of
from harness.visible import plural, printable

_Listener = TypeVar("_Listener", bound=Listener)


@dataclass(frozen=True)
class Arm:
    """What some trials of a run are asked, and the preloaded process that they are forked from."""

    name: str
    request: Request
    zygote: Zygote
    timeout_s: float

    @classmethod
    def of(cls, name: str, cell: Cell, sweep: Sweep, zygote: Zygote, plant: Plant | None = None) -> "Arm":
        """Trials of `cell` with the settings of `sweep`. UsageError where a setting makes no sense here."""
        return cls(name, request_for(cell, sweep, data_dir_of(sweep), plant), zygote, sweep.timeout)


def must_import_in_trials(cells: Iterable[Cell], engine: str) -> bool:
    """Whether importing the engine's framework takes a device that `cells` are to have: a TPU of this machine.

    A training step of the user's own may take any.
    """
    devices = catalogue_of(engine).devices
    taken = {name for name, traits in devices.items() if traits.taken_by_import}
    return bool(taken) and any(cell.shape.device in taken or cell.shape.device not in devices for cell in cells)


def launch(zygote: Zygote, stack: contextlib.ExitStack) -> None:
    """Have it import without waiting for it; it ends with `stack`."""
    stack.callback(zygote.close)
    zygote.launch()


class LiveRun(ABC, Generic[_Listener]):
    """A run under way. `harness.run.runner` calls its methods in the order in which they stand here.

    A module of this folder with one as its `KIND` is a kind of run (`harness.run.kinds.run_kinds`).
    """

    name: ClassVar[str]
    """The kind, as the manifest names it."""
    may_reopen: ClassVar[bool] = False
    """Whether a finished run may have trials to run again, since their reason may have passed."""
    goes_on_without_some: ClassVar[bool] = False
    """Whether a model that raises costs its own trials only, where there are others."""
    retry = False
    """Whether trials of earlier sittings that failed, and may do better on another try, are to run again."""
    gave_up = False
    """Set by `execute` where it left undone what may be done later."""

    def __init__(self, store: RunStore, listener: _Listener) -> None:
        self.store = store
        self.progress = listener
        self.interrupts = Interrupts()
        self.zygotes: Mapping[str, Zygote] = {}
        """The preloaded processes, while the run is carried out."""
        self._sources = Sources(self.cells_from_here())

    def cells_from_here(self) -> Sequence[Cell]:
        """Those whose code of the user's own is what lies here, and no revision of it."""
        return self.store.manifest.cells

    @property
    @abstractmethod
    def recorded(self) -> int:
        """Records that are on disk, of earlier sittings too."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do, although the manifest does not say that it is finished."""
        return False

    def check(self) -> None:
        """Raise UsageError where a run that was begun earlier cannot be gone on with here and now."""

    def check_versions(self) -> None:
        """UsageError where Python or a package has another version by now: records would be of two programs."""
        if changed := other_versions(self.store.manifest.machine.facts):
            raise UsageError(
                f"--resume: versions are other than when the run was begun ({', '.join(changed)}); begin a new run"
            )

    @contextlib.contextmanager
    def environments(self) -> Iterator[Mapping[str, Zygote]]:
        """Hold what the run needs while it is carried out; the preloaded processes by name, one unless overridden."""
        with contextlib.ExitStack() as stack:
            engines = self._cells_by_engine
            made = {engine: self._made(engine, stack, beside_others=len(engines) > 1) for engine in engines}
            yield self._imported(made, stack)

    @functools.cached_property
    def _cells_by_engine(self) -> dict[str, list[Cell]]:
        by_engine: dict[str, list[Cell]] = {}
        for cell in self.store.manifest.cells:
            by_engine.setdefault(engine_for(cell, self.store.manifest.sweep), []).append(cell)
        return by_engine

    @functools.cached_property
    def _pythons(self) -> dict[str, str | None]:
        """The interpreter of each engine; None is ours. UsageError where one is not there."""
        sweep, engines = self.store.manifest.sweep, self._cells_by_engine
        # one of which no cell is left may have been given, too; of a user's own its name is given
        among = with_interpreters({*engines, *sweep.asked("engine")})
        return {engine: python_for(sweep, among, engine) for engine in engines}

    def _made(self, engine: str, stack: contextlib.ExitStack, beside_others: bool) -> Zygote:
        """A preloaded process to be; one `beside_others` is launched already, so that they import side by side."""
        # Another interpreter must find this harness, and not our packages beside it.
        python, path = self._pythons[engine], None if self._pythons[engine] is None else [Path.cwd()]
        preloads = not must_import_in_trials(self._cells_by_engine[engine], engine)
        made = Zygote(Startup(python=python or sys.executable, path=path, engine=engine, preloads=preloads))
        if beside_others:
            launch(made, stack)
        return made

    def _imported(self, made: Mapping[str, Zygote], stack: contextlib.ExitStack) -> dict[str, Zygote]:
        """Those of these engines, once they have imported, with a note of their versions."""
        zygotes = {engine: stack.enter_context(one) for engine, one in made.items()}
        versions = {name: packages_of(zygote) for name, zygote in zygotes.items()}
        own = {name for name, python in self._pythons.items() if name == DEFAULT and python is None}  # whose are facts
        self._note_versions({name: found for name, found in versions.items() if name not in own})
        self._warn_of_newer(versions)
        return zygotes

    def _warn_of_newer(self, by_engine: Mapping[str, Mapping[str, str]]) -> None:
        """Say here and on the page, once, which frameworks are newer than what their engines were tested with."""
        told = [newer_words(engine_of(engine), versions) for engine, versions in by_engine.items()]
        self._warn(words for words in told if words)

    def _warn(self, told: Iterable[str]) -> None:
        """Say here and on the page what was not said before."""
        manifest = self.store.manifest
        if found := [words for words in told if words not in manifest.machine.warnings]:
            with contextlib.suppress(OSError, ValueError):  # a closed terminal must not cost the measurement
                sys.stderr.write("".join(f"harness: {printable(words)}\n" for words in found))
            machine = manifest.machine.model_copy(update={"warnings": [*manifest.machine.warnings, *found]})
            self.store.update_manifest(manifest.model_copy(update={"machine": machine}))

    def look_at_sources(self) -> None:
        """Warn of source that was changed while the run is under way: trials import it anew."""
        so_far = plural(self.recorded, self.store.manifest.what.kind.unit.removesuffix("s"))
        self._warn(
            f"the source of {name} was changed during the run, which was noticed after {so_far}: trials may be of two "
            "programs; begin a new run"
            for name in self._sources.changed()
        )

    def _note_versions(self, by_engine: Mapping[str, Mapping[str, str]]) -> None:
        """Keep what engines beside the project's own tell of their packages; UsageError where those were others at the
        start."""
        if not by_engine:
            return
        manifest, found = self.store.manifest, facts_of_engines(by_engine)
        facts = named_by_engine(manifest.machine.facts, manifest.engines)
        then = {name: fact for name, fact in facts.items() if name.startswith(TOLD_BY_ENGINE)}
        if then and then != found:
            changed = (name for name in sorted({*then, *found}) if then.get(name) != found.get(name))
            words = ", ".join(f"{name} {then.get(name)} → {found.get(name)}" for name in changed)
            raise UsageError(f"--resume: the engine's packages are others than at the start ({words}); begin a new run")
        machine = manifest.machine.model_copy(update={"facts": {**facts, **found}})
        self.store.update_manifest(manifest.model_copy(update={"machine": machine}))

    def arms(self) -> Sequence[Arm]:
        """At least one for each model, launcher and data set: they are tried, opened and prepared beforehand."""
        return ()

    def ready(self) -> None:
        """The processes are there and the user's own is known to load; no host has been asked to join."""

    @abstractmethod
    def announce(self) -> None:
        """Tell the listener what is about to begin."""

    def without_data(self, arm: Arm, task: LiveTrial) -> None:
        """The data of `arm` could not be made ready by `task`. HarnessError unless the rest of the run goes on."""
        raise HarnessError(unavailable(arm.request, task.reason))

    @abstractmethod
    def execute(self) -> None:
        """Do what is missing and append a record of each; Interrupted when the person asked to stop."""

    def renew_zygotes(self) -> None:
        """Another preloaded process in the place of each, off the clock: what trials share is then drawn again."""
        renew(dict.fromkeys(self.zygotes.values()))
        self.look_at_sources()

    def over(self) -> None:
        """Tell the listener that it is over, however it ended."""
        self.progress.finished()

    @property
    def go_on(self) -> str:
        """Where the records are and how to go on, in words."""
        kind, path = self.store.manifest.what.kind, str(self.store.path)
        way = f"python -m harness {kind.verb} --resume {shlex.quote(path)}{' --retry' if self.retry else ''}"
        kept = f"{plural(self.recorded, kind.unit.removesuffix('s'))} {'is' if self.recorded == 1 else 'are'}"
        return f"{kept} kept in {path}; go on with: {way}"


class TrialRun(LiveRun[Progress]):
    """A run under way whose records are trials."""

    def __init__(self, store: RunStore, listener: Progress) -> None:
        super().__init__(store, listener)
        self.trials = list(store.earlier_trials)

    @property
    def recorded(self) -> int:
        """Trials."""
        return len(self.trials)

    def attempt(self, block: int, cell_id: str) -> int:
        """The number, from 1, of the next try of a cell in a block."""
        earlier = (t.attempt for t in self.trials if t.block == block and t.cell_id == cell_id)
        return 1 + max(earlier, default=0)

    def traced(self, block: int, request: Request) -> Request:
        """The request of a trial; the first of a cell that gets so far is traced, where the spec asks for it."""
        cell = request.cell
        if not self.store.manifest.sweep.trace or any(
            t.cell_id == cell.cell_id and t.trace is not None for t in self.trials
        ):
            return request
        path = f"{TRACES}/{cell.cell_id}-block-{block}-attempt-{self.attempt(block, cell.cell_id)}"
        trace = TraceRequest(run=str(self.store.path.absolute()), path=path)
        return request.model_copy(update={"trace": trace})
