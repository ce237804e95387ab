"""The page: whole, safe, self-contained, honest about what is not known."""

import functools
import html
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.errors import StorageError
from harness.record.manifest import LeftOutRecord, RunManifest
from harness.record.reading import load_run
from harness.record.trial import Phases, TrialRecord
from harness.report.page import report
from harness.report.page.report import render, write_report
from harness.report.page.sections import PageSource
from harness.report.page.templating import unbroken
from harness.report.words.method import methods
from tests.report.pages import NASTY, Page, _is_sound
from tests.report.rooflines import known
from tests.report.rooflines import run as counted_run
from tests.synthetic import (
    NCCL_REASON,
    STACK,
    TPU_REASON,
    WRONG_EVIDENCE,
    WRONG_REASON,
    default_cells,
    failed,
    make_cell,
    make_run,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("pause", [timedelta(0), timedelta(hours=14)])
def test_how_long_more_trials_take_is_without_the_pause_before_a_run_was_resumed(pause: timedelta) -> None:
    """Four blocks of a minute of one group each, the third of them after the pause."""

    def placed(record: TrialRecord) -> TrialRecord:
        begun = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(minutes=record.block) + (record.block > 1) * pause
        of_trial = {"started_utc": begun.isoformat(), "phases": Phases(start_s=2.0, steady_s=28.0, waiting_s=30.0)}
        return record.model_copy(update=of_trial)

    cells = [make_cell(), make_cell("mirrored", 2), make_cell("central_storage", 2)]
    words = page_of(make_run(cells, noise=0.05, faults=False, change=placed, finished_utc="2026-11-22T00:00:00Z")).words
    found = re.search(r"--trials (\d+), about ([\d.]+) min here", words)
    assert found is not None, words
    assert float(found[2]) == pytest.approx(int(found[1]), rel=0.05)


@pytest.mark.parametrize("known", [True, False])
def test_that_no_two_cells_were_the_same_experiment_is_said_where_the_programs_are_known(known: bool) -> None:
    """Two cells have one program, and differ in their threads."""

    def traced(record: TrialRecord) -> TrialRecord:
        program = {"fingerprint": record.cell.get("cross_device_op") if known else ""}
        return record.model_copy(update={"executed": record.executed.model_copy(update=program)})

    cells = [make_cell("mirrored", 2, op=op) for op in ("auto", "nccl")] + [
        make_cell("mirrored", 2, intra_op_threads=2)
    ]
    run = make_run(cells, faults=False, change=traced)
    assert not any(cell.same_experiment_as for cell in summarise(*run).cells)
    words = page_of(run).words
    assert ("No two cells were the same experiment." in words) == known
    assert "each traced program differs" not in words


def page_of(run: tuple[RunManifest, list[TrialRecord]]) -> Page:
    manifest, trials = run
    page = Page(render(manifest, trials, summarise(manifest, trials)))
    _is_sound(page)
    assert len(page.named("figure")) == len(page.named("figcaption")) == page.words.count("CSV of this figure")
    return page


@functools.cache
def default_html(output: Path | None = None) -> str:
    manifest, trials = make_run()
    return report.page_of(PageSource(manifest, trials, summarise(manifest, trials), output=output))


@functools.cache
def default_page() -> Page:
    page = Page(default_html())
    _is_sound(page)
    return page


def test_the_default_sweep_has_every_figure_and_the_answer_first() -> None:
    page = default_page()
    assert len(page.named("figure")) == page.words.count("CSV of this figure") == 8
    words = page.words
    assert words.index("Faster than one device; against the whole machine not measured") < words.index(
        "examples/s, the fastest (mirrored ×2 b128"
    )
    assert words.index("examples/s, the fastest (mirrored ×2 b128") < words.index("Ranking by throughput")
    assert "which one would run instead, was not measured" in words
    assert "overhead only, not hardware scaling" in words


def test_no_answer_calls_overhead_what_it_shows_as_a_gain() -> None:
    run = load_run(Path(__file__).parents[2] / "results" / "reference")
    kept = render(run.manifest, run.trials, summarise(run.manifest, run.trials))
    default, of_kept = (
        Page(page[page.index('<section id="answer"') : page.index("<nav")] + "</section>").words
        for page in (default_html(), kept)
    )
    assert "1.88× [1" in default
    for answer, gains in ((default, True), (of_kept, re.search(r"\d× \[[1-9]", of_kept) is not None)):
        assert ("hardware scaling" not in answer) is gains
        assert ("The gain is of these processors: what more devices would give," in answer) is gains


def test_three_sentences_at_most_stand_before_the_first_figure() -> None:
    html = default_html()
    before = html[html.index('<div class="answer">') : html.index("<figure")]
    told = re.findall(r'<(?:p|h2 class="headline")>(.*?)</(?:p|h2)>', before, re.DOTALL)
    assert 1 <= sum(len(re.findall(r"\.(?:\s|$)", text)) for text in told) <= 3
    assert "<li>" not in before


def test_the_page_asks_the_network_for_nothing() -> None:
    text = default_html().replace('createElementNS("http://www.w3.org/2000/svg"', "")  # a name, not an address
    assert not re.search(r"https?://|@import|<link|<img|<iframe|url\((?!#)", text)


def test_every_failed_cell_is_named_with_its_reason_and_evidence() -> None:
    words = default_page().words
    for reason in (NCCL_REASON, TPU_REASON, WRONG_REASON, *WRONG_EVIDENCE.values(), "no progress for 120 s"):
        assert " ".join(reason.split()) in words
    problems = words[words.index("What is wrong", words.index("Time per phase")) :]
    for cell in summarise(*make_run()).cells:
        if cell.trials.status != "ok":
            assert cell.label in problems
    assert " ".join(STACK.split()) in words
    assert re.search(r"windows become \d+ % shorter", words)


def test_a_wrong_cell_is_in_no_ranking_curve_or_answer() -> None:
    html = default_html()
    ranking = html[html.index('<section id="ranking"') : html.index('<section id="time"')]
    answer = html[html.index('<section id="answer"') : html.index('<section id="ranking"')]
    for part in (ranking, answer):
        assert "×3 b32 hierarchical_copy" not in part
        assert "×3 b128 hierarchical_copy" not in part


def test_left_out_combinations_and_the_environment_and_methods_are_on_the_page() -> None:
    words = default_page().words
    assert "one_device × 2 replicas: strategy 'one_device' runs on 1 replica" in words
    assert "Synthetic CPU <2.0 GHz> & friends" in words
    assert "8.00 GiB" in words
    assert "governor not known" in words
    assert "seeds 1 (stage 1)" in words
    assert "G·exp(−ȳ" in words


def test_names_are_text_and_never_markup() -> None:
    cells = [make_cell("none", model=NASTY), make_cell("mirrored", 2, op=NASTY, model=NASTY)]
    cells.append(make_cell("mirrored", 2, model=NASTY))
    manifest, trials = make_run(cells, faults=False, change=lambda r: _failed_with(r, NASTY))
    manifest = manifest.model_copy(
        update={
            "left_out": [LeftOutRecord(combination=NASTY, reason=NASTY)],
            "machine": manifest.machine.model_copy(update={"facts": {NASTY: NASTY}, "warnings": [NASTY]}),
        }
    )
    page = page_of((manifest, trials))
    assert "alert('x')" in page.words
    assert "\x00" not in page.words


def _failed_with(record: TrialRecord, reason: str) -> TrialRecord:
    if record.block:
        return record
    return failed(record, "crashed", reason, evidence=reason)


def test_when_every_cell_failed_the_page_says_so_and_draws_no_empty_axis() -> None:
    page = page_of(make_run(change=lambda record: failed(record, "crashed", "died at once", phase="start")))
    assert "Nothing was measured: none of 34 cells ended well." in page.words
    assert "died at once" in page.words
    assert "Ranking by throughput" not in page.words


def test_one_cell_alone_is_a_page() -> None:
    page = page_of(make_run([make_cell()], faults=False))
    assert re.search(r"examples/s ± [\d.]+ % in these minutes: the only cell that was measured\.", page.words)
    assert "no cell with more than one replica was measured" in page.words


def test_one_trial_a_cell_has_no_interval_and_no_verdict() -> None:
    page = page_of(make_run(default_cells((1, 2), (32,)), blocks=1))
    assert "1 trial, so no interval" in page.words
    assert "cannot be known from one trial a cell" in page.words


def test_an_interrupted_run_says_what_is_missing_and_how_to_resume() -> None:
    page = page_of(make_run(status="interrupted", change=lambda r: r if r.block == 0 and r.order < 20 else None))
    assert "The sweep was interrupted: 20 of 136 planned trials are recorded" in page.words
    assert "--resume 20261121T012345Z-default-a1b2" in page.words
    assert "no trial is recorded" in page.words


def test_a_run_with_no_trial_or_no_cell_is_a_page() -> None:
    manifest, _ = make_run(blocks=0, status="running")
    assert "Nothing was measured" in page_of((manifest, [])).words
    empty = manifest.model_copy(update={"cells": [], "machine": manifest.machine.model_copy(update={"facts": {}})})
    assert "No cell was planned" in page_of((empty, [])).words


def test_many_cells_over_several_workloads_fit() -> None:
    cells = default_cells((1, 2, 3, 4, 5), (16, 32, 64))
    cells += default_cells((1, 2, 4), (32,), model="mlp", loop="fit")
    page = page_of(make_run(cells, blocks=2))
    assert len(page.named("figure")) >= 12
    assert "The 40 fastest of 5" in page.words
    assert "For room 8 of" in page.words


def test_the_same_records_give_the_same_bytes() -> None:
    manifest, trials = make_run([make_cell(), make_cell("mirrored", 2)], blocks=2)
    summary = summarise(manifest, trials)
    assert render(manifest, trials, summary) == render(manifest, trials, summary)


def test_the_report_is_written_whole_and_its_summary_returned(tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell()], blocks=2, faults=False)
    target = tmp_path / "new" / "report.html"
    summary = write_report(manifest, trials, target)
    assert summary.counts == {"ok": 1}
    assert target.read_text(encoding="utf-8").endswith("</html>")
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell()], blocks=2, faults=False)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("x", encoding="utf-8")
    for target in (in_the_way / "report.html", tmp_path):
        with pytest.raises(StorageError, match=r"--output FILE\.html"):
            write_report(manifest, trials, target)
    assert in_the_way.read_text(encoding="utf-8") == "x"


