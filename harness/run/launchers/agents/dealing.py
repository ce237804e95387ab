"""Which process of a trial runs on which host."""

from collections.abc import Sequence

from harness.spec.cell import Cell


def hosts_needed(cell: Cell, hosts: int) -> int:
    """Hosts that a trial of `cell` takes of `hosts`; 0 is one for each worker and server.

    A coordinator computes nothing and shares the first host.
    """
    each = cell.workers + cell.ps
    return min(hosts, each) if hosts else each


def dealt(tasks: Sequence[tuple[str, int]], hosts: int) -> list[int]:
    """The host, from 0, of each task: in order, as evenly as they go, those of one host beside each other."""
    return [position * hosts // len(tasks) for position in range(len(tasks))]
