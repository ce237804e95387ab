"""A trial by itself, outside of a run's blocks: what doctor, limits, preflight, proofs and preparation ask."""

import contextlib

from harness.protocol.messages import Request
from harness.run.interrupts import Interrupts
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended, LiveTrial, Slot


def single(
    purpose: str,
    zygote: Zygote,
    request: Request,
    limit_s: float,
    interrupts: Interrupts | None = None,
    run_id: str = "",
) -> LiveTrial:
    """A trial that is not started yet. A record of it names its purpose, and the run where there is one."""
    slot = Slot(run_id or purpose, 0, purpose, 0, 1, "none")
    return LiveTrial(request.cell, slot, zygote, request, limit_s, interrupts or Interrupts())


def single_task(purpose: str, zygote: Zygote, request: Request, limit_s: float) -> LiveTrial:
    """A task without turns, which has ended. Raises what starting a process raises."""
    task = single(purpose, zygote, request, limit_s)
    task.start()
    task.finish_task()
    return task


def live_through(trial: LiveTrial) -> None:
    """A whole trial, one window long, its proofs included; its `status` says how it ended."""
    with contextlib.suppress(Ended):
        trial.start()
        trial.set_up()
        trial.take_turn(0)
        trial.measure_from(0)
        trial.finish()
