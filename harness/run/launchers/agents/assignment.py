"""Which process of a trial runs on which host."""

from collections.abc import Sequence

from harness.spec.work import Cell


def hosts_needed(cell: Cell, hosts: int) -> int:
    """Hosts that a trial of `cell` takes of `hosts`; 0 is one for each worker and server.

    A coordinator computes nothing and shares the first host.
    """
    each = cell.shape.workers + cell.shape.servers
    return min(hosts, each) if hosts else each


def hosts_of_tasks(tasks: Sequence[tuple[str, int]], hosts: int) -> list[int]:
    """The host, from 0, of each task: in order, as evenly as they go, those of one host beside each other."""
    return [position * hosts // len(tasks) for position in range(len(tasks))]


def first_devices(hosts: Sequence[int], tasks: Sequence[tuple[str, int]], replicas: int) -> list[int]:
    """The first accelerator of each process: workers on one host share out its own."""
    taken: dict[int, int] = {}
    first = []
    for host, (task, _) in zip(hosts, tasks, strict=True):
        first.append(taken.get(host, 0) if task == "worker" else 0)
        taken[host] = taken.get(host, 0) + (replicas if task == "worker" else 0)
    return first
