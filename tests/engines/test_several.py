"""One sweep of several engines: each in processes of its own, all in one ranking, taking turns."""

import html
import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.analysis.collectives import collective_groups
from harness.analysis.likeness import not_like_with_like
from harness.analysis.summary import summarise
from harness.cli import run as command_line
from harness.record.manifest import RunManifest
from harness.record.reading import Run, load_run
from harness.record.trial import Phases, TrialRecord
from harness.report.export import exporters
from harness.report.figures import efficiency_figure
from harness.report.notebook import SweepResult
from harness.report.page.report import render
from harness.report.tables.engines import differing_lines, engines_table, tells_not
from harness.report.tables.overlay import published
from harness.report.terminal.run import run_text
from harness.report.words.headline import unlike_words
from harness.run.kinds.sweep import SweepRun
from harness.run.progress import Quiet
from harness.run.runner import resume_as
from harness.spec.axes import ENGINE
from tests.cli.real import only_run
from tests.cli.real import run as harness
from tests.comparisons import as_run
from tests.engines.numpy_engine import flags
from tests.synthetic import failed, make_cell, make_run

ALIKE = {"initial_weights": "a", "labels": ["b"]}
BOTH = ("tests.engines.numpy_engine:NumpyEngine", "tests.engines.numpy_engine:NumpyAgain")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    asked = flags(engine=",".join(BOTH), strategy="none,threads", replicas="1,2", trials="2", results=str(results))
    assert command_line(["sweep", "--quiet", *asked]) == 0
    return only_run(results).path


@pytest.fixture(scope="module")
def run(swept: Path) -> Run:
    return load_run(swept)


def test_every_cell_says_which_engine_it_asks_for_and_every_trial_which_trained(run: Run) -> None:
    ran = {(trial.cell.engine, trial.executed.engine) for trial in run.trials}
    assert ran == {(BOTH[0], "numpy"), (BOTH[1], "numpy_again")}
    assert {trial.status for trial in run.trials} == {"ok"}


def test_versions_of_an_engine_in_the_harness_own_environment_are_on_record_too(run: Run) -> None:
    assert {f"engine.{name}.numpy" for name in BOTH} <= {*run.manifest.facts}


def test_cells_of_both_are_in_one_ranking_and_took_turns(run: Run) -> None:
    [work] = summarise(run.manifest, run.trials).workloads
    assert {cell.trials.cell.engine for cell in work.ranking} == set(BOTH)
    groups: dict[str, set[str]] = {}
    for trial in run.trials:
        groups.setdefault(trial.group, set()).add(trial.cell.engine)
    assert set(BOTH) in groups.values()


def test_each_engine_has_a_preloaded_process_of_its_own(run: Run) -> None:
    started: dict[str, set[int]] = {}
    for trial in run.trials:
        assert trial.zygote is not None
        started.setdefault(trial.cell.engine, set()).add(trial.zygote.number)
    assert set(started) == set(BOTH)
    assert not set.intersection(*started.values())


