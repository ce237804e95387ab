"""A comparison in every format: what comes first, what is said, and what is never left out."""

import functools
import json
import re
from dataclasses import replace
from typing import get_args

import pytest

from harness.analysis.comparison import Comparison, choose_margins, compare_along, compare_runs, comparison_of_ab
from harness.analysis.comparison.result import ComparisonKind
from harness.analysis.estimates.intervals import Interval
from harness.analysis.estimates.verdict import Margins
from harness.errors import UsageError
from harness.record import TrialRecord
from harness.report.comparison import FORMATS, Surface, renderer
from harness.report.comparison.as_json import comparison_json
from harness.report.comparison.forest import MOST, forest_figure
from harness.report.comparison.phrases import PHRASES
from harness.report.comparison.rule import margin_words
from harness.report.comparison.words import cpu_words, headline, row_notes, verdict_sentences, verdict_words
from tests.comparisons import ab_run, pair_of_runs, sweep_run, validation
from tests.report.pages import Page, _is_sound
from tests.synthetic import NCCL_REASON, default_cells, failed, make_cell

NASTY = "<script>alert('x')</script>|`*_[a](b)\u202e\x00"
FIGURE = re.compile(r"\d(\.\d+)? %|\d,\d{3}")


def text_of(comparison: Comparison, name: str, width: int = 240) -> str:
    return renderer(name).render(comparison, Surface(width))


@functools.cache
def text_of_slower(name: str) -> str:
    """What several tests look at: a page takes half a second."""
    return text_of(slower(), name)


@functools.cache
def slower() -> Comparison:
    """Two sweeps of every kind of cell; the second has another TensorFlow and is 6 % slower."""
    facts = {"package.tensorflow": "2.22.0"}
    a = sweep_run("run-a", default_cells(), faults=True)
    b = sweep_run("run-b", default_cells(), faults=True, seed=2, wall=1.06, facts=facts)
    found = validation(unpaired=0.004)
    return compare_runs(a, b, choose_margins(found, unpaired=True), validation=found)


@functools.cache
def decided() -> Comparison:
    """An `ab` run that ended slower."""
    return comparison_of_ab(ab_run([-0.031, -0.035, -0.029, -0.033, -0.03, -0.036]))


@functools.cache
def undecided() -> Comparison:
    """An `ab` run that ended undecided."""
    return comparison_of_ab(ab_run([-0.04, 0.02, -0.01, -0.03]))


@pytest.mark.parametrize("name", FORMATS)
def test_what_differs_about_the_environments_comes_before_any_figure(name: str) -> None:
    text = text_of_slower(name)
    text = Page(text).words if name == "html" else text
    differs = text.index("package.tensorflow")
    first = re.search(r'"ratio": \d' if name == "json" else FIGURE, text)
    assert first is not None
    assert differs < first.start()
    assert "2.21.0" in text[: first.start()]
    assert "2.22.0" in text[: first.start()]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_verdict_margins_multiplicity_and_who_was_compared(name: str) -> None:
    text = text_of_slower(name)
    for word in ("slower", "run-a", "run-b", "21"):
        assert word in text
    if name == "json":
        whole = json.loads(text)
        assert (whole["delta"], whole["epsilon"], whole["correction"], whole["comparisons"]) == (0.01, 0.03, "fdr", 21)
    else:
        said = " ".join((Page(text).words if name == "html" else text).split())
        for sentence in ("δ = 1.0 %", "ε = 3.0 %", "21 comparisons were judged together", "Benjamini–Hochberg"):
            assert sentence in said
        assert "1 false alarm in 60 A/A" in said


@pytest.mark.parametrize(
    ("delta", "epsilon", "told"),
    [
        (0.0125, 0.125, "δ = 1.25 % (from the command line), ε = 12.5 %"),
        (0.01, 0.03, "δ = 1.0 % (from the command line), ε = 3.0 %"),
        (0.0, 0.00375, "δ = 0 % (from the command line), ε = 0.375 %"),
    ],
)
def test_margins_given_by_hand_are_told_as_given(delta: float, epsilon: float, told: str) -> None:
    assert margin_words(choose_margins(None, unpaired=False, delta=delta, epsilon=epsilon)) == told


