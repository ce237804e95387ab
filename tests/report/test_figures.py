"""Figures: inline SVG with text alternatives, in the page's own colours; none without data."""

import csv
import functools
import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote

import pytest

from harness.analysis import Interval, WorkloadSummary, summarise
from harness.analysis.batch import batch_curves
from harness.analysis.ranking import references_of
from harness.analysis.workers import step_times
from harness.record.trial import TrialRecord
from harness.report.figures import (
    Picture,
    batch_figure,
    efficiency_figure,
    ops_figure,
    phases_figure,
    ranking_figure,
    steps_figure,
    throughput_figure,
)
from harness.report.figures.panels import MOST_CURVES, MOST_PANELS, Curve, Panel, Point, looks_of, top_of
from harness.report.figures.ranking import GLANCE, glance_figure
from harness.spec.cell import trained
from tests.comparisons import scaled
from tests.report.workloads import workload
from tests.synthetic import default_cells, failed, make_cell, make_run


def batch(work: WorkloadSummary, name: str) -> Picture | None:
    cells = [cell.trials for cell in work.cells]
    return batch_figure(work, batch_curves(cells, references_of(cells)), name)


def steps(work: WorkloadSummary, name: str) -> Picture | None:
    known = {cell.cell_id for cell in work.cells}
    times = step_times(trial for trial in make_run()[1] if trial.cell_id in known)
    return steps_figure(work, times, name)


FIGURES = [batch, efficiency_figure, ops_figure, phases_figure, ranking_figure, steps, throughput_figure]


@functools.cache
def default() -> WorkloadSummary:
    return workload()


@functools.cache
def drawn(draw: Callable[[WorkloadSummary, str], Picture | None]) -> Picture:
    """The figure of the default workload."""
    picture = draw(default(), "fig")
    assert picture is not None
    return picture


@pytest.mark.parametrize("draw", FIGURES)
def test_every_svg_of_a_figure_has_a_title_and_a_description(draw) -> None:  # type: ignore[no-untyped-def]
    picture = drawn(draw)
    assert isinstance(picture, Picture)
    assert picture.svg.startswith("<svg")
    assert picture.svg.endswith("</svg>")
    pieces = picture.svg.count("<svg")
    for part in ('<title id="fig', '<desc id="fig', 'role="img"', "</svg>"):
        assert picture.svg.count(part) == pieces
    assert "nan" not in re.sub(r"[^a-z ]", " ", picture.svg.lower()).split()


@pytest.mark.parametrize("draw", FIGURES)
def test_a_figure_has_no_colour_that_the_page_does_not_set(draw) -> None:  # type: ignore[no-untyped-def]
    svg = drawn(draw).svg
    assert re.findall(r"#[0-9a-f]{6}\b", svg) == []
    assert "currentColor" in svg


@pytest.mark.parametrize("draw", FIGURES)
def test_nothing_measured_is_no_figure(draw) -> None:  # type: ignore[no-untyped-def]
    nothing = workload(change=lambda _: None)
    assert draw(nothing, "fig") is None


@pytest.mark.parametrize("draw", [efficiency_figure, ops_figure, throughput_figure])
def test_one_replica_count_is_no_curve_and_one_op_no_comparison(draw) -> None:  # type: ignore[no-untyped-def]
    assert draw(workload([make_cell("none"), make_cell("one_device")], faults=False), "fig") is None


def test_cells_that_were_not_measured_have_no_bar_and_no_dot_but_their_numbers() -> None:
    work = default()
    phases, ranking = phases_figure(work, "fig"), ranking_figure(work, "fig")
    assert phases is not None
    assert ranking is not None
    assert "mirrored ×2 b128" in phases.svg
    assert "nccl" not in phases.svg + ranking.svg
    assert "unsupported" in {row["status"] for row in phases.data}


