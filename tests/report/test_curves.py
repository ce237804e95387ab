"""Which cells are one curve of scaling."""

import re

import pytest

from harness.report.figures import Picture, throughput_figure
from harness.report.figures.looks import looks
from harness.report.figures.panels import MOST_CURVES
from harness.report.figures.svg import MARKERS, SERIES
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of, engines_that
from tests.report.workloads import workload
from tests.synthetic import make_cell


def points(picture: Picture | None) -> dict[str, list[tuple[str, int]]]:
    """Of each curve the cells with their count of replicas, as the CSV has them."""
    assert picture is not None
    found: dict[str, list[tuple[str, int]]] = {}
    for row in picture.data:
        found.setdefault(row["curve"], []).append((row["cell"], row["replicas"]))
    return found


def test_workers_with_another_number_of_servers_are_another_curve() -> None:
    cells = [
        make_cell("parameter_server", 1, workers=workers, ps=ps, global_batch_size=32)
        for ps in (1, 2)
        for workers in (1, 2)
    ]
    cells += [cell.model_copy(update={"updates": "keras"}) for cell in cells if cell.ps == 2]
    curves = points(throughput_figure(workload([make_cell("none"), *cells], faults=False), "fig"))
    assert list(curves) == [
        "no strategy (base)",
        "parameter_server, 1 ps",
        "parameter_server, 2 ps",
        "parameter_server, 2 ps, keras updates",
    ]
    assert [len(members) for members in curves.values()] == [1, 2, 2, 2]


def test_two_shapes_of_one_count_of_replicas_are_two_curves_and_one_shape_is_one() -> None:
    shapes = ((1, 1), (1, 2), (2, 1), (2, 2))
    cells = [make_cell("multi_worker_mirrored", replicas, workers=workers) for workers, replicas in shapes]
    curves = points(throughput_figure(workload([make_cell("none"), *cells], faults=False), "fig"))
    assert [n for _, n in curves["multi_worker_mirrored, 1 a worker"]] == [1, 2]
    assert [n for _, n in curves["multi_worker_mirrored, 2 a worker"]] == [1, 2, 4]
    alone = points(throughput_figure(workload(cells[:2] + cells[3:], faults=False), "fig"))
    assert [n for _, n in alone["multi_worker_mirrored"]] == [1, 2, 4]


def test_every_measured_cell_is_on_a_curve() -> None:
    cells = [make_cell("none"), *(make_cell("one_device", loop=loop) for loop in ("custom", "fit"))]
    cells += [
        make_cell("multi_worker_mirrored", replicas, op=op, workers=workers)
        for workers, replicas in ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1))
        for op in (("auto", "ring") if workers * replicas > 1 else ("auto",))
    ]
    cells += [
        make_cell("parameter_server", 1, workers=workers, ps=ps, network=network, global_batch_size=32)
        for ps in (1, 2)
        for workers in (1, 2)
        for network in ("", "rate=1gbit")
    ]
    # the only cell on this network: on no other's curve
    cells.append(make_cell("parameter_server", 1, workers=1, ps=1, network="rate=100mbit", global_batch_size=32))
    picture = throughput_figure(workload(cells, faults=False), "fig")
    assert picture is not None
    custom = [cell.cell_id for cell in cells if cell.loop == "custom"]
    assert {row["cell_id"] for row in picture.data} == set(custom)
    for curve, members in points(picture).items():
        counts = [n for _, n in members]
        assert len(counts) == len(set(counts)), curve


def test_long_names_of_curves_stay_apart() -> None:
    cells = [make_cell("none")]
    networks = [f"rate={rate}mbit,delay=1ms" for rate in (100, 200)]
    cells += [
        make_cell("multi_worker_mirrored", 1, workers=workers, op=op, network=network)
        for workers in (2, 3)
        for op in ("ring", "nccl")
        for network in networks
    ]
    picture = throughput_figure(workload(cells, faults=False), "fig")
    assert len(points(picture)) == 5
    assert picture is not None
    keys = re.findall(r">([^<]*multi_worker[^<]*)<", picture.legend)
    assert len(set(keys)) == 4