def test_of_a_measured_noise_floor_two_digits_are_told() -> None:
    floor = margin_words(choose_margins(validation(unpaired=0.0523456), unpaired=True))
    assert floor.startswith("δ = 5.2 % (from the noise floor")
    assert floor.endswith(", ε = 5.2 %")
    beside = margin_words(choose_margins(validation(paired=0.0123456), unpaired=False, epsilon=0.0375))
    assert beside.startswith("δ = 1.2 % (from the noise floor")
    assert beside.endswith(", ε = 3.75 %")


@pytest.mark.parametrize("name", FORMATS)
def test_an_invalid_cell_is_shown_with_its_reason(name: str) -> None:
    text = text_of_slower(name)
    if name == "json":
        rows = {row["name"]: row for row in json.loads(text)["rows"]}
        assert NCCL_REASON in rows["mirrored ×2 b32 nccl"]["reason"]
        assert rows["mirrored ×2 b32 nccl"]["ratio"] is None
        return
    said = " ".join((Page(text).words if name == "html" else text).replace("\\", "").split())
    assert "A and B alike cannot run it" in said
    assert "No OpKernel was registered" in said


def test_of_the_only_comparison_the_reason_why_it_is_invalid_stands_beside_the_verdict() -> None:
    run = ab_run([0.01] * 5)
    cannot = [failed(trial, "unsupported", NCCL_REASON) if trial.side == "b" else trial for trial in run.trials]
    [said] = verdict_sentences(comparison_of_ab(replace(run, trials=cannot), Margins()))
    assert re.search(r": invalid: B cannot run it .*No OpKernel was registered", said)
    assert "\n" not in said
    [sound] = verdict_sentences(comparison_of_ab(run, Margins()))
    assert "invalid" not in sound


def test_a_headline_counts_what_is_known_and_says_why_the_rest_in_red_where_b_lost_a_cell() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    a, b = (sweep_run(name, cells, seed=seed) for seed, name in enumerate(("run-a", "run-b")))
    lost = {cells[1].cell_id: ("wrong_result", "the sum is wrong"), cells[2].cell_id: ("unsupported", NCCL_REASON)}
    trials = [failed(trial, *lost[trial.cell_id]) if trial.cell_id in lost else trial for trial in b.trials]
    found = compare_runs(a, replace(b, trials=trials), Margins())
    assert found.exit_code() == 1
    first = f"1 {found.rows[0].verdicts.wall.verdict}"
    assert headline(found) == f"{first}; 1 gives a wrong result in B, 1 cannot run here in B"
    assert '<div class="answer slower">' in text_of(found, "html")
    assert '<div class="answer slower">' not in text_of(compare_runs(a, b, Margins()), "html")


def test_markdown_begins_with_the_verdict_and_is_one_table_and_short() -> None:
    lines = text_of(slower(), "markdown").splitlines()
    assert lines[0] == "**21 slower**; 2 give wrong results, 10 cannot run here, 1 timed out"
    tables = [line for line in lines if line.startswith("| :---")]
    assert len(tables) == 1
    assert max(line.count("|") - line.count("\\|") for line in lines if line.startswith("|")) <= 6
    assert len([line for line in lines if not line.startswith("|")]) < 40
    assert lines[-1] == "</details>"


def test_json_follows_its_documented_keys_and_holds_the_decision_at_the_top() -> None:
    whole = json.loads(text_of(decided(), "json"), parse_constant=pytest.fail)
    assert whole["kind"] == "ab"
    assert [whole[key] for key in ("verdict", "blocks", "delta", "epsilon")] == ["slower", 6, 0.01, 0.03]
    assert whole["ratio"] == pytest.approx(0.968, abs=0.002)
    assert whole["ci95"][0] < whole["ratio"] < whole["ci95"][1]
    assert whole["noise"] == pytest.approx(0.0028, abs=0.0005)
    several = comparison_json(slower())
    assert [several[key] for key in ("ratio", "ci95", "noise")] == [None, None, None]
    assert several["rows"][0]["cpu"]["verdict"] == "equivalent"


