"""Where a trial's process, or processes, are started: here, on another host, or on several."""

from harness.protocol.hosting import Child
from harness.protocol.messages import Request
from harness.run.launchers import CannotPlace, launchers
from harness.run.process.cluster import spawn_cluster
from harness.run.process.refusal import RefusedChild
from harness.run.process.zygote import Zygote
from harness.trial.engines import catalogue_of


def spawn(request: Request, zygote: Zygote) -> Child:
    """Start what `request` asks for: a cluster, one process on the launcher's first host, or a fork of `zygote`."""
    if several_processes(request, zygote.engine):
        return spawn_cluster(request, zygote)
    launcher = launchers().get(request.launcher)
    if request.task != "trial" or launcher is None or not launcher.elsewhere:
        return zygote.spawn(request)
    try:
        fork_server = launcher.fork_server_for(request, zygote)
    except CannotPlace as error:
        return RefusedChild(error)
    return fork_server.spawn(request)


def several_processes(request: Request, engine: str) -> bool:
    """Whether the trial that is asked for is a cluster."""
    if request.task != "trial":
        return False
    strategy = request.cell.get("strategy")
    if strategy is None:
        return request.cell.shape.workers > 1
    traits = catalogue_of(engine).strategies.get(strategy)
    return traits is not None and traits.multi_worker