def test_what_the_gate_remarks_on_a_right_cell_is_on_the_page() -> None:
    remark = "each replica keeps its own untrained statistics: 'moving_mean' differs"

    def remarked(trial: TrialRecord) -> TrialRecord:
        return trial.model_copy(update={"checks": trial.checks.model_copy(update={"detail": {"statistics": remark}})})

    manifest, trials = make_run([make_cell()], blocks=2, faults=False, change=remarked)
    assert html.escape(remark, quote=False).replace("'", "&#39;") in render(
        manifest, trials, summarise(manifest, trials)
    )


def test_the_page_of_the_reference_run_is_small_and_whole() -> None:
    """Its records are of an earlier schema: keys that came later are missing in them."""
    run = load_run(Path(__file__).parents[2] / "results" / "reference")
    page = render(run.manifest, run.trials, summarise(run.manifest, run.trials))
    _is_sound(Page(page))
    assert len(page.encode()) < 400_000


def test_every_section_is_in_the_list_of_contents_in_the_order_of_the_page() -> None:
    text = default_html()
    listed = re.findall(r'<li><a href="#([a-z-]+)">', text)
    assert listed == [slug for slug in re.findall(r'<section id="([a-z-]+)"', text) if slug != "answer"]
    assert listed[:5] == ["ranking", "scaling", "time", "batch", "ops"]