def test_each_kind_of_comparison_has_its_words() -> None:
    assert list(PHRASES) == list(get_args(ComparisonKind))
    assert all(phrases.to_decide.format(count=7).startswith("about 7 ") for phrases in PHRASES.values())


def test_an_undecided_comparison_says_what_would_decide_it_with_the_flag_of_its_kind() -> None:
    [note] = row_notes(undecided(), undecided().rows[0])
    assert re.search(r"about \d+ blocks in all would decide it.*\(--max-blocks \d+\)", note)
    for name in ("terminal", "markdown", "html"):
        assert "blocks in all would decide it" in " ".join(text_of(undecided(), name).split())
    runs = compare_runs(
        sweep_run("run-a", [make_cell()], blocks=4, noise=0.02),
        sweep_run("run-b", [make_cell()], blocks=4, noise=0.02, seed=4),
        Margins(),
    )
    assert runs.verdict == "undecided"
    assert re.search(r"--trials \d+ in both runs.*harness ab", row_notes(runs, runs.rows[0])[0])


def test_one_trial_a_side_says_that_it_cannot_be_known() -> None:
    one = [make_cell()]
    runs = compare_runs(sweep_run("run-a", one, blocks=1), sweep_run("run-b", one, blocks=1, seed=2), Margins())
    assert "no interval" in verdict_words(runs.rows[0].verdicts.wall)
    for name in FORMATS:
        assert "cannot be known" in " ".join(text_of(runs, name).split())


def test_a_change_is_worded_with_size_and_interval() -> None:
    wall = decided().rows[0].verdicts.wall
    assert re.fullmatch(r"slower by 3\.2 % \[2\.9 – 3\.5\]", verdict_words(wall))
    same = comparison_of_ab(ab_run([0.001, -0.001, 0.002, -0.002])).rows[0]
    assert re.fullmatch(r"equivalent: 0\.0+ % \[−0\.\d+ to \+0\.\d+\]", verdict_words(same.verdicts.wall))
    assert cpu_words(same).startswith("equivalent: ")
    doubled = comparison_of_ab(ab_run([0.8, 0.81, 0.79])).rows[0]
    assert re.fullmatch(r"faster: 2\.2\d× \[2\.\d+ – 2\.\d+\]", verdict_words(doubled.verdicts.wall))
    assert cpu_words(doubled).startswith("less: 0.4")


def test_an_interval_too_wide_to_mean_anything_is_not_printed_as_figures() -> None:
    wide = comparison_of_ab(ab_run([2.0, -2.0]))
    assert "wider than 100-fold" in verdict_words(wide.rows[0].verdicts.wall)
    assert isinstance(wide.rows[0].verdicts.wall.ratio, Interval)
    for name in FORMATS:
        text_of(wide, name)


def test_a_narrow_terminal_keeps_every_line_within_its_width() -> None:
    lines = text_of(slower(), "terminal", width=80).splitlines()
    assert max(map(len, lines)) <= 80
    wide = text_of(slower(), "terminal", width=240)
    heads = "\n".join(lines).partition("──")[0]
    assert "A, examples/s" in wide.partition("──")[0]
    assert "A, examples/s" not in heads
    said = "No room for 'A, examples/s' and 'B, examples/s': a terminal of 150 columns shows all, "
    assert said in " ".join(lines)
    assert "No room" not in wide


def test_styles_are_only_for_a_terminal_that_understands_them() -> None:
    assert "\x1b[" not in renderer("terminal").render(slower(), Surface(120))
    assert "\x1b[" in renderer("terminal").render(slower(), Surface(120, styled=True))


