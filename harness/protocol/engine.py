"""What an engine is: a framework that trains, as everything else of a trial sees it.

An engine is one folder of `harness/engines/` with an object `ENGINE`, or a user's own, named `package.module:function`.
It says what it can train (`Engine.catalogue`) and builds a `Trainer` for one cell in a fresh process. Phases, turns,
the clock, the gate's judgement, time limits and records are the same for all engines (`harness.trial`, `harness.run`).
Its module must not import the framework at the top: the parent reads the catalogue and never pays for the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, SupportsFloat, runtime_checkable

from harness.protocol.channel import Channel
from harness.protocol.messages import Membership, Outcome, Request
from harness.protocol.state import Reference, VariableState
from harness.record.trial import Executed, Resources, TraceRecord
from harness.spec.catalogue import Catalogue

GATE_UPDATES = 2
"""Single steps that every trial begins with, each on another batch: one shows a wrong update, the second a delayed
one."""

IMPORT_S = "import_s"
"""Beside the versions: seconds that it took to import what they are of."""

Ending = tuple[Literal["unsupported", "out_of_memory", "crashed"], str]
"""How a trial that raised has ended, and the reason in one line."""
Task = Callable[[Request, Channel], Outcome]
"""Something that a fresh process is asked to do."""


class SourceBuild(NamedTuple):
    """A package that is built from its source distribution in the environment, where all else is installed by then."""

    package: str
    """As the pins have it."""
    tools: tuple[str, ...]
    """Commands that its build runs."""
    variables: Mapping[str, str]
    """What its build reads."""
    without: Mapping[str, str]
    """By file of the distribution: lines that hold this are left out."""


class Environment(NamedTuple):
    """What an engine needs of an interpreter beside this harness, and how one is made that has it."""

    needs: Mapping[str, str]
    """What is imported, each a module and a package of one name, and the least version."""
    installs: tuple[str, ...]
    """What `python -m harness engine install` asks for; their versions, and those of all that they need, are pinned."""
    constraints: Path
    """The file of the pins, as `pip install --constraint` reads it."""
    built: SourceBuild | None = None
    """What is built there besides."""


class Software(NamedTuple):
    """What of an interpreter and its variables makes an engine's trials what they are."""

    needs: Mapping[str, str] = {"pydantic": "2"}
    """Modules that trials import in any case, with the least versions: what the harness itself imports in one, too."""
    titles: Mapping[str, str] = {}
    """Packages whose versions name what was measured, with their names for people."""
    brought_by: Mapping[str, tuple[str, ...]] = {}
    """Packages that bring a module instead of the one that is called so."""
    comes_with: Mapping[str, str] = {}
    """Packages that another one installs, by which they are asked for and renewed."""
    variables: tuple[str, ...] = ()
    """Environment variables, read by it alone, that change what a step computes or how fast, and that mean the same on
    every host."""
    sets: Mapping[str, str] = {}
    """Environment variables that its processes set themselves, with the only value that it trains with: a side of a
    comparison is refused another."""


class KnownStep(NamedTuple):
    """What came of one update on a batch that the reference knows."""

    loss: float
    same_program: bool
    """Whether the program that was timed ran it; False where it was compiled anew."""


class Pace(Protocol):
    """Says how many steps come next, and is told when they are done (`harness.trial.clock.Clock`)."""

    def begin(self) -> int:
        """Steps to run now; blocks while others have the turn; 0 ends the loop."""

    def end(self, loss: SupportsFloat) -> None:
        """The steps were issued; `loss` is the last one's, possibly still on its way."""


class Tracer(Protocol):
    """Profiles a few steps after the last window."""

    @property
    def record(self) -> TraceRecord | None:
        """What became of it; None before it was tried, and in the processes that do not lead."""

    def begin(self, window_steps: int) -> int:
        """Start to profile; how many steps to run."""

    def end(self) -> None:
        """The steps are done."""


