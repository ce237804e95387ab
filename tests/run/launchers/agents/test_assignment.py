"""Processes are dealt to hosts in order, as evenly as they go."""

import pytest

from harness.run.launchers.agents.assignment import first_devices, hosts_needed, hosts_of_tasks
from harness.run.launchers.base import tasks_of
from tests.record.examples import cell

FOUR = cell(strategy="multi_worker_mirrored", workers=4, replicas=2, global_batch_size=256)
SERVED = cell(strategy="parameter_server", workers=2, ps=1, replicas=1, global_batch_size=32)


@pytest.mark.parametrize(("hosts", "needed"), [(0, 4), (1, 1), (2, 2), (3, 3), (9, 4)])
def test_a_trial_takes_a_host_a_worker_unless_there_are_to_be_fewer(hosts: int, needed: int) -> None:
    assert hosts_needed(FOUR, hosts) == needed


def test_a_server_takes_a_host_and_the_coordinator_shares_one() -> None:
    assert hosts_needed(SERVED, 0) == 3
    assert hosts_of_tasks(tasks_of(SERVED), 3) == [0, 0, 1, 2]


@pytest.mark.parametrize(("hosts", "where"), [(4, [0, 1, 2, 3]), (2, [0, 0, 1, 1]), (3, [0, 0, 1, 2]), (1, [0] * 4)])
def test_those_of_one_host_are_beside_each_other(hosts: int, where: list[int]) -> None:
    assert hosts_of_tasks(tasks_of(FOUR), hosts) == where


def test_workers_of_one_host_share_out_its_accelerators_and_servers_take_none() -> None:
    assert first_devices([0, 0, 1, 1], tasks_of(FOUR), replicas=2) == [0, 2, 0, 2]
    assert first_devices([0, 0, 0, 0], tasks_of(SERVED), replicas=1) == [0, 0, 1, 0]
