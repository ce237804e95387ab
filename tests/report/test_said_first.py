"""What stands before all else: what not to use, what nothing is known of, and the machine and work that it is about."""

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import summarise
from harness.analysis.limits import cell_rates
from harness.record.manifest import RunManifest
from harness.record.reading import load_run
from harness.record.trial import TrialRecord
from harness.report.comparison import Surface
from harness.report.figures.curves import throughput_figure
from harness.report.kinds import PageRequest, presentation_of
from harness.report.limits import rates_table
from harness.report.page.report import render
from harness.report.tables.overview import overview_table
from harness.report.tables.sweep import ranking_table
from harness.report.terminal.run import run_text
from harness.report.words.answer import answer_lines, answers
from harness.report.words.brief import brief_lines
from harness.report.words.text import sentence
from tests.comparisons import scaled
from tests.report.export.runs import reference
from tests.synthetic import failed, make_cell, make_run

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


def test_where_nothing_is_compared_no_sentence_and_no_figure_says_fastest_or_best() -> None:
    cells = [make_cell(*shape, device="gpu") for shape in (("none",), ("mirrored", 2), ("mirrored", 3))]
    once, often = (answers(summarise(*make_run(cells, blocks=blocks, faults=False)))[0] for blocks in (1, 4))
    told = [" ".join((*text.sentences, text.verdict, *(it.name for it in text.figures))) for text in (once, often)]
    assert [bool(re.search("fastest|best", words)) for words in told] == [False, True]
    assert once.figures[0].name.startswith("examples/s, the highest (mirrored ×")
    assert once.figures[1].name.startswith("the highest of 2 distributed cells, over ")
    assert "the highest has " in once.verdict
    assert " takes " in told[0], "more examples a step than the highest without a strategy"


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


def test_warnings_stand_above_the_answer_and_are_not_folded_away() -> None:
    run = reference()
    text = page(run.manifest, run.trials)
    above = text[text.index('<section id="answer"') : text.index('<h2 class="headline">')]
    assert "When this was measured, the harness warned:" in above
    assert all(f"<li>{escape(warning)}</li>" in above for warning in run.manifest.machine.warnings)
    assert len(run.manifest.machine.warnings) == 3
    assert "<details" not in above


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


def test_where_it_is_undecided_the_headline_says_what_to_take_until_then() -> None:
    run = reference()
    [text] = answers(summarise(run.manifest, run.trials))
    assert (
        text.headline == "Undecided whether distributing pays; until then take no strategy on all 2 cores, batch 128."
    )


def test_an_op_that_is_faster_than_the_default_is_a_bullet() -> None:
    run = reference()
    [text] = answers(summarise(run.manifest, run.trials))
    [told] = [words for words in text.sentences if words.startswith("The default op is not the fastest: ")]
    assert "mirrored, 2 replicas, batch 32: reduction_to_one_device has 116 % [111 – 121] of its throughput" in told
    assert len(told.split("; ")) == 3
    summary = summarise(*make_run([make_cell("none"), make_cell("mirrored", 2)], faults=False))
    assert "The default op" not in " ".join(answers(summary)[0].sentences)


def test_what_the_gate_remarks_on_the_fastest_cell_is_in_its_card() -> None:
    run = load_run(ROOT / "results" / "h100" / "data_parallel")
    [text] = answers(summarise(run.manifest, run.trials))
    told = [words for words in text.sentences if words.startswith("The gate remarks on ")]
    assert len(told) == 1
    assert told[0].startswith("The gate remarks on data_parallel ×1 b256 jit jax")


def test_one_trial_a_cell_has_no_ties_no_marks_and_no_interval_to_allow_for() -> None:
    manifest, trials = make_run([*ONE, make_cell("mirrored", 2, device="gpu")], blocks=1, faults=False)
    summary = summarise(manifest, trials)
    [work] = summary.workloads
    [text] = answers(summary)
    assert [figure.name for figure in text.figures if "told apart" in figure.name] == []
    assert (text.ties, text.rivals) == ("", ())
    table = ranking_table(work, summary.noise)
    assert table.marked == frozenset()
    assert table.note.startswith("One trial a cell: no row is marked.")
    assert "allows for" not in table.note
    more = summarise(*make_run([*ONE, make_cell("mirrored", 2, device="gpu")], faults=False))
    assert ranking_table(more.workloads[0], more.noise).marked


def test_many_answers_begin_with_one_table_and_the_cards_are_folded() -> None:
    run = load_run(ROOT / "results" / "workloads")
    text = page(run.manifest, run.trials)
    table = text.index("<h2>24 answers at a glance</h2>")
    assert table < text.index('<div class="answer">')
    assert text.count('</summary>\n<div class="answer">') == 24
    summary = summarise(run.manifest, run.trials)
    rows = overview_table(summary).rows
    assert len(rows) == 24
    assert rows[0][1:] == (
        "5 of 5",
        "none ×1 b12 global",
        "3,130 examples/s",
        "mirrored ×2 b12 global: 0.461× no strategy",
    )
    models = ("mlp", "mnist_cnn", "resnet20", "lstm")
    every = [make_cell(*of, model=model, device="gpu") for model in models for of in (("none",), ("mirrored", 2))]
    known = [row[3:] for row in overview_table(summarise(*make_run(every, faults=False))).rows]
    given = r"[\d,]+ examples/s (± [\d.]+ %|\[[\d,]+ – [\d,]+\]) in these minutes"
    assert all(re.fullmatch(given, throughput) for throughput, _ in known)
    assert all(re.fullmatch(r"mirrored ×2 b32: [\d.]+× ± [\d.]+ % no strategy", gain) for _, gain in known)
    few = page(*make_run(ONE, faults=False))
    assert "at a glance</h2>" not in few
    assert '</summary>\n<div class="answer">' not in few


