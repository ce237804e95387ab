"""Trials on a Ray cluster, where ray is installed; the reason where it is not, or where no cluster answers."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run.interrupts import Interrupts
from harness.run.launchers import launchers
from harness.run.live import Ended, LiveTrial, Place
from harness.run.zygote import Zygote
from harness.trial.protocol import Request
from tests.cli.real import SMALL, only_run, run
from tests.record.examples import cell

INSTALLED = importlib.util.find_spec("ray") is not None
without_ray = pytest.mark.skipif(not INSTALLED, reason="ray is not installed")


def reason_of_a_trial() -> str | None:
    """Why a trial could not be placed."""
    request = Request(
        cell=cell(strategy="multi_worker_mirrored", workers=2), seed=1, data_dir="", window_s=0.02,
        intra_op_threads=1, inter_op_threads=4, launcher="ray",
    )  # fmt: skip
    with contextlib.closing(Zygote()) as zygote:
        trial = LiveTrial(request.cell, Place("r", 0, "g", 0, 1, "none"), zygote, request, 60, Interrupts())
        with contextlib.suppress(Ended):
            trial.start()
            trial.set_up()
    assert trial.status == "unsupported"
    return trial.reason


def test_without_ray_trials_are_unsupported_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install 'ray" in str(launchers()["ray"].available())
    assert "ray is not installed" in str(reason_of_a_trial())


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
def ray_head(tmp_path: Path) -> Iterator[None]:
    """A cluster of this machine alone."""
    program = shutil.which("ray", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program is not None
    start = [program, "start", "--head", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
    subprocess.run([*start, f"--temp-dir={tmp_path}"], check=True, stdout=subprocess.DEVNULL)
    yield
    subprocess.run([program, "stop", "--force"], check=True, stdout=subprocess.DEVNULL)


@without_ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_head")
def test_two_workers_run_on_the_node_that_ray_gives(tmp_path: Path) -> None:
    done = run(
        "sweep", "--launcher=ray", "--strategy=multi_worker_mirrored", "--workers=2", "--replicas=1", "--hosts=1",
        *SMALL, folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trials = only_run(tmp_path / "results").trials
    assert [(trial.status, trial.reason) for trial in trials] == [("ok", None)] * 2