def test_at_a_glance_there_is_the_best_of_each_strategy_and_what_is_next_fastest() -> None:
    whole = make_cell("none", 1, 32, intra_op_threads=2)
    work = workload([*default_cells(), whole])
    chosen = [row["cell_id"] for row in glance_figure(work, "fig").data]
    ranked = [cell.cell_id for cell in work.ranking]
    best = {}
    for cell in work.ranking:
        best.setdefault((cell.trials.cell.strategy, cell.cell_id == whole.cell_id), cell.cell_id)
    assert len(best) == 5  # none on one device and on two cores, one_device, mirrored, central_storage
    assert set(best.values()) <= set(chosen)
    assert chosen == sorted(chosen, key=ranked.index)
    assert len(chosen) == GLANCE == 8
    assert set(ranked[: GLANCE - 5]) <= set(chosen)
    assert glance_figure(workload([make_cell()], faults=False), "fig") is None


def test_curves_say_their_values_in_the_text_alternative() -> None:
    work = default()
    picture = throughput_figure(work, "fig")
    assert picture is not None
    assert (
        "batch of a replica 32: line chart, examples/s by replicas. no strategy (base): 3,940 at 1; "
        in picture.description
    )
    assert "mirrored: 3,740 at 1, 6,610 at 2 and 6,430 at 3" in picture.description
    assert "bound by processors" in picture.legend


def test_without_a_base_curves_show_the_cells_own_throughput_and_no_ideal() -> None:
    cells = [make_cell("mirrored", n) for n in (1, 2, 4)]
    picture = throughput_figure(workload(cells, faults=False), "fig")
    assert picture is not None
    assert "ideal" not in picture.legend
    no_base = workload(change=lambda r: failed(r, "crashed", "x") if r.cell.strategy == "none" else r)
    assert efficiency_figure(no_base, "fig") is None


def test_two_trials_with_huge_intervals_do_not_squeeze_the_dots() -> None:
    picture = ranking_figure(workload(blocks=2, noise=0.05), "fig")
    assert picture is not None
    ticks = [float(text.replace(",", "")) for text in re.findall(r">([0-9][0-9,.]*)</text>", picture.svg)]
    assert ticks
    assert max(ticks) < 1e6


@pytest.mark.parametrize("draw", FIGURES)
def test_every_figure_has_its_numbers_as_csv_without_a_network(draw) -> None:  # type: ignore[no-untyped-def]
    picture = drawn(draw)
    assert picture.csv.href.startswith("data:text/csv;charset=utf-8,")
    rows = list(csv.DictReader(unquote(picture.csv.href.split(",", 1)[1]).splitlines()))
    assert len(rows) == len(picture.data) > 0
    assert all(set(row) == set(rows[0]) for row in rows)
    assert not {"nan", "inf", "None"} & {value for row in rows for value in row.values()}


def test_captions_of_scaling_say_what_a_ratio_is_over_and_give_what_they_chose_no_interval() -> None:
    cells = [
        make_cell("none"),
        make_cell("none", intra_op_threads=2),
        make_cell("mirrored", 2),
        make_cell("mirrored", 3),
    ]
    fastest, efficient = (draw(workload(cells, faults=False), "fig") for draw in (throughput_figure, efficiency_figure))
    assert fastest is not None
    assert efficient is not None
    assert re.match(
        r"The fastest distributed cell, mirrored ×\d b32, has 1\.\d\d times the throughput of no strategy, one device, "
        r"batch 32, the fastest of its 2 base cases\. The largest gain at one batch size is .*: 1\.\d\d× one device, "
        r"where \d\.\d+× is ideal",
        fastest.caption,
    )
    assert "no strategy on one device" in fastest.caption
    line = r"The line across is no strategy on all 2 cores: [\d,]+ examples/s \(none ×1 b32 2 threads\)\. Each point"
    assert re.search(line, fastest.caption), "which one device is faster than"
    assert {row["panel"] for row in fastest.data} == {"batch of a replica 32"}, "which is the same of all that is drawn"
    for picture in (fastest, efficient):
        assert "[" not in picture.caption
        assert "× no strategy" not in picture.caption


