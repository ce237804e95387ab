"""Published scaling, carried in the package."""

from harness.report.tables.overlay import published


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
