"""Trials on a real Slurm: two nodes in network namespaces, started and stopped here."""

import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.engines.torch import ENGINE as TORCH
from harness.protocol.messages import Request
from harness.record import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.launchers import launchers
from harness.run.launchers import slurm as slurm_launcher
from harness.run.launchers.agents.watchdog import WatchdogAnswer
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended, LiveTrial, Slot
from tests.cli.real import ROOT, SMALL, only_run, without_overruled
from tests.engines.conftest import python_of
from tests.record.examples import cell
from tests.run.launchers.agents.conftest import comes_true, without_tensorflow
from tests.run.launchers.slurm_cluster import NODES, SlurmCluster, lacking, slurm_cluster
from tests.run.process.zygotes import HANGS

GONE_WITHIN_S = 60.0
CPUS = 2
"""Of each node."""
SWEEP = ["-m", "harness", "sweep", "--launcher=slurm", "--replicas=1", *SMALL]
PAIR = ["--strategy=multi_worker_mirrored", "--workers=2"]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    if (reason := lacking()) is not None:
        pytest.skip(reason)
    with slurm_cluster(CPUS) as cluster:
        yield cluster


@pytest.fixture
def without(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter for tests that are about Slurm: its agents and trials are real processes without TensorFlow."""
    return without_tensorflow(tmp_path_factory.mktemp("interpreter"))


def sweep(
    slurm: SlurmCluster,
    folder: Path,
    *arguments: str,
    before: tuple[str, ...] = (),
    python: str = sys.executable,
    code: int = 0,
) -> list[TrialRecord]:
    """The records of a sweep on the head, or behind a command such as salloc; nothing is left of it afterwards."""
    done = subprocess.run(
        slurm.command(*before, python, *without_overruled([*SWEEP, *arguments])),
        cwd=folder,
        env={**slurm.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert nothing_left(slurm)
    assert [path.name for path in folder.iterdir()] == ["results"]
    return list(only_run(folder / "results").trials)


def nothing_left(slurm: SlurmCluster) -> bool:
    """Whether Slurm has no job and its nodes run nothing, in time."""
    return comes_true(lambda: not slurm.jobs() and not slurm.processes(), GONE_WITHIN_S)


@pytest.mark.slurm
@pytest.mark.slow
def test_a_job_of_its_own_runs_the_cluster_and_its_base_case_on_the_nodes(slurm: SlurmCluster, tmp_path: Path) -> None:
    trials = {trial.cell.strategy: trial for trial in sweep(slurm, tmp_path, *PAIR)}
    assert [(trial.status, trial.reason) for trial in trials.values()] == [("ok", None)] * 2
    cluster = trials["multi_worker_mirrored"].cluster
    assert cluster is not None
    nodes, ports = zip(*(member.address.split(":") for member in cluster.members), strict=True)
    assert nodes == ("node1", "node2")
    assert ports[0] == ports[1]  # the resolver counts from one base


@pytest.mark.engine
@pytest.mark.slurm
@pytest.mark.slow
def test_another_engines_processes_are_on_the_nodes_too(slurm: SlurmCluster, without: str, tmp_path: Path) -> None:
    python = python_of(TORCH)
    arguments = ["--engine=torch", f"--engine-python=torch={python}", "--strategy=data_parallel", "--workers=2"]
    trials = {trial.cell.strategy: trial for trial in sweep(slurm, tmp_path, *arguments, python=without)}
    assert [(trial.status, trial.reason) for trial in trials.values()] == [("ok", None)] * 2
    cluster = trials["data_parallel"].cluster
    assert cluster is not None
    assert [member.address.split(":")[0] for member in cluster.members] == ["node1", "node2"]


@pytest.mark.slurm
@pytest.mark.slow
def test_inside_an_allocation_srun_places_servers_and_workers_on_as_many_hosts_as_there_are(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    arguments = ["--strategy=parameter_server", "--workers=2", "--ps=1", "--hosts=2"]
    trials = {t.cell.strategy: t for t in sweep(slurm, tmp_path, *arguments, before=("salloc", "--nodes=2"))}
    served = trials["parameter_server"]
    assert served.status == "unproved", served.reason  # nobody knows what updates that race compute
    assert served.cluster is not None
    assert {member.address.split(":")[0] for member in served.cluster.members} == {"node1", "node2"}


@pytest.mark.slurm
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "before", "reason"),
    [
        (["--slurm-args=--partition=nope"], (), "invalid partition specified: nope"),
        (["--workers=4", "--join-timeout=3"], (), "4 missing; job"),
        (["--workers=4"], ("salloc", "--nodes=2"), "the allocation has 2 nodes and the sweep wants 4; --hosts 2"),
    ],
)
def test_a_slurm_that_refuses_is_a_record_with_its_reason(
    slurm: SlurmCluster, without: str, tmp_path: Path, arguments: list[str], before: tuple[str, ...], reason: str
) -> None:
    trials = sweep(slurm, tmp_path, *PAIR, *arguments, before=before, python=without, code=1)
    refused = [trial for trial in trials if trial.cell.workers > 1]
    assert {trial.status for trial in trials} == {"unsupported"}
    assert reason in str(refused[0].reason)


def started(
    slurm: SlurmCluster, folder: Path, python: str, *arguments: str, before: tuple[str, ...] = (), path: str = ""
) -> "subprocess.Popen[str]":
    """A sweep whose trials hang until they are ended."""
    environment = {**slurm.environment, "PYTHONPATH": str(ROOT)} | ({"PATH": path} if path else {})
    return subprocess.Popen(
        slurm.command(*before, python, *without_overruled([*SWEEP, *PAIR, f"--seed={HANGS}", *arguments])),
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def trial_is_under_way(slurm: SlurmCluster) -> bool:
    """Whether a node runs one, which hangs."""
    for pid in slurm.processes():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "hangs":
                return True
    return False


@pytest.mark.slurm
@pytest.mark.slow
@pytest.mark.parametrize("before", [(), ("salloc", "--nodes=2")])
def test_nothing_is_left_when_the_sweep_is_killed(
    slurm: SlurmCluster, without: str, tmp_path: Path, before: tuple[str, ...]
) -> None:
    process = started(slurm, tmp_path, without, before=before)
    assert comes_true(lambda: trial_is_under_way(slurm), 150)
    [ours] = [child for child in family(process.pid) if "sweep" in child.cmdline()[1:3]]
    ours.send_signal(signal.SIGKILL)
    assert nothing_left(slurm)
    process.wait(GONE_WITHIN_S)
    assert comes_true(lambda: not list(tmp_path.glob(".harness-*")), GONE_WITHIN_S)


@pytest.mark.slurm
@pytest.mark.slow
def test_a_sweep_that_is_killed_while_its_job_is_submitted_leaves_no_job(
    slurm: SlurmCluster, without: str, tmp_path: Path
) -> None:
    programs, said = tmp_path / "programs", tmp_path / "said"
    programs.mkdir()
    real = shutil.which("sbatch", path=slurm.environment["PATH"])
    slow = programs / "sbatch"
    slow.write_text(f'#!/bin/sh\necho asked > {said}\nsleep 2\n{real} "$@"\necho done > {said}\n')
    slow.chmod(0o755)
    process = started(slurm, tmp_path, without, path=f"{programs}:{slurm.environment['PATH']}")
    assert comes_true(said.exists, 150)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert comes_true(lambda: said.read_text() == "done\n")
    assert nothing_left(slurm)


def family(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


@pytest.mark.slurm
@pytest.mark.slow
def test_a_job_of_its_own_has_every_processor_of_its_nodes_and_ends_in_records_that_say_so_if_somebody_cancels_it(
    slurm: SlurmCluster, without: str, tmp_path: Path
) -> None:
    process = started(slurm, tmp_path, without, "--trials=3")
    assert comes_true(lambda: trial_is_under_way(slurm), 150)
    [job] = [line.split()[0] for line in slurm.jobs()]
    shown = slurm.run("squeue", "--noheader", "--format=%C %D").stdout.split()
    assert shown == [str(len(NODES) * CPUS), str(len(NODES))]
    slurm.run("scancel", job)
    assert process.wait(120) == 1, "nothing was measured"
    trials = only_run(tmp_path / "results").trials
    assert {trial.status for trial in trials} <= {"crashed", "unsupported"}
    # Slurm ends every process of the job at once, so which end is told of first is chance
    assert any("is gone" in str(trial.reason) or "SIGTERM" in str(trial.reason) for trial in trials)
    assert any(f"job {job} has ended" in str(trial.reason) for trial in trials)
    assert nothing_left(slurm)


def test_where_there_is_no_slurm_trials_are_unsupported_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    request = Request(
        cell=cell(strategy="multi_worker_mirrored", workers=2),
        seed=1,
        data_dir="",
        window_s=0.02,
        intra_op_threads=1,
        inter_op_threads=4,
        launcher="slurm",
    )
    with contextlib.closing(Zygote()) as zygote:
        trial = LiveTrial(request.cell, Slot("r", 0, "g", 0, 1, "none"), zygote, request, 60, Interrupts())
        with contextlib.suppress(Ended):
            trial.start()
            trial.set_up()
    assert trial.status == "unsupported"
    assert "no program srun, sbatch, scancel, squeue, sinfo on the PATH" in str(trial.reason)
    assert launchers()["slurm"].available() in str(trial.reason)


def test_a_folder_with_a_percent_sign_is_no_pattern_and_a_site_that_passes_no_variables_on_is_overruled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "50%j of it"
    folder.mkdir()
    monkeypatch.chdir(folder)
    submitted: dict[str, Any] = {}

    class Recorded:
        def __init__(self, **given: Any) -> None:
            submitted.update(given)

        def first_answer(self) -> WatchdogAnswer:
            return WatchdogAnswer(0, "123")

    monkeypatch.setattr(slurm_launcher, "Watchdog", Recorded)
    job = slurm_launcher._job(2, ["python"], ["--export=NONE"], {})
    slurm_launcher._step(2, ["python"], [], {})
    assert job.output is not None
    assert (job.output.parent, submitted["remove"]) == (folder, [job.output])
    assert submitted["first"][-1] == f"--output={tmp_path}/50%%j of it/{job.output.name}"
    exports = [word for word in submitted["first"] if word.startswith("--export")]
    assert exports == ["--export=ALL", "--export=NONE"], "what the person gives comes last"
    assert " --export=ALL python\n" in submitted["text"]
    assert "--export=ALL" in submitted["run"]