def test_no_strategy_on_the_whole_machine_is_a_line_across_the_panels_of_its_own_precision() -> None:
    half = {"precision": "mixed_bfloat16"}
    whole = {("float32", 32): 0.9, ("float32", 128): 0.6, ("mixed_bfloat16", 32): 0.3}

    def change(record: TrialRecord) -> TrialRecord:
        of = trained(record.cell)
        return scaled(record, whole[of.precision, of.batch_size]) if of.intra_op_threads else record

    curves = [*((batch, {}) for batch in (32, 128)), (32, half)]
    shapes = (("none", 1), ("mirrored", 2), ("mirrored", 3))
    cells = [make_cell(*shape, batch, **keys) for batch, keys in curves for shape in shapes]
    wide = [make_cell("none", 1, batch, intra_op_threads=2, **keys) for batch, keys in curves]
    work = workload([*cells, *wide], faults=False, change=change)
    picture = throughput_figure(work, "fig")
    assert picture is not None
    measured = {cell.cell_id: cell.measured.throughput.value for cell in work.cells if cell.measured}
    lines = {row["panel"]: row["whole_machine"] for row in picture.data}
    assert [lines[panel] for panel in sorted(lines)] == [
        pytest.approx(measured[wide[1].cell_id], rel=1e-6),
        pytest.approx(measured[wide[1].cell_id], rel=1e-6),
        pytest.approx(measured[wide[2].cell_id], rel=1e-6),
    ], "of a precision the best at any batch size"
    assert picture.legend.count("no strategy, whole machine") == 1
    assert picture.description.count("no strategy, whole machine: ") == 3
    assert re.search(r"has 0\.\d+ times the throughput of no strategy on all 2 cores, batch ", picture.caption)
    lines = r"The lines across are no strategy on all 2 cores: [\d,]+ examples/s \(none .*\) and [\d,]+ examples/s "
    assert re.search(rf"{lines}\(none .*\); the first is what one would run instead of any strategy\.", picture.caption)


def test_without_a_measured_whole_machine_there_is_no_line_across() -> None:
    whole = make_cell("none", intra_op_threads=2)
    cells = [make_cell("none"), whole, make_cell("mirrored", 2), make_cell("mirrored", 3)]
    died = workload(cells, faults=False, change=lambda it: failed(it, "crashed", "x") if it.cell == whole else it)
    for work in (default(), died):
        picture = throughput_figure(work, "fig")
        assert picture is not None
        assert "whole machine" not in picture.legend + picture.description + picture.caption
        assert picture.caption.startswith("The largest gain at one batch size is ")
        assert {row["whole_machine"] for row in picture.data} == {None}


def test_published_scaling_is_in_the_efficiency_figure_hidden_and_named_with_hardware_date_and_source() -> None:
    picture = efficiency_figure(default(), "fig")
    assert picture is not None
    assert picture.svg.count('class="overlay"') >= 5
    assert any(
        "DGX-1" in line and "2017-05" in line and "performance/benchmarks.md" in line for line in picture.overlay
    )
    drawn = [row for row in picture.data if row.get("published")]
    assert {row["published"] for row in drawn} == {line.partition(": ")[2] for line in picture.overlay}
    assert all(row["replicas"] >= 1 and "cell_id" not in row for row in drawn)
    other = throughput_figure(default(), "fig")
    assert other is not None
    assert other.overlay == ()


def test_more_curves_than_can_be_followed_are_left_out_and_counted() -> None:
    cells = [make_cell("none")]
    for n in (1, 2):
        cells += [make_cell(f"strategy_{index}", n) for index in range(MOST_CURVES + 4)]
    picture = throughput_figure(workload(cells, faults=False), "fig")
    assert picture is not None
    # thirteen with the base
    assert f"{MOST_CURVES} of 13 curves are drawn, the highest: the table and the CSV have all" in picture.caption
    assert len({row["curve"] for row in picture.data}) == MOST_CURVES + 5


