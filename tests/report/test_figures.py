"""Figures: inline SVG with text alternatives, in the page's own colours; none without data."""

import functools
import re

import pytest

from harness.analysis import WorkloadSummary, summarise
from harness.report.figures import (
    Picture,
    efficiency_figure,
    ops_figure,
    phases_figure,
    ranking_figure,
    throughput_figure,
)
from tests.synthetic import failed, make_cell, make_run

FIGURES = [efficiency_figure, ops_figure, phases_figure, ranking_figure, throughput_figure]


@functools.cache
def default() -> WorkloadSummary:
    return workload()


def workload(*args: object, **kwargs: object) -> WorkloadSummary:
    return summarise(*make_run(*args, **kwargs)).workloads[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("draw", FIGURES)
def test_a_figure_is_one_svg_with_title_and_description(draw) -> None:  # type: ignore[no-untyped-def]
    picture = draw(default(), "fig")
    assert isinstance(picture, Picture)
    assert picture.svg.startswith("<svg")
    assert picture.svg.endswith("</svg>")
    assert '<title id="fig-title">' in picture.svg
    assert '<desc id="fig-desc">' in picture.svg
    assert 'role="img"' in picture.svg
    assert "nan" not in re.sub(r"[^a-z ]", " ", picture.svg.lower()).split()


@pytest.mark.parametrize("draw", FIGURES)
def test_a_figure_has_no_colour_that_the_page_does_not_set(draw) -> None:  # type: ignore[no-untyped-def]
    svg = draw(default(), "fig").svg
    assert re.findall(r"#[0-9a-f]{6}\b", svg) == []
    assert "currentColor" in svg


@pytest.mark.parametrize("draw", FIGURES)
def test_nothing_measured_is_no_figure(draw) -> None:  # type: ignore[no-untyped-def]
    nothing = workload(change=lambda _: None)
    assert draw(nothing, "fig") is None


@pytest.mark.parametrize("draw", [efficiency_figure, ops_figure, throughput_figure])
def test_one_replica_count_is_no_curve_and_one_op_no_comparison(draw) -> None:  # type: ignore[no-untyped-def]
    assert draw(workload([make_cell("none"), make_cell("one_device")], faults=False), "fig") is None


def test_failed_cells_have_a_bar_for_the_phases_they_reached_and_no_dot() -> None:
    work = default()
    phases, ranking = phases_figure(work, "fig"), ranking_figure(work, "fig")
    assert phases is not None
    assert ranking is not None
    assert "nccl (not supported here)" in phases.svg
    assert "nccl" not in ranking.svg


def test_curves_say_their_values_in_the_text_alternative() -> None:
    work = default()
    picture = throughput_figure(work, "fig")
    assert picture is not None
    assert "per-replica batch 32, mirrored: 3,740 at 1, 6,610 at 2 and 6,430 at 3" in picture.description
    assert "bound by processors" in picture.svg


def test_without_a_base_curves_show_the_cells_own_throughput_and_no_ideal() -> None:
    cells = [make_cell("mirrored", n) for n in (1, 2, 4)]
    picture = throughput_figure(workload(cells, faults=False), "fig")
    assert picture is not None
    assert "ideal" not in picture.svg
    no_base = workload(change=lambda r: failed(r, "crashed", "x") if r.cell.strategy == "none" else r)
    assert efficiency_figure(no_base, "fig") is None


def test_two_trials_with_huge_intervals_do_not_squeeze_the_dots() -> None:
    picture = ranking_figure(workload(blocks=2, noise=0.05), "fig")
    assert picture is not None
    ticks = [float(text.replace(",", "")) for text in re.findall(r">([0-9][0-9,.]*)</text>", picture.svg)]
    assert ticks
    assert max(ticks) < 1e6
