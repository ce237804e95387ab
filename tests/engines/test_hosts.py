"""Engines beside TensorFlow on hosts that joined a run, which preload each of them once it is asked for."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.real import ROOT
from tests.engines.sweeps import must_have_passed_the_whole_gate, swept
from tests.run.launchers.agents.conftest import without_tensorflow

pytestmark = pytest.mark.slow
TOKEN = "the token of engines' hosts"
ASKED = {
    "launcher": "attach",
    "strategy": ["none", "data_parallel", "multi_process"],
    "workers": [1, 2],
    "replicas": [1],
    "model": ["mlp"],
    "data": ["digits"],
    "batch_size": [8],
    "trials": 1,
    "windows": 5,
    "max_warmup": 0,
    "window": 0.005,
}


def test_two_hosts_train_together_with_each_engine(
    torch_python: str, jax_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    pythons = f"torch={torch_python},jax={jax_python}"
    agent = [
        without_tensorflow(tmp_path),
        "-m",
        "harness",
        "worker",
        "--connect",
        address,
        f"--engine-python={pythons}",
    ]
    hosts = [subprocess.Popen(agent, cwd=ROOT, env=dict(os.environ)) for _ in range(2)]
    try:
        engines = {"engine": ["torch", "jax"], "engine_python": pythons}
        run = swept(
            {**ASKED, **engines, "listen": address},
            tmp_path,
            lambda cell: cell.workers == 2 or (cell.strategy, cell.intra_op_threads) == ("none", 0),
        )
    finally:
        for host in hosts:
            host.kill()
            host.wait()
    for trial in run.trials:
        must_have_passed_the_whole_gate(trial)
        assert trial.hosts == (socket.gethostname(),)
    several = {trial.cell.engine: trial for trial in run.trials if trial.cell.workers == 2}
    assert set(several) == {"torch", "jax"}
    for trial in several.values():
        assert trial.cluster is not None
        assert (trial.cluster.launcher, len(trial.cluster.members)) == ("attach", 2)
