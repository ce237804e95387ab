"""Published scaling, carried in the package or imported."""

from typing import Any

import pytest

from harness.errors import UsageError
from harness.record.imported import PublishedFigure
from harness.report.figures import efficiency_figure
from harness.report.tables.overlay import published, series_of
from tests.report.workloads import workload
from tests.synthetic import make_cell


def figure(row: int, replicas: int, rate: float, source: str = "a paper", **keys: Any) -> PublishedFigure:
    of = {"strategy": "mirrored", "model": "mlp", "batch_size": 8, "replicas": replicas, **keys}
    return PublishedFigure(row=row, keys=of, throughput_examples_per_s=rate, source=source)


def test_every_series_starts_at_one_replica_with_an_efficiency_of_one() -> None:
    assert len(published()) > 5
    for series in published():
        assert series.efficiency[0] == (1, 1.0)
        assert [n for n, _ in series.efficiency] == sorted({n for n, _ in series.efficiency})


def test_efficiency_is_the_rate_over_n_times_the_rate_of_one() -> None:
    vgg = next(s for s in published() if s.model == "VGG16" and s.data == "synthetic" and s.batch_size == 64)
    assert dict(vgg.images_per_s)[2] == 295.0
    assert dict(vgg.efficiency)[2] == 295 / (2 * 154)


def test_hardware_date_and_source_are_named() -> None:
    for series in published():
        for part in (series.hardware, series.date, series.source, series.model):
            assert part
            assert part in series.words


def test_the_workers_of_a_series_count_as_replicas() -> None:
    [series] = series_of([figure(2, 1, 10.0), figure(3, 2, 19.0), figure(4, 2, 36.0, workers=2)])
    assert series.images_per_s == ((1, 10.0), (2, 19.0), (4, 36.0))


def test_meshes_that_differ_in_their_replicas_alone_are_one_series_and_its_caption_says_what_a_replica_has() -> None:
    for beside, said in (("", ()), (",model:2", ("mesh=2 a replica",))):
        [series] = series_of([figure(n + 1, n, 10.0 * n, mesh=f"batch:{n}{beside}") for n in (2, 4, 1, 8)])
        assert [n for n, _ in series.images_per_s] == [1, 2, 4, 8]
        assert series.others == said
    elsewhere = [figure(n + 1, n, 10.0 * n, mesh=mesh) for mesh in ("ring", "torus") for n in (1, 2)]
    assert [series.others for series in series_of(elsewhere)] == [("mesh=ring",), ("mesh=torus",)]


def test_two_figures_of_a_series_at_as_many_replicas_are_refused_by_their_rows() -> None:
    with pytest.raises(UsageError, match=r"rows 3 and 4 .* both of 2 replicas"):
        series_of([figure(2, 1, 10.0), figure(3, 2, 19.0), figure(4, 1, 15.0, workers=2)])


def test_what_two_sources_say_is_two_series_told_apart() -> None:
    both = [figure(2 * n, n, 10.0 * n, source) for source in ("a paper", "another") for n in (1, 2)]
    assert len({series.words for series in series_of(both)}) == 2


def test_a_batch_that_a_table_does_not_give_is_not_said_to_be_0() -> None:
    figures = [figure(2, 1, 10.0), figure(3, 2, 19.0)]
    unsaid = [f.model_copy(update={"keys": {k: v for k, v in f.keys.items() if k != "batch_size"}}) for f in figures]
    assert ", batch not given, " in series_of(unsaid)[0].words


def test_published_scaling_is_of_a_fixed_batch_a_replica_and_stands_beside_no_other() -> None:
    shapes = (("none", 1), ("mirrored", 2), ("mirrored", 3))
    strong = [make_cell(*shape, 12, batch_scope="global", global_batch_size=12) for shape in shapes]
    picture = efficiency_figure(workload(strong, faults=False), "fig")
    assert picture is not None
    assert picture.title.startswith("Strong scaling: ")
    assert picture.overlay == ()
