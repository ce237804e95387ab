"""Sweeps on emulated networks: measured as asked, refused with a reason, and gone without a trace however they end."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record import TrialRecord
from tests.cli.real import ON_ALL_CORES, SMALL, only_run, processes_of, run, start, still_alive
from tests.run.network.conftest import emulation, link_of, link_that_stays, members, within

pytestmark = pytest.mark.slow
__all__ = ["emulation", "link_that_stays"]

WORKERS = [*SMALL, ON_ALL_CORES, "--strategy", "multi_worker_mirrored", "--workers", "2", "--replicas", "1"]


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def on_networks(results: Path) -> list[TrialRecord]:
    return [trial for trial in only_run(results).trials if trial.cell.network]


@pytest.mark.usefixtures("emulation")
def test_a_sweep_of_rates_records_what_each_network_was_and_a_slow_one_is_slow(tmp_path: Path) -> None:
    done = run("sweep", *WORKERS, "--network", "rate=50mbit,rate=1gbit,delay=2ms", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    trials = {trial.cell.network: trial for trial in on_networks(tmp_path / "results")}
    assert {network: trial.status for network, trial in trials.items()} == {
        "rate=50mbit": "ok",
        "rate=1gbit,delay=2ms": "ok",
    }
    found = {network: trial.cluster.network for network, trial in trials.items() if trial.cluster is not None}
    slow, long = found["rate=50mbit"], found["rate=1gbit,delay=2ms"]
    assert slow is not None
    assert long is not None
    assert slow.bandwidth_bits_per_s < 55e6
    assert long.bandwidth_bits_per_s > 3 * slow.bandwidth_bits_per_s
    assert long.round_trip_s >= 0.004
    for trial in trials.values():
        assert trial.cluster is not None
        assert trial.cluster.isolated
    # the mlp's gradients are 2.7 MB, which 50 Mbit/s carry in no less than 0.4 s
    sizes = trials["rate=50mbit"].executed.pack_bytes
    step_time_s = trials["rate=50mbit"].step_time_s
    assert step_time_s is not None
    assert step_time_s > 0.8 * 8 * sum(sizes) / 50e6


@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_however_a_sweep_ends_no_process_no_namespace_and_no_link_is_left(
    tmp_path: Path, number: int, link_that_stays: Callable[[str], str]
) -> None:
    before = interfaces()
    more = ["--windows=100", "--window=0.1", "--timeout=300"]
    process = start("sweep", *WORKERS, *more, "--network", "rate=1gbit,delay=1ms", folder=tmp_path)
    own = link_of("/proc/self/ns/net")
    namespaces = {own}

    def are_there() -> bool:
        for path in (f"/proc/{found.pid}/ns/net" for found in processes_of(process)):
            with contextlib.suppress(OSError):  # gone again: git, asked for the revision
                if link_of(path) not in namespaces:
                    namespaces.add(link_that_stays(path))
        return len(namespaces) >= 4 and len(processes_of(process)) >= 7

    try:
        assert within(300, are_there), "its own, a switch, two hosts; a zygote, 3 holders, a relay and two workers"
        everything = processes_of(process)
    finally:
        os.kill(process.pid, number)
    process.communicate(timeout=120)
    assert still_alive(everything, 10) == []
    assert within(30, lambda: not any(members(namespace) for namespace in namespaces - {own}))
    assert interfaces() == before


@pytest.mark.usefixtures("emulation")
def test_where_networks_cannot_be_had_the_cells_are_unsupported_with_the_reason_and_the_rest_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "no-tc"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr("harness.run.network.emulated._PLACES", str(tools))
    done = run("sweep", *WORKERS, "--network", "rate=1gbit", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    [refused] = on_networks(tmp_path / "results")
    assert refused.status == "unsupported"
    assert refused.reason is not None
    assert refused.reason.startswith("network 'rate=1gbit': no program ip and no program tc: install iproute2")
    assert "ok" in {trial.status for trial in only_run(tmp_path / "results").trials}


def test_a_network_with_a_launcher_that_emulates_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    from harness.run.launchers import launchers

    others = [name for name, launcher in launchers().items() if not launcher.emulates_networks]
    if not others:
        pytest.skip("every launcher emulates networks")
    done = run("sweep", *WORKERS, "--network", "rate=1gbit", "--launcher", others[0], folder=tmp_path)
    assert done.returncode == 2
    expected = f"harness: network: launcher '{others[0]}' emulates none; expected launcher local"
    assert done.stderr.splitlines()[-1] == expected
