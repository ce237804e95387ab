"""A trial of the smallest engine there is (`benchmarks/own_engine.py`), in this process."""

import socket
from pathlib import Path
from typing import Any

from benchmarks.own_engine import Mean, Means
from harness.protocol.channel import Channel
from harness.protocol.messages import Outcome, Request, Turn
from harness.run.request import asked_matrix, request_for
from harness.spec import sweep_from
from harness.trial.trial import Trial

ASKED: dict[str, Any] = {
    "engine": ["benchmarks.own_engine:Means"],
    "device": ["thread"],
    "strategy": ["none"],
    "model": ["mean"],
    "data": ["normal"],
    "optimizer": ["descent"],
    "loop": ["plain"],
    "batch_size": [8],
}


def tried(trainer: type[Mean], folder: Path) -> tuple[Outcome, Mean]:
    """What came of a trial of one window, and what trained in it."""
    sweep = sweep_from(ASKED)
    request = request_for(asked_matrix(sweep).cells[0], sweep, folder)
    made: list[Mean] = []

    class Engine(Means):
        def trainer(self, request: Request) -> Mean:
            made.append(trainer(request))
            return made[0]

    ours, theirs = map(Channel, socket.socketpair())
    for turn in (Turn(do="pilot"), Turn(do="window"), Turn(do="finish")):
        ours.send(turn)
    return Trial(request, theirs, Engine()).run(), made[0]