def test_the_index_is_told_the_first_of_many_answers_and_how_many_more() -> None:
    run = load_run(ROOT / "results" / "workloads")
    said = re.findall(r'<meta name="harness-headline" content="([^"]*)"', page(run.manifest, run.trials))
    assert len(said) == 1
    assert said[0].endswith("Undecided: one trial a cell cannot tell whether distributing pays. And 23 more.")


def test_a_card_says_its_figure_once_and_once_what_would_decide() -> None:
    run = reference()
    text = page(run.manifest, run.trials)
    card = text[text.index('<div class="answer">') : text.index("<summary>The cells that may be as fast")]
    assert "<li>Fastest: " not in card
    assert len(re.findall(r"about \d+\s*trials a cell", card)) == 1
    [answer] = answers(summarise(run.manifest, run.trials))
    assert [figure.value for figure in answer.figures] == ["13,200", "1.02×", "4"]


ENGINES = load_run(ROOT / "results" / "engines" / "two-cores")


def test_of_several_engines_each_is_named_tensorflow_too() -> None:
    summary = summarise(ENGINES.manifest, ENGINES.trials)
    ours = [cell for cell in summary.cells if cell.trials.cell.get("engine") == "tensorflow"]
    assert ours
    assert all(cell.label.endswith(" tensorflow") for cell in ours)
    assert all(summary.names[cell.cell_id].endswith(", tensorflow") for cell in ours)
    assert not any("tensorflow" in cell.label for cell in summarise(*make_run(ONE, faults=False)).cells)


def test_a_curve_and_a_row_beside_another_engines_names_tensorflow_where_no_panel_does() -> None:
    cells = [make_cell(), make_cell("mirrored", 1), make_cell("mirrored", 2)]
    for beside, curves in (
        ([], {"no strategy (base)", "mirrored"}),
        ([make_cell(engine="torch", loop="ddp")], {"no strategy (base), tensorflow", "mirrored, tensorflow"}),
    ):
        [work] = summarise(*make_run([*cells, *beside], faults=False)).workloads
        picture = throughput_figure(work, "fig")
        assert picture is not None
        assert {row["curve"] for row in picture.data} == curves
    ours = [work for work in summarise(ENGINES.manifest, ENGINES.trials).workloads if work.cells]
    rows = [row[0] for work in ours for row in rates_table(cell_rates(work.cells, None)).rows]
    assert {name.split()[-1] for name in rows} >= {"tensorflow", "horovod"}
    assert not [name for name in rows if name.split()[-1] in ("b32", "b64", "threads")]


def test_a_gain_over_another_engine_names_both() -> None:
    text = answers(summarise(ENGINES.manifest, ENGINES.trials))[2]
    assert text.headline.startswith("Distribute: mirrored, 2 replicas, batch 32 a replica, tensorflow")
    assert (
        " no strategy on all 2 cores (torch). Not like with like: compiler and batch normalisation differ."
        in text.headline
    )
    assert "the best of 8 distributed cells (tensorflow), over no strategy on all 2 cores (torch)" in [
        figure.name for figure in text.figures
    ]


def test_a_workload_is_not_called_what_a_ranked_cell_did_otherwise() -> None:
    labels = [work.workload.label for work in summarise(ENGINES.manifest, ENGINES.trials).workloads]
    assert all("float32" in label and "XLA" not in label for label in labels)
    one = load_run(ROOT / "results" / "h100" / "data_parallel")
    [work] = summarise(one.manifest, one.trials).workloads
    assert work.workload.label == "mnist_cnn on digits, gpu, adam, per-replica batch fixed"


def test_a_whole_machine_has_its_ratio_and_the_base_is_once_itself() -> None:
    run = reference()
    summary = summarise(run.manifest, run.trials)
    table = ranking_table(summary.workloads[0], summary.noise)
    place = [column.name for column in table.columns].index("× one device")
    told = {row[1]: row[place] for row in table.rows}
    assert told["none ×1 b128"] == "1×"
    assert re.fullmatch(r"\d\.\d+× ± [\d.]+ %", told["none ×1 b128 2 threads"])


def test_a_gain_below_1_is_a_loss_and_the_best_of_them_the_smallest() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2), make_cell("mirrored", 3)]

    def caption(longer: float) -> str:
        manifest, trials = make_run(
            cells, faults=False, change=lambda it: it if it.cell == cells[0] else scaled(it, longer)
        )
        picture = throughput_figure(summarise(manifest, trials).workloads[0], "fig")
        assert picture is not None
        return picture.caption

    assert caption(9.0).startswith("The smallest loss at one batch size is ")
    assert caption(1.0).startswith("The largest gain at one batch size is ")


def test_too_few_good_trials_are_not_called_one_trial_a_cell() -> None:
    cells = [make_cell("none"), make_cell("one_device")]

    def crashes(record: TrialRecord) -> TrialRecord:
        return failed(record, "crashed", "signal 11") if record.cell == cells[1] and record.block else record

    [text] = answers(summarise(*make_run(cells, faults=False, blocks=4, change=crashes)))
    assert text.headline == "Undecided: too few good trials cannot tell which is the fastest."
