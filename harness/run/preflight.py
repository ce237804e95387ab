"""Before anything is recorded: can a user's own model and op be loaded at all?"""

from collections.abc import Sequence

from harness.errors import UsageError
from harness.run.interrupts import Interrupts
from harness.run.live import LiveTrial, Place
from harness.run.zygote import Zygote
from harness.trial.protocol import Request

LIMIT_S = 300.0


def preflight(zygote: Zygote, requests: Sequence[Request]) -> None:
    """Build each of the user's own models and ops once, in a process of its own.

    Raises UsageError, naming the key, for one that cannot be loaded: a wrong flag must not become a
    run full of crashed trials. Registered names are known to load.
    """
    own: dict[tuple[str, str], Request] = {}
    for request in requests:
        names = (request.cell.model, request.cell.cross_device_op)
        if any(":" in name for name in names):
            own.setdefault(names, request)
    for request in own.values():
        place = Place("preflight", 0, "preflight", 0, 1, "none")
        task = request.model_copy(update={"task": "preflight"})
        trial = LiveTrial(request.cell, place, zygote, task, LIMIT_S, Interrupts())
        trial.start()
        trial.finish_task()
        if trial.status != "ok":
            raise UsageError(trial.reason or f"model: '{request.cell.model}' cannot be loaded")
