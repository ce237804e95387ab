"""What a parent and its fork server say to each other over the control socket, each a line of JSON."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from harness.protocol.messages import Message, Request


class Spawn(Message):
    """Fork a trial. With it come two file descriptors: the trial's end of its channel, and its standard error."""

    do: Literal["spawn"] = "spawn"
    number: int
    """The parent's name for the trial from now on."""
    request: Request


class Signal(Message):
    """Send a signal to a trial, if it still lives."""

    do: Literal["signal"] = "signal"
    number: int
    signal: int


class Dismissal(Message):
    """No more trials are needed: that the parent hangs up next is no sudden end."""

    do: Literal["dismiss"] = "dismiss"


class Readiness(Message):
    """The fork server's first word: the engine is preloaded."""

    versions: dict[str, str]
    """Those that name what is measured, and how long the import took (`harness.protocol.engine.IMPORT_S`)."""


class Birth(Message):
    """A trial was forked."""

    of: Literal["birth"] = "birth"
    number: int
    pid: int


class Death(Message):
    """A trial has ended."""

    of: Literal["death"] = "death"
    number: int
    status: int
    """Its exit status, negative for a signal."""
    left: list[str]
    """Names of the processes that trials had left running, and that were ended now."""
    stays: tuple[str, ...] = ()
    """Names of those that may not be ended."""
    left_out: int = 0
    """Bytes of what it printed that are not kept (`harness.files.cut_log`)."""


Demand = Spawn | Signal | Dismissal
"""The parent's word."""
ChildEvent = Birth | Death
"""The fork server's word, once it is ready."""
_DEFERRED = ConfigDict(defer_build=True)
DEMANDS: TypeAdapter[Demand] = TypeAdapter(Annotated[Demand, Field(discriminator="do")], config=_DEFERRED)
EVENTS: TypeAdapter[ChildEvent] = TypeAdapter(Annotated[ChildEvent, Field(discriminator="of")], config=_DEFERRED)