def test_names_and_reasons_are_text_and_never_markup() -> None:
    def died(record: TrialRecord) -> TrialRecord:
        from tests.synthetic import failed

        return failed(record, "crashed", NASTY) if record.block else record

    cells = [make_cell(model=NASTY), make_cell(op=NASTY, model=NASTY)]
    a, b = sweep_run("run-a", cells), sweep_run("run-b", cells, seed=2, change=died, facts={"package.keras": NASTY})
    comparison = compare_runs(a, b, Margins())
    page = Page(text_of(comparison, "html"))
    _is_sound(page)
    assert "alert('x')" in page.words
    markdown = text_of(comparison, "markdown")
    assert "<script>" not in markdown.replace("\\<", "")
    for name in ("terminal", "markdown", "html"):
        assert "\x00" not in text_of(comparison, name)
        assert "\u202e" not in text_of(comparison, name)


@pytest.mark.parametrize("make", [slower, decided, undecided])
def test_the_page_is_sound_and_asks_the_network_for_nothing(make: object) -> None:
    html = text_of(make(), "html")  # type: ignore[operator]
    page = Page(html)
    _is_sound(page)
    assert not re.search(r"https?://|@import|<link|<img|<iframe|url\((?!#)", html)
    assert len(page.named("svg")) == 1
    for source in ("Welch 1947", "Stein 1945", "Schuirmann 1987", "Holm 1979", "Benjamini & Hochberg 1995"):
        assert source in page.words


def test_the_page_holds_the_environments_of_both_runs() -> None:
    words = Page(text_of_slower("html")).words
    assert "A: run run-a" in words
    assert "B: run run-b" in words
    assert "cpu.model Synthetic CPU" in words


def test_the_forest_plot_has_a_point_a_valid_row_and_none_without_any() -> None:
    picture = forest_figure(slower(), "forest")
    assert picture is not None
    assert "within δ" in picture.svg
    assert "within ε" in picture.svg
    assert re.findall(r"#[0-9a-f]{6}\b", picture.svg) == []
    assert picture.description.startswith("Forest plot of 21 comparisons")
    assert len(picture.data) == 21
    assert all(row["throughput_b_over_a_low"] < row["throughput_b_over_a"] for row in picture.data)
    nothing = comparison_of_ab(ab_run([None, None]))
    assert forest_figure(nothing, "forest") is None
    _is_sound(Page(text_of(nothing, "html")))


def test_the_forests_caption_begins_with_what_it_shows() -> None:
    many, one = forest_figure(slower(), "forest"), forest_figure(decided(), "forest")
    assert many is not None
    assert one is not None
    counted = ", ".join(
        f"{slower().counts.get(verdict, 0)} {verdict}" for verdict in ("slower", "faster", "equivalent")
    )
    assert many.caption.startswith(f"Of 21 comparisons {counted} and ")
    assert re.search(r"undecided; the largest change is that of \w+ ×\d b\d+", many.caption)
    assert "after the correction for many comparisons" in many.caption
    assert re.match(r".*, slower by [\d.]+ % \[", one.caption)
    assert "correction" not in one.caption, "one comparison needs none"


def test_more_rows_than_fit_are_in_the_table_and_the_caption_says_so() -> None:
    cells = [make_cell(batch_size=batch) for batch in range(1, MOST + 6)]
    many = compare_runs(sweep_run("run-a", cells, blocks=2), sweep_run("run-b", cells, blocks=2, seed=2), Margins())
    picture = forest_figure(many, "forest")
    assert picture is not None
    assert f"The first {MOST} of {MOST + 5} are drawn" in picture.caption
    assert len(picture.data) == MOST + 5, "the file has those that found no room"
    assert "none ×1 b45" in text_of(many, "html")


def test_along_an_axis_both_values_are_in_every_row() -> None:
    ops = [make_cell("mirrored", 2, op=op) for op in ("auto", "nccl")]
    comparison = compare_along(sweep_run("run-a", ops), "cross_device_op", Margins())
    for name in FORMATS:
        text = text_of(comparison, name).replace("\\", "")
        assert "cross_device_op auto → nccl" in " ".join(text.split())


def test_the_same_comparison_gives_the_same_text() -> None:
    again = compare_runs(*pair_of_runs(), Margins())
    for name in FORMATS:
        assert text_of(again, name) == text_of(compare_runs(*pair_of_runs(), Margins()), name)


def test_an_unknown_format_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"--format: 'htm' is not one of .*did you mean 'html'"):
        renderer("htm")