def curve(label: str, *values: float, ringed: bool = False) -> Curve:
    """A curve from one replica on."""
    points = tuple(Point(n, Interval(value, None, None)) for n, value in enumerate(values, start=1))
    return Curve(label, points, frozenset({1} if ringed else ()))


def test_a_curve_with_a_ring_is_drawn_before_higher_ones() -> None:
    curves = [curve(f"high {number}", 100.0 + number) for number in range(MOST_CURVES)]
    looks = looks_of([Panel("", (*curves, curve("knee", 1.0, ringed=True)), "replicas", "examples/s")])
    assert "knee" in looks
    assert [label for label in looks if label.startswith("high")] == [f"high {n}" for n in range(1, MOST_CURVES)]


def test_an_ideal_that_nothing_comes_near_runs_out_of_the_panel() -> None:
    panel = Panel("", (curve("a", 10.0, 12.0),), "replicas", "examples/s", ideal=((1, 10.0), (2, 20.0), (8, 80.0)))
    assert 20 < top_of(panel, {"a": 0}) < 24
    assert 21 < top_of(replace(panel, ideal=((1, 10.0), (2, 20.0))), {"a": 0}) < 24


@pytest.mark.parametrize(("slower", "alike"), [(2, True), (20, False)])
def test_panels_of_one_figure_have_one_axis_unless_one_would_be_squeezed(slower: float, alike: bool) -> None:
    cells = [make_cell(*of, batch) for batch in (32, 64) for of in (("none", 1), ("mirrored", 1), ("mirrored", 2))]
    small = {cell.cell_id for cell in cells if trained(cell).batch_size == 32}

    def change(trial: TrialRecord) -> TrialRecord:
        return scaled(trial, slower if trial.cell_id in small else 1)

    picture = throughput_figure(summarise(*make_run(cells, faults=False, change=change)).workloads[0], "fig")
    assert picture is not None
    one, other = (re.findall(r">([\d,]{4,})<", panel) for panel in picture.svg.split("<svg")[1:])
    assert (one == other) == alike


def test_a_panel_whose_curves_are_all_below_those_that_are_drawn_is_left_out_and_counted() -> None:
    fast = [make_cell(f"strategy_{index}", n, 64) for index in range(MOST_CURVES) for n in (1, 2)]
    slow = [make_cell("slow", n, 32) for n in (1, 2)]
    cells = [make_cell("none", 1, 64), make_cell("none", 1, 32), *fast, *slow]
    low = {cell.cell_id for cell in cells if trained(cell).batch_size == 32}

    def change(trial: TrialRecord) -> TrialRecord:
        return scaled(trial, 50 if trial.cell_id in low else 1)

    [work] = summarise(*make_run(cells, faults=False, change=change)).workloads
    picture = throughput_figure(work, "fig")
    assert picture is not None
    assert picture.svg.count("<svg") == 1
    assert "1 of 2 panels are drawn" in picture.caption
    assert top_of(Panel("", (curve("a", 1.0),), "replicas", "examples/s", ideal=((1, 1.0),)), {}) > 1


def test_without_limits_no_figure_speaks_of_them() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2), make_cell("central_storage", 2)]
    [work] = summarise(*make_run(cells, faults=False, blocks=1)).workloads
    for picture in (ranking_figure(work, "fig"), glance_figure(work, "fig")):
        assert picture is not None
        assert "95 %" not in picture.svg + picture.caption
        assert "imits on the right" not in picture.caption


def test_more_batch_sizes_than_have_room_are_left_out_and_counted() -> None:
    sizes = [8 * 2**power for power in range(MOST_PANELS + 2)]
    cells = [make_cell(strategy, n, size) for size in sizes for strategy, n in (("none", 1), ("mirrored", 2))]
    cells += [make_cell("mirrored", 1, size) for size in sizes]
    picture = throughput_figure(workload(cells, faults=False), "fig")
    assert picture is not None
    assert picture.svg.count("<svg") == MOST_PANELS
    assert f"{MOST_PANELS} of {len(sizes)} panels" in picture.caption