def test_a_run_of_several_is_gone_on_with_by_each_ones_own(swept: Path, tmp_path: Path) -> None:
    copy = tmp_path / swept.name
    copy.mkdir()
    for name in ("run.json", "trials.jsonl"):
        (copy / name).write_text((swept / name).read_text())
    manifest = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**manifest, "status": "interrupted"}))
    lines = (copy / "trials.jsonl").read_text().splitlines(keepends=True)
    (copy / "trials.jsonl").write_text("".join(lines[:-3]))
    resume_as(SweepRun, copy, Quiet())
    planned, again = load_run(swept).trials, load_run(copy).trials
    assert {(trial.block, trial.cell_id) for trial in again} == {(trial.block, trial.cell_id) for trial in planned}
    assert {trial.executed.engine for trial in again[len(lines) - 3 :]} == {"numpy", "numpy_again"}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Collectives of both engines, in three sizes."""
    results = tmp_path_factory.mktemp("sent")
    asked = {"work": "collective", "device": "core", "collective": "all_reduce,reduce_scatter", "trials": "2"}
    short = {"size": "8,4KiB,64KiB", "windows": "5", "window": "0.005", "results": str(results)}
    told = {"engine": ",".join(BOTH), **asked, **short}
    assert command_line(["sweep", "--quiet", *(f"--{key}={value}" for key, value in told.items())]) == 0
    return only_run(results)


def test_collectives_of_both_take_turns_and_have_a_curve_each_in_one_table(sent: Run) -> None:
    assert {trial.executed.engine for trial in sent.trials if trial.status == "ok"} == {"numpy", "numpy_again"}
    groups: dict[str, set[str]] = {}
    for trial in sent.trials:
        groups.setdefault(trial.group, set()).add(trial.cell.engine)
    assert set(BOTH) in groups.values()
    [reduced, _] = collective_groups(summarise(sent.manifest, sent.trials))
    assert {curve.name for curve in reduced.curves} == set(BOTH)
    assert [len(curve.figures) for curve in reduced.curves] == [3, 3]
    assert all(curve.line is not None for curve in reduced.curves)


def test_a_collective_that_an_engine_lacks_is_unsupported_with_its_reason(sent: Run) -> None:
    lacking = [trial for trial in sent.trials if trial.cell.subject == "reduce_scatter"]
    assert {(trial.status, trial.reason) for trial in lacking} == {("unsupported", "NumPy has no reduce-scatter")}


def test_what_a_call_is_stands_below_the_tables_and_on_the_page(sent: Run) -> None:
    summary = summarise(sent.manifest, sent.trials)
    told = "The time is that of one call " + ", ".join(f"of NumPy ({engine})" for engine in sorted(BOTH)) + "."
    assert told in " ".join(run_text(sent.manifest, sent.trials, summary, 200, False).split())
    assert told in html.unescape(render(sent.manifest, sent.trials, summary))


def by_two_engines(
    manifest: RunManifest, trials: Sequence[TrialRecord], unlike: Callable[[int], dict[str, str]]
) -> tuple[RunManifest, list[TrialRecord]]:
    """The run with each trial also by PyTorch, which does what `unlike` tells of the trial of that number."""

    def by_another(number: int, trial: TrialRecord) -> TrialRecord:
        cell = trial.cell.model_copy(update={"engine": "torch"})
        ran = trial.executed.model_copy(update={"engine": "torch", "unlike": unlike(number)})
        return trial.model_copy(update={"cell": cell, "cell_id": cell.cell_id, "executed": ran})

    others = [by_another(number, trial) for number, trial in enumerate(trials)]
    cells = {trial.cell_id: trial.cell for trial in others}
    return manifest.model_copy(update={"cells": [*manifest.cells, *cells.values()]}), [*trials, *others]


def test_what_an_engine_does_otherwise_is_told_beside_the_ranking_of_several_and_of_one_it_is_not() -> None:
    manifest, trials = make_run(faults=False)
    alone = summarise(manifest, trials).workloads[0]
    assert engines_table(alone).rows == ()
    assert differing_lines(alone) == []
    both = by_two_engines(manifest, trials, lambda _: {"compiler": "none", "initial_weights": "others"})
    [work] = summarise(*both).workloads
    table = engines_table(work)
    assert {row[:3] for row in table.rows} == {(ENGINE, "–", "–"), ("torch", "none", "others")}
    assert table.columns[-1].name == "fixed cost of a trial"
    assert all(re.match(r"1 device [\d.]+ m?s, 2 devices [\d.]+ m?s", row[-1]) for row in table.rows), table.rows
    assert differing_lines(work) == ["torch: compiler none; initial weights others."]


def test_a_fixed_cost_is_of_processes_or_of_devices_and_leaves_out_the_trial_that_compiles() -> None:
    manifest, trials = make_run(faults=False)

    def placed(trial: TrialRecord) -> TrialRecord:
        """The cell of two replicas has its cost in several trials, of which the first compiles."""
        compiled = 60.0 if trial.block == 0 else 1.0
        return trial.model_copy(update={"phases": Phases(build_s=compiled)})

    def over_processes(trial: TrialRecord) -> TrialRecord:
        cell = trial.cell.model_copy(update={"workers": trial.cell.replicas, "replicas": 1})
        found = trial.model_copy(update={"cell": cell, "cell_id": cell.cell_id, "phases": Phases(build_s=2.0)})
        return found if trial.cell.get("engine") == "torch" else trial

    manifest, both = by_two_engines(manifest, list(map(placed, trials)), lambda _: {})
    ran = list(map(over_processes, both))
    cells = {trial.cell_id: trial.cell for trial in ran}
    [work] = summarise(manifest.model_copy(update={"cells": list(cells.values())}), ran).workloads
    costs = {row[0]: row[-1].split(", ")[:2] for row in engines_table(work).rows}
    assert costs[ENGINE] == ["1 device 1.00 s", "2 devices 1.00 s"]
    assert costs["torch"] == ["1 device 2.00 s", "2 processes 2.00 s"]


@pytest.mark.parametrize(
    ("of_torch", "said", "differs"),
    [
        ({}, ["began with the same weights", "had the same batches in the same order, where"], ""),
        (
            {"initial_weights": "other"},
            ["did not all begin with the same weights", "had the same batches"],
            "initialisation",
        ),
        (
            {"labels": ["other"]},
            ["began with the same weights", "did not all have the same batches in the same order"],
            "order of data",
        ),
        ({"initial_weights": "", "labels": []}, [], ""),
    ],
)
def test_weights_and_batches_are_said_to_be_the_same_or_not_where_the_records_tell(
    of_torch: dict[str, Any], said: list[str], differs: str
) -> None:
    both = by_two_engines(*make_run(faults=False), lambda _: {})
    told = [
        trial.model_copy(update={"executed": trial.executed.model_copy(update={**ALIKE, **more})})
        for trial in both[1]
        for more in [of_torch if trial.cell.get("engine") == "torch" else {}]
    ]
    [work] = summarise(both[0], told).workloads
    sentences = [f"By their records {ENGINE} and torch {words}" for words in said]
    assert all(sentence in engines_table(work).note for sentence in sentences)
    assert engines_table(work).note.count("By their records") == len(said)
    assert all(sentence in differing_lines(work)[-1] for sentence in sentences)
    assert unlike_words(work) == (f" Not like with like: {differs} differs." if differs else "")


@pytest.mark.parametrize(
    ("of_torch", "differs"),
    [
        ({"batch_normalisation": "batch normalisation is over the global batch"}, "batch normalisation differs"),
        (
            {"batch_normalisation": "it is over the global batch", "compiler": "XLA"},
            "compiler and batch normalisation differ",
        ),
        ({"batch_normalisation": "the moving variance is of the unbiased estimate"}, ""),
    ],
)
def test_batch_normalisation_over_all_devices_and_over_a_replicas_own_share_are_not_like_with_like(
    of_torch: dict[str, str], differs: str
) -> None:
    manifest, trials = make_run(faults=False)
    several = [trial.cell.replicas_in_sync > 1 for trial in trials]
    both = by_two_engines(manifest, trials, lambda number: of_torch if several[number] else {})
    [work] = summarise(*both).workloads
    assert unlike_words(work) == (f" Not like with like: {differs}." if differs else "")
    alone = by_two_engines(manifest, trials, lambda number: {} if several[number] else of_torch)
    assert "normalisation" not in unlike_words(summarise(*alone).workloads[0])


def test_what_the_ranking_does_not_tell_depends_on_the_devices_that_it_is_of() -> None:
    manifest, trials = make_run(faults=False)
    [work] = summarise(manifest, trials).workloads
    assert "on another model or on accelerators, nor" in tells_not(work)
    on_cards = [trial.model_copy(update={"cell": trial.cell.model_copy(update={"device": "gpu"})}) for trial in trials]
    on_cards = [trial.model_copy(update={"cell_id": trial.cell.cell_id}) for trial in on_cards]
    cells = list({trial.cell_id: trial.cell for trial in on_cards}.values())
    [work] = summarise(manifest.model_copy(update={"cells": cells}), on_cards).workloads
    assert "on another model or on other devices, nor" in tells_not(work)


def test_an_engine_of_which_nothing_was_measured_has_no_row() -> None:
    manifest, trials = by_two_engines(*make_run(faults=False), lambda _: {"compiler": "none"})
    lacking = [
        failed(t, "unsupported", "PyTorch is not here") if t.cell.get("engine") == "torch" else t for t in trials
    ]
    [alone] = summarise(manifest, lacking).workloads
    assert engines_table(alone).rows == ()
    one = next(t.cell_id for t in trials if t.cell.get("engine") == "torch")
    some = [t if t.cell_id == one else other for t, other in zip(trials, lacking, strict=True)]
    assert len(engines_table(summarise(manifest, some).workloads[0]).rows) == 2


def test_what_its_cells_do_by_turns_is_told_once() -> None:
    manifest, trials = make_run(faults=False)
    ways = dict(zip({trial.cell_id for trial in trials}, itertools.cycle("ab"), strict=False))
    both = by_two_engines(manifest, trials, lambda number: {"packs": ways[trials[number].cell_id]})
    [line] = differing_lines(summarise(*both).workloads[0])
    assert line in {"torch: packs a; b.", "torch: packs b; a."}


def test_what_is_not_the_same_of_every_model_is_told_with_its_model_and_no_word_twice() -> None:
    cells = [make_cell(model=model) for model in ("mlp", "resnet20")]
    manifest, trials = make_run(cells, faults=False)
    over = "batch normalisation is over the global batch"

    def of(number: int) -> dict[str, str]:
        return {"layout": "first"} if trials[number].cell.subject == "mlp" else {"batch_normalisation": over}

    both = by_two_engines(manifest, trials, of)
    summary = summarise(*both)
    said = " ".join(run_text(*both, summary, 200, False).partition("What differs between the engines")[2].split())
    labels = {work.workload.get("model"): work.workload.label for work in summary.workloads}
    assert said.startswith(f"{labels['mlp']}: torch: layout first. {labels['resnet20']}: torch: {over}.")
    alike = by_two_engines(manifest, trials, lambda _: {"layout": "first"})
    said = " ".join(run_text(*alike, summarise(*alike), 200, False).split())
    assert "What differs between the engines torch: layout first. The ranking" in said


def test_what_differs_and_what_it_does_not_tell_are_seen_at_once_where_several_engines_ran() -> None:
    manifest, trials = make_run(faults=False)
    both = by_two_engines(manifest, trials, lambda _: {"compiler": "none"})
    summary = summarise(*both)
    words = tells_not(summary.workloads[0])
    opened = "<details open>\n<summary>All numbers: What differs between the engines"
    page = render(*both, summary)
    assert opened in page
    assert words in html.unescape(page.partition(opened)[2].partition("</details>")[0])
    assert words in " ".join(run_text(*both, summary, 200, False).split())
    run = as_run(*both, "of-two")
    for text in (exporters()["markdown"].export(run, None) or "", SweepResult(run)._repr_html_()):
        assert text.index("fixed cost of a trial") < text.index(words)
    one = summarise(manifest, trials)
    assert words not in " ".join(run_text(manifest, trials, one, 200, False).split())
    assert "<details open>" not in render(manifest, trials, one)


@pytest.mark.parametrize("alone", [False, True])
def test_no_published_series_lies_over_the_curves_of_several_engines_or_another_unless_it_is_asked_for(
    alone: bool,
) -> None:
    manifest, trials = by_two_engines(*make_run(faults=False), lambda _: {})
    kept = [trial for trial in trials if not alone or trial.cell.get("engine") == "torch"]
    cells = list({trial.cell_id: trial.cell for trial in kept}.values())
    [work] = summarise(manifest.model_copy(update={"cells": cells}), kept).workloads
    picture = efficiency_figure(work, "fig")
    assert picture is not None
    assert picture.overlay == ()
    assert 'class="overlay"' not in picture.svg
    assert not any(row.get("published") for row in picture.data)
    asked = efficiency_figure(work, "fig", published()[:1])
    assert asked is not None
    assert len(asked.overlay) == 1


@pytest.mark.slow
def test_tensorflow_pytorch_and_jax_are_ranked_in_one_sweep(torch_python: str, jax_python: str, tmp_path: Path) -> None:
    assert torch_python
    assert jax_python
    asked = {"engine": "tensorflow,torch,jax", "strategy": "none,mirrored,data_parallel", "loop": "custom,ddp,jit"}
    common = {"model": "mlp", "data": "synthetic", "batch_size": "8", "replicas": "1", "workers": "1,2"}
    short = {"trials": "1", "windows": "5", "window": "0.01", "max_warmup": "0", "intra_op_threads": "1"}
    told = [f"--{key.replace('_', '-')}={value}" for key, value in {**asked, **common, **short}.items()]
    done = harness("sweep", *told, folder=tmp_path, others=True)
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path / "results")
    assert {trial.status for trial in run.trials} == {"ok"}
    assert {trial.executed.engine for trial in run.trials} == {"", "torch", "jax"}
    assert len({trial.executed.initial_weights for trial in run.trials} - {""}) == 1
    fed = {(trial.cell.workers, trial.cell.work.amount, *trial.executed.labels) for trial in run.trials}
    assert sorted(len(labels) for _, _, *labels in fed) == [1, 2], "the same for all engines, one of each process"
    assert {"engine.torch.torch", "engine.jax.jax"} <= set(run.manifest.facts)


@pytest.mark.parametrize(
    ("layouts", "data", "differs"),
    [
        ([("tensorflow", 1, 64), ("torch", 2, 64)], "digits", True),
        ([("tensorflow", 1, 64), ("torch", 2, 64)], "synthetic", False),
        ([("tensorflow", 1, 64), ("tensorflow", 2, 64), ("torch", 1, 128)], "digits", False),
        ([("tensorflow", 1, 64), ("tensorflow", 2, 64)], "digits", False),
    ],
)
def test_engines_without_a_number_of_processes_in_common_have_other_orders_of_data(
    layouts: list[tuple[str, int, int]], data: str, differs: bool
) -> None:
    def one(engine: str, workers: int, amount: int) -> Any:
        of = SimpleNamespace(
            get=lambda _: engine,
            data_set=data,
            shape=SimpleNamespace(workers=workers),
            work=SimpleNamespace(amount=amount),
            replicas_in_sync=1,
        )
        executed = SimpleNamespace(unlike={}, arithmetic="float32", initial_weights="w", labels=["l"], engine="")
        return SimpleNamespace(cell=of, executed=executed)

    said = not_like_with_like([one(*layout) for layout in layouts])
    assert said == ("Not like with like: order of data differs." if differs else "")