def legend(*cells: Cell) -> dict[str, str]:
    """How each curve of a scaling figure looks in its legend, by its label; ids left out."""
    picture = throughput_figure(workload(list(cells), faults=False), "fig")
    assert picture is not None
    keys = re.findall(r'<span class="key"[^>]*>(<svg.*?</svg>)([^<]*)</span>', picture.legend)
    return {label: re.sub(r"fig-key\d+", "", svg) for svg, label in keys}


def test_a_strategy_looks_the_same_whatever_is_drawn_beside_it() -> None:
    of = {name: [make_cell(name, n) for n in (1, 2)] for name in ("mirrored", "central_storage")}
    few, many = legend(make_cell(), *of["mirrored"]), legend(make_cell(), *of["central_storage"], *of["mirrored"])
    assert {"no strategy (base)", "mirrored"} <= few.keys() < many.keys()
    assert [name for name, look in few.items() if many[name] != look] == []


def test_curves_of_one_strategy_share_its_colour_and_differ_in_marker_and_dash() -> None:
    first, again, other = looks(["mirrored", "mirrored", "none"])
    assert first.colour == again.colour != other.colour
    assert first.marker != again.marker
    assert first.dash != again.dash
    assert len(set(looks(["mirrored"] * MOST_CURVES))) == MOST_CURVES
    assert looks(["mirrored"]) == [first]


def test_every_strategy_of_the_house_has_a_look_of_its_own_and_one_of_yours_the_same_each_time() -> None:
    names = sorted(
        {traits.name for engine in engines_that(bool) for traits in catalogue_of(engine).strategies.values()}
    )
    assert len(names) > 10
    assert len({look[:2] for name in names for look in looks([name])}) == len(names)
    [base], [own], [again] = looks(["none"]), looks(["my_ring"]), looks(["my_ring"])
    assert own == again
    assert own.colour != base.colour


@pytest.mark.parametrize(
    ("own", "other"), [("my_mirrored", "multi_worker_mirrored"), ("allreduce", "parameter_server")]
)
def test_a_strategy_of_yours_looks_unlike_all_that_is_drawn_beside_it(own: str, other: str) -> None:
    assert looks([own])[0][:2] == looks([other])[0][:2], "alone each has the look that its name leads to"
    beside, theirs = looks([own, other])
    assert theirs == looks([other])[0]
    assert beside.colour not in (theirs.colour, looks(["none"])[0].colour)
    assert looks([other, own]) == [theirs, beside]
    many = [f"my_{number}" for number in range(len(SERIES) - 1)]
    assert len({look.colour for look in looks(many)}) == len(many)
    more = [f"my_{number}" for number in range((len(SERIES) - 1) * len(MARKERS))]
    assert len({look[:2] for look in looks(more)}) == len(more)


def test_every_panel_of_a_loop_has_the_base_case_that_was_measured_under_another() -> None:
    of = {"engine": "torch"}
    cells = [make_cell("data_parallel", loop=loop, workers=n, **of) for loop in ("ddp", "all_reduce") for n in (2, 3)]
    base = cells[0].base
    whole = base.model_copy(update={"intra_op_threads": 2})
    picture = throughput_figure(workload([base, whole, *cells], faults=False), "fig")
    assert picture is not None
    panels = {row["cell_id"]: row["panel"] for row in picture.data if row["replicas"] == 2}
    assert len({*panels.values()}) == 2
    assert {row["panel"] for row in picture.data if row["cell_id"] == base.cell_id} == {*panels.values()}
    assert len({row["ideal"] for row in picture.data if row["replicas"] == 2}) == 1
    assert all(row["ideal"] and row["whole_machine"] for row in picture.data)
