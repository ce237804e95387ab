"""`sweep --trace` with real TensorFlow: profiles that TensorBoard's plugin can read, beside untouched windows."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.engines.tensorflow import trace
from harness.protocol.messages import TraceRequest
from harness.record import Run
from harness.record.trial import TraceRecord
from tests.cli.real import ON_ALL_CORES, SMALL, only_run, run

pytestmark = pytest.mark.slow

READ = """
import importlib.util, json, runpy, sys
[tensorflow] = importlib.util.find_spec("tensorflow").submodule_search_locations  # which imports none of it
XSpace = runpy.run_path(tensorflow + "/tsl/profiler/protobuf/xplane_pb2.py")["XSpace"]
for name in sys.argv[1:]:
    space = XSpace.FromString(open(name, "rb").read())
    events = sum(len(line.events) for plane in space.planes for line in plane.lines)
    print(json.dumps([events, [plane.name for plane in space.planes], list(space.hostnames)]))
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("traced")
    sweep = [*SMALL, ON_ALL_CORES, "--strategy=none,mirrored", "--replicas=2", "--trials=2", "--trace"]
    done = run("sweep", *sweep, folder=folder)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


def test_one_trial_of_each_cell_has_a_trace_beside_its_record(traced: Run) -> None:
    assert {trial.status for trial in traced.trials} == {"ok"}
    assert len(traced.trials) == 4
    with_trace = [trial for trial in traced.trials if trial.trace is not None]
    assert sorted(trial.cell.strategy for trial in with_trace) == ["mirrored", "none"]
    for trial in with_trace:
        assert trial.trace is not None
        assert trial.trace.path is not None, trial.trace.reason
        files = list((traced.path / trial.trace.path).rglob("*"))
        [file] = [file for file in files if file.is_file()]
        assert file.parts[-4:-2] == ("plugins", "profile"), "where TensorBoard looks for it"
        assert file.stat().st_size == trial.trace.bytes > 0


def test_the_windows_of_a_traced_trial_are_those_of_the_others(traced: Run) -> None:
    counts = {len(trial.windows.seconds) for trial in traced.trials if trial.windows}
    assert counts == {5}
    for trial in traced.trials:
        assert trial.checks.updates_applied == trial.checks.updates_scheduled
        assert trial.windows is not None
        steps = trial.windows.steps_per_window * len(trial.windows.seconds)
        assert trial.checks.updates_scheduled is not None
        assert trial.checks.updates_scheduled >= steps + (trial.trace.steps if trial.trace else 0)


def test_the_trace_parses_shows_the_steps_ops_and_names_no_machine(traced: Run) -> None:
    files = sorted(map(str, traced.path.rglob("*.xplane.pb")))
    done = subprocess.run([sys.executable, "-c", READ, *files], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 2
    for events, planes, hosts in found:
        assert events > 100
        assert "/host:CPU" in planes
        assert hosts == ["trial"]


def test_show_and_the_report_lead_to_the_traces(traced: Run, tmp_path: Path) -> None:
    shown = run("show", str(traced.path), folder=tmp_path)
    assert shown.stdout.count("trace of ") == 2
    assert f"tensorboard --logdir {traced.path}/traces" in shown.stdout
    done = run("report", str(traced.path), "--output", "reports/page.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reports" / "page.html").read_text(encoding="utf-8")
    for trial in traced.trials:
        if trial.trace is not None and trial.trace.path is not None:
            [link] = [
                part.partition('"')[0] for part in page.split('href="') if trial.trace.path in part.partition('"')[0]
            ]
            assert (tmp_path / "reports" / link).resolve() == (traced.path / trial.trace.path).resolve()


@pytest.fixture
def traced_here(tf: Any, tmp_path: Path) -> Callable[[str], TraceRecord]:
    """Traces a step in this process; what became of it."""

    def traced(path: str) -> TraceRecord:
        tracer = trace.StepTracer(TraceRequest(run=str(tmp_path), path=path), leads=True, optimizer="adam")
        step = tf.function(lambda x: tf.reduce_sum(x @ x))
        step(tf.ones((10, 10)))
        assert tracer.begin(3) == 3
        step(tf.ones((10, 10))).numpy()
        tracer.end()
        assert tracer.record is not None
        return tracer.record

    return traced


def test_a_profiler_that_cannot_run_is_a_reason_and_no_lost_trial(
    tf: Any, traced_here: Callable[[str], TraceRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tf.profiler.experimental.start(str(tmp_path / "other"))
    try:
        busy = traced_here("traces/busy")
    finally:
        tf.profiler.experimental.stop(save=False)
    assert busy.path is None
    assert "the profiler cannot run: AlreadyExistsError" in (busy.reason or "")

    with monkeypatch.context() as smaller:
        smaller.setattr(trace, "MOST_BYTES", 10)
        large = traced_here("traces/large")
    assert large.path is None
    assert "more than 10" in (large.reason or "")
    assert not (tmp_path / "traces" / "large").exists()
    assert large.parts is not None, "it was read all the same"
    assert large.parts["compute"] > 0

    (tmp_path / "file").write_text("in the way")
    blocked = traced_here("file/x")
    assert blocked.path is None
    assert "NotADirectoryError" in (blocked.reason or "")
    assert traced_here("traces/fine").path == "traces/fine"


def test_an_ab_comparison_takes_no_traces(tmp_path: Path) -> None:
    done = run("ab", "--trace", folder=tmp_path)
    assert done.returncode == 2