def test_each_failed_gate_has_its_evidence_and_every_problem_a_remedy() -> None:
    text = default_html()
    problems = text[text.index('<section id="problems"') : text.index('<section id="left-out"')]
    assert problems.count("<article") == problems.count("What to do:")
    assert (
        "<dt>The sum over replicas is not the exact sum</dt><dd>replica 0 received 5.0 where 7.0 was expected"
        in problems
    )


def test_where_cells_failed_the_gate_it_is_not_said_that_every_trial_passes_it() -> None:
    words = default_page().words
    assert "every trial goes through the correctness gate, and what fails there has no figure" in words
    assert "passes the correctness gate" not in words


def test_seeds_order_thresholds_and_versions_are_those_of_the_run() -> None:
    words, [plan] = default_page().words, make_run()[0].plans
    for part in (
        "seeds 1 (stage 1)",
        "136 of 136 planned trials recorded",
        "after warm-up 10 windows each, sized for 100 ms, which lasted ",
        f"SHA-256 {plan.sha256[:12]}…",
        "records schema version 1",
    ):
        assert part in words


def test_versions_are_those_of_other_engines_too() -> None:
    manifest, trials = make_run()
    told = {**manifest.machine.facts, "package.tensorflow": "2.21.0", "engine.torch.torch": "2.12.0"}
    machine = manifest.machine.model_copy(update={"facts": told})
    words = page_of((manifest.model_copy(update={"machine": machine}), trials)).words
    how_measured = words[words.rindex("How this was measured") :]
    assert "tensorflow 2.21.0 engine.torch.torch 2.12.0" in how_measured


