"""`sweep --trace`: which trials are asked for a trace, when, and who is told of it."""

from pathlib import Path

from harness.analysis.summary import summarise
from harness.protocol.messages import Outcome, Request
from harness.record import TrialRecord, load_run
from harness.record.trial import TraceRecord
from harness.report.page.report import render
from harness.report.words.traces import trace_lines
from harness.run.kinds.sweep import SweepRun
from tests.run.fakes import WELL, Actor, Bench, Play
from tests.run.swept import BASE, CELLS, TWO


def well_traced(request: Request) -> Outcome:
    """What a good trial says; a traced one what became of the trace too."""
    if request.trace is None:
        return WELL
    return WELL.model_copy(update={"trace": TraceRecord(path=request.trace.path, steps=5, bytes=70_000)})


def plays(request: Request) -> Play:
    return Play(outcome=well_traced(request))


def asked(bench: Bench, run: SweepRun) -> list[tuple[str, str]]:
    """(cell, path) of every trial that was asked for a trace."""
    trials = [request for request in bench.zygote.spawned if request.task == "trial" and request.trace is not None]
    assert {Path(request.trace.run) for request in trials if request.trace} <= {run.store.path.absolute()}
    return [(request.cell.cell_id, request.trace.path) for request in trials if request.trace]


def test_one_trial_of_each_cell_is_traced_into_the_runs_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, plays, sweep={"trials": 3, "trace": True})
    run = bench.start()
    paths = asked(bench, run)
    assert sorted(cell for cell, _ in paths) == sorted(item.cell_id for item in CELLS)
    assert all(path == f"traces/{cell}-block-0-attempt-1" for cell, path in paths)
    recorded = [record for record in load_run(bench.path).trials if record.trace is not None]
    assert [record.block for record in recorded] == [0, 0, 0]


def test_without_the_key_nothing_is_traced(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, plays, sweep={"trials": 2})
    assert asked(bench, bench.start()) == []


def test_a_trial_that_ends_before_its_trace_leaves_it_to_the_next_one(tmp_path: Path) -> None:
    def crash_once(actor: Actor) -> None:
        if actor.attempt == 1:
            actor.end(-11)

    def once(request: Request) -> Play:
        return Play(2, crash_once) if request.cell == TWO else plays(request)

    bench = Bench(tmp_path, CELLS, once, sweep={"trials": 2, "trace": True})
    paths = asked(bench, bench.start())
    assert [path.partition("-")[2] for cell, path in paths if cell == BASE.cell_id] == ["block-0-attempt-1"]
    mine = [path.partition("-")[2] for cell, path in paths if cell == TWO.cell_id]
    assert mine == ["block-0-attempt-1", "block-1-attempt-1"]


def test_a_traced_trial_takes_its_windows_as_the_others_do(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, plays, sweep={"trials": 1, "trace": True})
    run = bench.start()
    told = [what for _, what in bench.zygote.diary if what.startswith(("window", "done"))]
    assert len({len(record.windows.seconds) for record in run.trials if record.windows}) == 1
    assert told[-1].startswith("done"), "the last window is over before any trial is told to finish"


def traced(records: list[TrialRecord]) -> list[TrialRecord]:
    """One with a trace, and one whose profiler could not run."""
    fine = TraceRecord(path=f"traces/{records[0].cell_id}-block-0-attempt-1", steps=5, bytes=70_000)
    failed = TraceRecord(steps=3, reason="the profiler cannot run: AlreadyExistsError: <busy>")
    return [
        records[0].model_copy(update={"trace": fine}),
        records[1].model_copy(update={"trace": failed}),
        *records[2:],
    ]


def test_the_report_links_a_trace_and_says_why_there_is_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, plays, sweep={"trials": 2})
    bench.start()
    run = load_run(bench.path)
    trials = traced(run.trials)
    page = render(run.manifest, trials, summarise(run.manifest, trials))
    assert f'href="../results/{run.manifest.run_id}/{trials[0].trace.path}"' in page  # type: ignore[union-attr]
    assert "no trace: the profiler cannot run: AlreadyExistsError: &lt;busy&gt;" in page
    lines = trace_lines(trials, Path("results/x"))
    assert lines[-1] == "look at them: tensorboard --logdir results/x/traces"
    assert len(lines) == 3
    assert "Traces" not in render(run.manifest, run.trials, summarise(run.manifest, run.trials)).split("<nav")[1]
    assert trace_lines(run.trials, Path("results/x")) == []
