"""Launchers: each starts two workers on the processors of one host, whose training is to pass its gate."""

import contextlib
import io
import os
import subprocess
from collections.abc import Iterator

from harness.protocol.messages import Request
from harness.record.proof import Proof
from harness.run.launchers import launchers
from harness.run.launchers.attach import Attach
from harness.run.process.startup import TOKEN_VARIABLE, Startup
from harness.run.process.zygote import Zygote
from harness.run.prove import cells, questions
from harness.run.request import data_dir_of, request_for
from harness.spec.sweep import sweep_from
from harness.spec.work import Cell


def launched(name: str, cell: Cell, limit_s: float) -> Proof:
    """A whole trial of `cell` by the launcher `name` on one host. For `attach` that is this one."""
    sweep = sweep_from({**cells.SMALL, "launcher": name, "hosts": 1})
    with Zygote(Startup(preloads=False)) as zygote, _joined(zygote, request_for(cell, sweep, data_dir_of(sweep))):
        trial = questions.ask(zygote, cell, sweep, limit_s, paired=False).record
    return cells.proof_of("launcher", name, trial)


@contextlib.contextmanager
def _joined(zygote: Zygote, request: Request) -> Iterator[None]:
    """This host joins, where hosts are to join by a command that a person runs."""
    launcher = launchers()[request.launcher]
    if not isinstance(launcher, Attach):
        yield
        return
    with contextlib.redirect_stderr(io.StringIO()):  # nobody has to run the command
        session = launcher.session(request, zygote)
    environment, none = os.environ | {TOKEN_VARIABLE: session.meeting.token}, subprocess.DEVNULL
    # without words of its own: standard output may have a sheet as JSON
    with subprocess.Popen(session.agent_command(), env=environment, stdout=none, stderr=none) as agent:
        try:
            yield
        finally:
            agent.terminate()