def test_planned_trials_that_are_not_there_are_accounted_for() -> None:
    def once(record: TrialRecord) -> TrialRecord | None:
        return None if record.status == "unsupported" and record.block else record

    words = page_of(make_run(change=once)).words
    told = "106 of 136 planned trials recorded; 30 are of cells that are not supported here, which are not tried again"
    assert words.count(told) == 2
    cut = page_of(make_run(change=lambda record: record if record.block == 0 else None, status="interrupted")).words
    assert "34 of 136 planned trials recorded; 72 did not run and 30 are of cells that are not supported here" in cut


def test_a_figure_does_not_repeat_the_heading_above_it() -> None:
    for (manifest, trials), heading in (
        (make_run(), "Cross-device ops side by side"),
        (counted_run(), "How far from the limit"),
    ):
        text = report.page_of(PageSource(manifest, trials, summarise(manifest, trials), limits=known()))
        titles = re.findall(r'<(?:h[123]|p class="title")[^>]*>([^<]+)</', text)
        assert titles.count(heading) == 1
        assert not [one for one, other in pairwise(titles) if one == other]
        assert f'aria-label="{heading}"' in text


def test_the_warnings_are_of_when_it_was_measured() -> None:
    manifest, trials = make_run([make_cell()], faults=False)
    machine = manifest.machine.model_copy(update={"warnings": ["the load average is 1.3 on 2 cores"]})
    words = page_of((manifest.model_copy(update={"machine": machine}), trials)).words
    assert "When this was measured, the harness warned: the load average is 1.3 on 2 cores" in words


def test_no_line_of_the_answer_ends_within_a_flag_or_before_a_percent_sign() -> None:
    assert unbroken("± 11 %, use --max-warmup <b>") == (
        '± 11\N{NO-BREAK SPACE}%, use <span class="flag">--max-warmup</span> &lt;b&gt;'
    )
    text = default_html()
    answer = text[text.index('<section id="answer"') : text.index("<nav")]
    assert " %" not in re.sub("<(details|figure).*?</\\1>", "", answer, flags=re.DOTALL)


def test_the_answer_says_where_to_look_and_its_links_lead_to_sections_that_there_are() -> None:
    text = default_html(DOCS.parent / "reports" / "page.html")
    answer = text[text.index('<section id="answer"') : text.index("<nav")]
    folded = answer[answer.index("<summary>Where to look") :]
    assert folded.count("<li>") == 5
    linked = re.findall(r'<a href="([^"#]+)#([^"]+)">', folded)
    assert len(linked) >= 5
    for path, section in linked:
        page = (DOCS.parent / "reports" / path).resolve()
        assert page.is_relative_to(DOCS)
        headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert section in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("place", [None, Path("elsewhere/reports/page.html")], ids=["of no place", "of no checkout"])
def test_a_page_outside_the_checkout_names_where_to_look_without_links(tmp_path: Path, place: Path | None) -> None:
    """Where it is sent they would lead nowhere, and tell the folders of who has sent it."""
    text = default_html(place and tmp_path / place)
    answer = text[: text.index("<nav")]
    assert "docs/figures.md#scaling" in answer
    assert not re.search('href="[^"]*docs/', answer)


def test_how_ratios_are_computed_says_that_variances_are_moderated_where_cells_are_read_together() -> None:
    manifest, trials = make_run([make_cell()], faults=False)
    [ratios] = [of for of in methods(manifest, trials, summarise(manifest, trials)) if of.figure.startswith("Speed-up")]
    assert "moderated by what all cells have in common (Smyth), and a noisy cell's own (Grubbs)" in ratios.formula
