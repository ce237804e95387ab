"""Cores and memory that a container leaves, in cgroup versions 1 and 2."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness import environment
from harness.environment import limits
from tests.environment.machine import lay_out

GIB = 2**30
VERSION_2 = {
    "proc/self/cgroup": "0::/job/step\n",
    "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
    "sys/fs/cgroup/job/step/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 4\n",
    "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/job/memory.max": f"{GIB}\n",
    "sys/fs/cgroup/job/memory.current": f"{GIB - 100}\n",
    "sys/fs/cgroup/job/memory.stat": "anon 1\ninactive_file 400\nactive_file 7\n",
    "sys/fs/cgroup/job/step/memory.max": "max\n",
}
VERSION_1 = {
    "proc/self/cgroup": "5:cpuset:/\n4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{GIB}\n",
    "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": f"{GIB - 10}\n",
    "sys/fs/cgroup/memory/docker/abc/memory.stat": "inactive_file 0\ntotal_inactive_file 30\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
}


@pytest.mark.parametrize(("files", "quota"), [(VERSION_2, 1.5), (VERSION_1, 0.5), ({}, None)])
def test_the_tightest_quota_of_all_levels_counts(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert limits.quota_cores(lay_out(tmp_path, files)) == quota


@pytest.mark.parametrize(("files", "left"), [(VERSION_2, 500), (VERSION_1, 40)])
def test_available_memory_is_what_the_cgroup_leaves_counting_droppable_pages(
    tmp_path: Path, files: dict[str, str], left: int
) -> None:
    root = lay_out(tmp_path, files)
    assert limits.memory_limit_bytes(root) == GIB
    assert limits.available_memory_bytes(root) == left


def test_without_cgroups_the_machine_itself_is_the_limit(tmp_path: Path) -> None:
    assert limits.memory_limit_bytes(tmp_path) is None
    assert limits.throttled_periods(tmp_path) is None
    assert limits.available_memory_bytes(tmp_path) == pytest.approx(psutil.virtual_memory().available, rel=0.2)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system tells of no process what it had at most")
def test_what_a_process_had_at_most_is_told_after_it_gave_it_back_without_as_much_as_its_parent_has() -> None:
    parents, taken = psutil.Process().memory_info().rss, 2**27
    code = f"held = bytearray(b'1') * {parents + taken}; del held; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert limits.own_peak_bytes([child.pid]) == pytest.approx(taken, rel=0.5)
        child.communicate(b"\n")
    assert limits.own_peak_bytes([child.pid]) == 0, "it is gone"


def test_a_container_that_sees_only_its_own_mount_is_still_limited(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "2:cpu,cpuacct:/docker/only-on-the-host\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    )
    assert limits.quota_cores(root) == 3.0


def test_a_strange_cgroup_file_is_no_error(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "nonsense\n0::\n:\n", "sys/fs/cgroup/cpu.max": "soon 0\n", "sys/fs/cgroup/x": ""}
    assert limits.quota_cores(lay_out(tmp_path, files)) is None


def test_throttled_periods_are_counted(tmp_path: Path) -> None:
    assert limits.throttled_periods(lay_out(tmp_path, VERSION_2)) == 4


@pytest.mark.parametrize(("quota", "expected"), [(None, 4), (8.0, 4), (2.9, 2), (0.3, 1)])
def test_usable_cores_are_whole_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    monkeypatch.setattr(limits, "affinity_cores", lambda: 4)
    monkeypatch.setattr(limits, "quota_cores", lambda: quota)
    assert environment.usable_cores() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_affinity_reduces_the_usable_cores() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert environment.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(("limit", "most"), [(300, 300), (2**20, 1024)])
def test_as_many_files_are_free_as_may_be_open_and_can_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, 2**20))
    monkeypatch.setattr(psutil.Process, "num_fds", lambda _: 200)
    assert environment.free_descriptors() == most - 200
