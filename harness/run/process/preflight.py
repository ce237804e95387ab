"""Before anything is recorded: can a user's own model and op be loaded at all?"""

import re
from collections.abc import Iterable, Sequence

from harness.errors import UsageError
from harness.protocol.messages import Request
from harness.run.process.zygote import Zygote
from harness.run.turns.live import LiveTrial
from harness.run.turns.single import single_task
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.engines import engine_of, environment_of
from harness.trial.own_function import refuse_missing

RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: .*)?$", re.MULTILINE)
"""The line of a traceback that says what was raised."""
MEMORY = ("MemoryError", "ResourceExhaustedError")


def preflight(zygote: Zygote, requests: Sequence[Request], limit_s: float, some_may_raise: bool = False) -> None:
    """Build each of the user's own models and ops once, and load the check, in a process of its own.

    Raises UsageError, naming the key, for one that cannot be loaded or that raises: a wrong flag must
    not become a run full of crashed trials. Registered names are known to load. One that hangs for
    `limit_s` seconds, ends its process or runs out of memory is let through, because how a model
    fails on a machine is a result, and its trials record it with phase and evidence. So is one that
    raises or builds what cannot be trained, where `some_may_raise` and some of the requests want another.
    """
    own: dict[tuple[tuple[str, str], ...], Request] = {}
    for request in requests:
        names = tuple(_own_names(request).items())
        if names:
            own.setdefault(names, request)
    raised: list[str] = []
    for request in own.values():
        trial = single_task("preflight", zygote, request.model_copy(update={"task": "preflight"}), limit_s)
        fault = _fault(trial)
        a_name = trial.outcome is not None and trial.phase != "build"
        if fault is not None and (a_name or not some_may_raise):
            raise UsageError(fault)
        raised += [fault] if fault is not None else []
    if raised and len(raised) == len({tuple(_own_names(request).items()) for request in requests}):
        raise UsageError(raised[0])


def refuse_missing_code(cells: Iterable[Cell], sweep: Sweep) -> None:
    """UsageError, without starting a process, for code of the user's own whose module is nowhere to be found.

    What an interpreter of the engine's own would find is not known here.
    """
    if any(environment_of(engine_of(engine)) is not None for engine in sweep.asked("engine")):
        return
    named = [*(cell.own_code for cell in cells), {"check": sweep.check} if ":" in sweep.check else {}]
    for key, path in dict.fromkeys(item for names in named for item in names.items()):
        refuse_missing(key, path)


def _fault(trial: LiveTrial) -> str | None:
    """What is wrong with the user's own model or op, or None when its trials may show that themselves."""
    if trial.status == "ok":
        return None
    if trial.outcome is not None:
        return trial.reason
    # Status 1 is Python's own, for an exception; a fault in native code ends the process by a signal.
    raised = RAISED.findall(trial.evidence or "")
    if trial.child.status != 1 or not raised or any(name in raised[-1] for name in MEMORY):
        return None
    names = ", ".join(f"{key}: '{value}'" for key, value in _own_names(trial.request).items())
    return f"{names} cannot be built: {raised[-1]}"


def _own_names(request: Request) -> dict[str, str]:
    """What of a trial is code of the user's own, by key."""
    return request.cell.own_code | ({"check": request.check} if ":" in request.check else {})
