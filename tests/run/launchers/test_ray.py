"""Trials on a Ray cluster, where ray is installed; the reason where it is not, or where no cluster answers."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.protocol.messages import LauncherOptions, Request
from harness.run.interrupts import Interrupts
from harness.run.launchers import CannotPlace, launchers
from harness.run.launchers.ray import Ray, _reach
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended, LiveTrial, Slot
from tests.cli.real import SMALL, only_run, run
from tests.record.examples import cell
from tests.run.launchers.agents.conftest import comes_true

INSTALLED = importlib.util.find_spec("ray") is not None
without_ray = pytest.mark.skipif(not INSTALLED, reason="ray is not installed")


def reason_of_a_trial() -> str | None:
    """Why a trial could not be placed."""
    request = Request(
        cell=cell(strategy="multi_worker_mirrored", workers=2),
        seed=1,
        data_dir="",
        window_s=0.02,
        intra_op_threads=1,
        inter_op_threads=4,
        launcher="ray",
    )
    with contextlib.closing(Zygote()) as zygote:
        trial = LiveTrial(request.cell, Slot("r", 0, "g", 0, 1, "none"), zygote, request, 60, Interrupts())
        with contextlib.suppress(Ended):
            trial.start()
            trial.set_up()
    assert trial.status == "unsupported"
    return trial.reason


def test_without_ray_trials_are_unsupported_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install 'ray" in str(launchers()["ray"].available())
    assert "ray is not installed" in str(reason_of_a_trial())


class FakeRay:
    """What the launcher uses of ray, for a cluster of nodes with these resources; a group of bundles is refused."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, *nodes: dict[str, float]) -> None:
        self._nodes = nodes
        self.down = False
        self.asked: list[dict[str, float]] = []
        self.util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1", placement_group=self._group)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": node} for node in self._nodes]

    def shutdown(self) -> None:
        self.down = True

    def _group(self, bundles: list[dict[str, float]], strategy: str) -> None:
        self.asked = bundles
        raise ValueError("Bundles cannot be an empty dictionary\nor so")


def refusal(monkeypatch: pytest.MonkeyPatch, ray: FakeRay, hosts: int) -> str:
    """Why the launcher cannot begin; nothing is left of its try."""
    launcher = Ray()
    monkeypatch.setattr(launcher, "available", lambda: None)
    monkeypatch.setattr("harness.run.launchers.ray._joined", lambda: ray)
    listening = threading.active_count()
    with pytest.raises(CannotPlace) as refused:
        launcher.begin(LauncherOptions(), hosts)
    assert ray.down
    assert comes_true(lambda: threading.active_count() <= listening)
    return str(refused.value)


def test_a_node_without_processors_is_none_to_place_workers_on(monkeypatch: pytest.MonkeyPatch) -> None:
    head, node = {"memory": 1.0}, {"CPU": 4.0}
    assert "wants 2 nodes and the cluster has 1 with processors; --hosts 1" in refusal(
        monkeypatch, FakeRay(head, node), 2
    )
    assert "has 0 with processors" in refusal(monkeypatch, FakeRay({"CPU": 0.0}), 1)
    both = FakeRay(head, node, {"CPU": 2.0, "GPU": 1.0})
    refusal(monkeypatch, both, 2)
    assert both.asked == [{"CPU": 2.0}] * 2


def test_what_ray_refuses_is_the_reason_in_one_line_and_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(monkeypatch, FakeRay({"CPU": 4.0}), 1)
    assert said == "launcher 'ray': Ray refuses: Bundles cannot be an empty dictionary"


def test_an_installed_ray_without_a_cluster_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("harness.run.launchers.ray._runs_here", lambda: False)
    assert "no Ray cluster" in str(launchers()["ray"].available())
    assert "ray start --head" in str(launchers()["ray"].available())
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert launchers()["ray"].available() is None


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nobody_listens_is_refused_before_ray_is_asked(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = form.format(listening.getsockname()[1])
        _reach(address)
    with pytest.raises(CannotPlace, match=r"no Ray cluster at .*: Connection refused; start one with"):
        _reach(address)


@without_ray
@pytest.mark.slow
def test_without_a_cluster_trials_are_unsupported_with_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert "no Ray cluster" in str(reason_of_a_trial())
    assert "ray start --head" in str(reason_of_a_trial())


@pytest.fixture
def ray_head() -> Iterator[None]:
    """A cluster of this machine alone."""
    program = shutil.which("ray", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program is not None
    start = [program, "start", "--head", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
    # pytest's own folder is too deep: the name of a socket has 107 letters at most
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as place:
        subprocess.run([*start, f"--temp-dir={place}"], check=True, stdout=subprocess.DEVNULL)
        yield
        subprocess.run([program, "stop", "--force"], check=True, stdout=subprocess.DEVNULL)


@without_ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_head")
def test_two_workers_run_on_the_node_that_ray_gives(tmp_path: Path) -> None:
    done = run(
        "sweep",
        "--launcher=ray",
        "--strategy=multi_worker_mirrored",
        "--workers=2",
        "--replicas=1",
        "--hosts=1",
        *SMALL,
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    trials = only_run(tmp_path / "results").trials
    assert [(trial.status, trial.reason) for trial in trials] == [("ok", None)] * 2