def test_weak_and_strong_scaling_are_figures_of_their_own() -> None:
    cells = [
        make_cell(strategy, n, 64, batch_scope=scope)
        for scope in ("per_replica", "global")
        for strategy, n in (("none", 1), ("mirrored", 1), ("mirrored", 2))
    ]
    works = summarise(*make_run(cells, faults=False)).workloads
    titles = [picture.title for work in works if (picture := throughput_figure(work, "fig"))]
    assert titles == [
        "Weak scaling: throughput against replicas",
        "Strong scaling: throughput against replicas",
    ]


def test_the_knee_is_ringed_and_said() -> None:
    def saturated(trial: TrialRecord) -> TrialRecord:
        """From 64 on a larger batch gains nothing."""
        size = trial.cell.batch_size
        slower = max(1.0, size / 64)
        assert trial.windows is not None
        step = 0.01 * slower * (1 + 0.001 * trial.block)
        return trial.model_copy(
            update={"step_time_s": step, "throughput_examples_per_s": trial.cell.global_batch_size / step}
        )

    cells = [make_cell("none", 1, size) for size in (16, 32, 64, 128, 256)]
    picture = batch(workload(cells, faults=False, change=saturated), "fig")
    assert picture is not None
    assert "The knee is at batch 64 for none ×1." in picture.caption
    assert [row["batch_size"] for row in picture.data if row["knee"]] == [64]


def test_a_throughput_that_still_rises_asks_for_larger_batches_only_where_none_ran_out_of_memory() -> None:
    def rising(trial: TrialRecord) -> TrialRecord:
        """Every batch takes as long; the largest does not fit without XLA."""
        size = trial.cell.get("batch_size")
        if size == 256 and not trial.cell.get("xla"):
            return failed(trial, "out_of_memory", "it asked for 12 GiB")
        rate = trial.cell.global_batch_size / 0.01
        return trial.model_copy(update={"step_time_s": 0.01, "throughput_examples_per_s": rate})

    cells = [make_cell("none", 1, size) for size in (64, 128, 256)]
    alone = batch(workload(cells, faults=False, change=rising), "fig")
    assert alone is not None
    assert "rises at the largest batch with a throughput (128) in 1 of 1 curve: 256 has none (out of memory)." in (
        alone.caption
    )
    assert "measure larger" not in alone.caption
    both = batch(workload([*cells, *(make_cell("none", 1, n, xla=True) for n in (64, 256))], change=rising), "fig")
    assert both is not None
    assert "(128) in 1 of 2 curves: 256 has none" in both.caption
    assert "at the largest batch (256) in 1 of 2 curves: measure larger ones" in both.caption


def test_the_ops_caption_tells_undecided_from_equivalent_and_says_what_was_corrected() -> None:
    picture = ops_figure(default(), "fig")
    assert picture is not None
    verdicts = [row["verdict"] for row in picture.data if row["verdict"]]
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in ("faster", "slower", "equivalent"))
    rule = f"(δ 1 %, ε 3 %; the {len(verdicts)} corrected together, false discovery rate 5 %)"
    counted += f" and {verdicts.count('undecided')} undecided"
    assert picture.caption.startswith(f"Of {len(verdicts)} comparisons with the reference op {counted} {rule}.")
    assert "no difference" not in picture.caption
    assert "the reference of its row: the engine's own default (auto) where it was measured" in picture.caption


def test_an_undecided_op_is_called_so_and_drawn_hollow() -> None:
    cells = [make_cell("none"), *(make_cell("mirrored", 2, op=op) for op in ("auto", "hierarchical_copy"))]
    picture = ops_figure(workload(cells, blocks=2, noise=0.2, faults=False), "fig")
    assert picture is not None
    assert (
        "Of 1 comparison with the reference op 0 faster, 0 slower, 0 equivalent and 1 undecided (δ 1 %, ε 3 %)."
        in picture.caption
    )
    assert "A hollow mark is undecided" in picture.caption
    assert "fill:var(--paper)" in picture.svg
