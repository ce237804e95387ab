"""The processors that a trial of several processes has between its hosts, and what processes have used of them."""

import contextlib
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from harness.protocol.messages import Outcome
from harness.record.trial import Resources
from harness.run.launchers.base import Seat


class Computing(Protocol):
    """A process as it is seen here (`harness.run.process.cluster_report.Process`)."""

    seat: Seat
    outcome: Outcome | None


def resources_of(processes: Iterable[Computing], lead: Resources) -> Resources:
    """`lead`, the leading process's, with the processors of every host on which workers compute.

    Each process knows its own host's; those of one host have the same ones. Replicas share processors where some host
    has fewer than its workers have replicas: how many there are elsewhere is no help to those. The GPUs are all
    processes'.
    """
    processes = list(processes)
    gpus = dict.fromkeys(gpu for one in processes if one.outcome is not None for gpu in one.outcome.resources.gpus)
    physical: dict[str, int] = {}
    replicas: Counter[str] = Counter()
    for process in processes:
        if process.seat.member.task == "worker" and process.outcome is not None:
            own, host = process.outcome.resources, process.seat.fork_server.machine
            physical[host] = max(physical.get(host, 0), own.physical_devices)
            # A worker that serves does not name its devices; it has one replica.
            replicas[host] += max(1, len(own.logical_devices))
    shared = any(replicas[host] > physical[host] for host in physical)
    bound = sum(physical.values()) or lead.physical_devices
    return lead.model_copy(update={"physical_devices": bound, "shared": shared, "gpus": list(gpus)})


def processor_seconds(pids: Iterable[int]) -> dict[int, float]:
    """Seconds of processor time that each of these processes of this machine has used, all its threads together."""
    import psutil

    used = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):  # it is gone
            times = psutil.Process(pid).cpu_times()
            used[pid] = times.user + times.system
    return used
