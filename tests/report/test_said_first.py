"""What stands before all else: what not to use, what nothing is known of, and the machine and work that it is about."""

import re
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import summarise
from harness.record.manifest import RunManifest
from harness.record.reading import load_run
from harness.report.comparison import Surface
from harness.report.kinds import PageRequest, presentation_of
from harness.report.page.report import render
from harness.report.terminal.run import run_text
from harness.report.words.answer import answer_lines, answers
from harness.report.words.brief import brief_lines
from harness.report.words.text import sentence
from tests.report.export.runs import reference
from tests.synthetic import make_cell, make_run

ROOT = Path(__file__).parents[2]
ONE = [make_cell("none", device="gpu"), make_cell("one_device", device="gpu")]


def loaded(manifest: RunManifest, load: float) -> RunManifest:
    facts = {**manifest.facts, "load.1min": load, "cpu.usable_cores": 2}
    return manifest.model_copy(update={"machine": manifest.machine.model_copy(update={"facts": facts})})


def page(manifest: RunManifest, trials: Any) -> str:
    return render(manifest, trials, summarise(manifest, trials))


def test_what_computes_the_wrong_thing_is_the_first_bullet_and_is_said_whatever_the_batch() -> None:
    run = reference()
    summary = summarise(run.manifest, run.trials)
    wrong = (
        "Do not use mirrored ×3 hierarchical_copy: it gives a wrong result (the sum over replicas is not the exact "
        "sum: the value of replica 2 is missing)."
    )
    assert [text.wrong for text in answers(summary)] == [(wrong,)]
    assert answer_lines(summary)[1] == wrong
    assert re.search(rf'<ul>\s*<li class="bad">{re.escape(wrong)}</li>', page(run.manifest, run.trials))


def test_a_batch_at_which_the_same_is_right_keeps_the_one_that_is_wrong_apart() -> None:
    run = reference()
    fine = next(trial for trial in run.trials if trial.measured)

    def mended(trial: Any) -> Any:
        cell = trial.cell
        right = cell.strategy == "mirrored" and cell.cross_device_op == "hierarchical_copy" and cell.batch_size == 32
        named = {"cell": cell, "cell_id": trial.cell_id, "block": trial.block, "group": trial.group}
        return fine.model_copy(update=named) if right and cell.replicas == 3 else trial

    [text] = answers(summarise(run.manifest, [mended(trial) for trial in run.trials]))
    assert [words.partition(":")[0] for words in text.wrong] == ["Do not use mirrored ×3 b128 hierarchical_copy"]


def test_one_trial_a_cell_crowns_no_cell() -> None:
    summary = summarise(*make_run(ONE, blocks=1, faults=False))
    first, second, *_ = answer_lines(summary)
    assert first == "Undecided: one trial a cell cannot tell which is the fastest."
    assert second.startswith("The highest throughput: ")
    assert brief_lines(summary)[0].startswith("The highest throughput: ")
    assert not answer_lines(summarise(*make_run(ONE, faults=False)))[0].startswith("Undecided")


@pytest.mark.parametrize(
    ("text", "begun"),
    [("no strategy", "No strategy"), ("data_parallel, 1 replica", "data_parallel, 1 replica"), ("m.n:f x", "m.n:f x")],
)
def test_an_identifier_keeps_its_first_letter(text: str, begun: str) -> None:
    assert sentence(text) == begun


def test_the_gpu_is_named_in_the_first_lines() -> None:
    run = load_run(ROOT / "results" / "h100" / "data_parallel")
    named = "Intel(R) Xeon(R) Processor, 16 cores, 1 GPU (NVIDIA H100 80GB HBM3)"
    summary = summarise(run.manifest, run.trials)
    assert f", on {named}</p>" in page(run.manifest, run.trials)
    assert named in " ".join(run_text(run.manifest, run.trials, summary, 200, False).split())


def test_a_load_above_twice_the_cores_says_above_the_answer_that_speed_was_not_measured() -> None:
    manifest, trials = make_run(ONE, faults=False)
    told = "Not a measurement of speed: other work held the machine, with a load of 17.46 on 2 cores at the start."
    busy = loaded(manifest, 17.46)
    text = page(busy, trials)
    assert 0 < text.index(f'<p class="bad">{told}</p>') < text.index('<h2 class="headline">')
    assert told in " ".join(run_text(busy, trials, summarise(busy, trials), 200, False).split())
    assert "Not a measurement" not in page(loaded(manifest, 4.0), trials)


def test_warnings_stand_above_the_answer() -> None:
    run = reference()
    text = page(run.manifest, run.trials)
    assert 0 < text.index("When this was measured, the harness warned:") < text.index('<h2 class="headline">')


def test_an_explained_page_and_section_name_model_data_device_and_engine(tmp_path: Path) -> None:
    run = load_run(ROOT / "results" / "explained")
    kind, label = presentation_of(run.manifest), "mnist_cnn on digits, virtual-cpu, "
    kind.write_page(run, PageRequest(tmp_path / "page.html", tmp_path))
    text = (tmp_path / "page.html").read_text()
    found = re.search(rf'<p class="workload">({label}[^<]*)</p>\s*<p class="headline">', text)
    assert found
    assert found[1].endswith(", engine tensorflow")
    assert [part.heading for part in kind.parts_beside(run, tmp_path)] == [found[1]]
    assert kind.text(run, tmp_path, Surface(width=200)).startswith(f"{found[1]}:\n")
