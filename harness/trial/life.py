"""What a fresh process does from its first instruction to its outcome, whatever engine it was forked with."""

import faulthandler
import gc
import signal
import socket

from harness.errors import UsageError
from harness.protocol.channel import Channel
from harness.protocol.engine import Engine
from harness.protocol.messages import Membership, Outcome, Report, Request
from harness.trial.ending import ending_of
from harness.trial.membership import await_leave
from harness.trial.own_check import own_check
from harness.trial.sign_of_life import sign_of_life
from harness.trial.trial import Trial

BEFOREHAND = ("prepare", "preflight")
"""Tasks that an engine need not have: nothing is then to be done before the trials."""


def live(connection: socket.socket, request: Request, engine: Engine) -> None:
    """Entry point of a forked process; the zygote's fork leaves by os._exit afterwards."""
    channel = Channel(connection)
    channel.send(Report(phase="start"))
    sign_of_life.tell_over(channel)
    gc.disable()  # Tracing makes garbage that is not worth a fifth of the set-up's time; on again before any window.
    faulthandler.enable(all_threads=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    request = engine.on_host(request)
    channel.send(Report(outcome=outcome_of(request, channel, engine)))
    if request.member is not None:
        await_leave(channel)


def outcome_of(request: Request, channel: Channel, engine: Engine) -> Outcome:
    """Do what `request` asks for with `engine`, and say how it ended."""
    if request.task == "trial" and request.member is not None:
        return _as_member(request, request.member, channel, engine)
    if request.task == "trial":
        return _trial(request, channel, engine)
    if request.task == "preflight":
        try:
            own_check(request.check)
        except UsageError as error:
            return Outcome(status="unsupported", reason=str(error))
    if request.task in BEFOREHAND and request.task not in engine.tasks():
        return Outcome(status="ok")
    return _task(request.task, request, channel, engine)


def _trial(request: Request, channel: Channel, engine: Engine) -> Outcome:
    """A trial of the work that the cell is: of the training that it asks for, or a task of the engine."""
    cell = request.cell
    if cell.training_asked is None:
        return _task(cell.tag, request, channel, engine)
    left_out = cell.LEFT_OUT or request.instrument
    request = request.model_copy(update={"cell": cell.training_asked, "instrument": left_out})
    return Trial(request, channel, engine).run()


def _task(name: str, request: Request, channel: Channel, engine: Engine) -> Outcome:
    task = engine.tasks().get(name)
    if task is not None:
        return task(request, channel)
    return Outcome(status="unsupported", reason=f"engine '{engine.name}' has no {name.replace('_', ' ')}")


def _as_member(request: Request, member: Membership, channel: Channel, engine: Engine) -> Outcome:
    """What a process of a cluster does: the trial itself, or what a coordinator sends it."""
    if engine.clusters is None:
        return Outcome(status="unsupported", reason=f"engine '{engine.name}' has trials of one process only")
    try:
        engine.clusters.join(member)
        if not member.serves:
            return _trial(request, channel, engine)
        return engine.clusters.serve(request, member, channel)
    except Exception as error:  # noqa: BLE001  whatever keeps a process from its place is the trial's end
        return Outcome(**ending_of(error, engine.classify)._asdict())