class Trainer(Protocol):
    """One cell that has been built in this process: it trains as a pace says, and shows what it did."""

    @property
    def resources(self) -> Resources:
        """The devices that its replicas got, and how many processors bound them."""

    @property
    def least_steps(self) -> int:
        """Steps that a window has at least."""

    @property
    def ahead(self) -> int:
        """Batches that its input may have ready before a window, made while it was another's turn; 0 where the input
        takes no time."""

    @property
    def resting(self) -> Callable[[], AbstractContextManager[object]]:
        """Gives what is entered while this waits for its turn, if its threads would work then: `contextlib.nullcontext`
        where none does."""

    def check_reduction(self) -> str | None:
        """Whether what the replicas compute comes together rightly: None, or the evidence that it does not."""

    def state(self) -> list[VariableState]:
        """Weights, statistics and optimizer state now, in an order that stays."""

    def updates(self) -> int:
        """Updates that the optimizer itself has counted."""

    def due(self, steps: int) -> tuple[int, dict[str, str]]:
        """Updates that `steps` steps should have made, one each unless the optimizer has it otherwise, and remarks on
        them by subject."""

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        """The first GATE_UPDATES updates from `initial`, on one device and by a way of their own; raises Unprovable."""

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        """The same updates one by one, each from the state that the step itself had before it; asked for where rounding
        alone would make another second update of the first. What rounding does is found out by so many perturbed runs.
        """

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0. The first GATE_UPDATES steps are single ones, each on another batch; the loss of
        each is that of its batch alone."""

    def one_more(self) -> KnownStep:
        """One update on a batch of a known kind, by the program that is timed, to its end.

        It is asked for between two windows, while `run` waits for its pace, and once `run` has returned. What the batch
        is, is the engine's to choose, so that a model that has learnt its data still has a gradient; it is never that
        of the call before, whose gradient would pass for its own if updates came one late.
        """

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        """The update of `one_more` from the state `before`, on one device and by a way of its own."""

    def synchronise(self) -> None:
        """Return when every replica has done its last update."""

    def agree(self, value: float) -> float:
        """One number of what each process of a cluster has measured by itself; `value` where there is one process."""

    def executed(self) -> Executed:
        """What really ran, as far as the framework tells; asked once the first GATE_UPDATES steps are done."""

    def tracer(self, leads: bool) -> Tracer | None:
        """What profiles this trial; None where it is not to be, and Tracer.record None where this does not lead."""

    @property
    def alone(self) -> Callable[[], None] | None:
        """One pass, forward and backward, on this process's replicas alone, to its end; None where there is none."""

    @property
    def staleness(self) -> dict[int, int] | None:
        """How many updates had how many others pass between their read and their write; None where all wait."""

    @property
    def labels(self) -> str:
        """A digest of the labels of this process's first batches (`harness.trial.sameness`); empty where it is not
        told."""

    def check_input(self) -> dict[str, str | None]:
        """Whether this process was fed what its cell, the seed and its place among the processes give, once it has
        trained: the evidence against it as `input`, None where there is none; nothing where it is not looked at."""

    def forget_peak(self) -> None:
        """The first updates are proved: the peak of accelerator memory is of what comes."""

    def peak_device_memory_bytes(self) -> int | None:
        """Largest sum of accelerator memory over the replicas; None where nobody counts it."""


@runtime_checkable
class Recoverable(Protocol):
    """A training that can be taken up again from what it has saved, one step after the other (`harness.trial.job`).

    It is built by every process of a job alike; where and what for is in `Request.job`.
    """

    def state(self) -> list[VariableState]:
        """Weights, statistics and optimizer state now, in an order that stays."""

    def updates(self) -> int:
        """Updates that the optimizer itself has counted; a checkpoint has the count, too."""

    def step(self, number: int) -> None:
        """One update, done on this process's replicas when it returns, on the batch of that number, from 0: the same
        one whenever the process was started."""

    def restore(self) -> int:
        """Go back to the newest checkpoint that is whole; the steps done by then, 0 without one."""

    def save(self, step: int) -> None:
        """Save, after `step` steps; every process is asked, at the same step."""

    def checkpoint_bytes(self) -> int:
        """Size of the newest checkpoint on disk."""

    def listen(self, saved: Callable[[int], None]) -> None:
        """From now on SIGTERM makes all processes save together, tell `saved` after how many steps, and end.

        Unsupported, or NotImplementedError, with the reason where the framework has nothing for that.
        """

    def agree(self, value: float) -> float:
        """One number of what each process gives, once all have given it."""


class Clusters(Protocol):
    """How a process takes its place among several."""

    def join(self, member: Membership) -> None:
        """Tell the framework, before it starts, which process this is; HarnessError with the reason."""

    def serve(self, request: Request, member: Membership, channel: Channel) -> Outcome:
        """Carry out what a coordinator sends until the parent says leave; raises what the framework does."""


class Engine(Protocol):
    """A framework that trains. Only `catalogue` and the attributes are used in the parent.

    What it needs, and what names it, it says by an attribute `software`, a `Software`, if anything.
    One that may have an interpreter of its own says so by an attribute `environment`, an `Environment`. The trials of
    any other run in the interpreter of the harness.
    """

    @property
    def name(self) -> str:
        """Its name in specs."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def clusters(self) -> Clusters | None:
        """None where its trials are single processes."""

    def catalogue(self) -> Catalogue:
        """The names that a spec may use with it; it must have a strategy `none`, the base of every speed-up."""

    def preload(self) -> dict[str, str]:
        """Import what every trial needs and start nothing; the versions that name what was measured."""

    def on_host(self, request: Request) -> Request:
        """`request` with what it leaves open decided on the host where the trial runs."""

    def classify(self, error: Exception) -> Ending:
        """What an exception of the framework, or of a user's model, means (`harness.trial.ending.plain_ending`)."""

    def trainer(self, request: Request) -> Trainer:
        """Build the cell; raises Unsupported, or HarnessError, with the reason."""

    def tasks(self) -> Mapping[str, Task]:
        """What a process may be asked besides a trial, by `Request.task`; `own_step` is a user's own training step,
        `collective` a collective by itself, `pipeline` an input pipeline by itself, `job` what `faults` disturbs.

        Where there is no `prepare` or `preflight`, nothing is to be prepared or tried beforehand.
        """
