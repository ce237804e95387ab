"""What carries a collective's bytes at most, beside the bandwidth that it had: memory, TCP, an emulated network."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import CellSummary, summarise
from harness.analysis.collectives import collective_groups
from harness.analysis.limits import BusLimit, bus_limit
from harness.record import Run
from harness.record.cluster import NetworkRecord
from harness.record.limits import Limit, LimitsRecord, keep_sheet
from harness.report.comparison import Surface
from harness.report.figures import collective_figure
from harness.report.kinds import presentation_of
from harness.report.notebook import SweepResult
from harness.report.page.report import page_of
from harness.report.page.sections.base import PageSource
from harness.report.tables.collectives import collective_rows
from harness.spec.collective import CollectiveCell
from tests.limits import MACHINE
from tests.report.collectives import BETWEEN, RING, in_three_sizes
from tests.report.quantities import run_of
from tests.report.rooflines import known


def of_the_limit(made: Run, limits: LimitsRecord | None) -> set[str]:
    """What the picture on a run's page says of the limit."""
    source = PageSource(made.manifest, made.trials, summarise(made.manifest, made.trials), limits=limits)
    return set(re.findall(r"Dotted: at most [^<]*? can do\.", page_of(source)))


def cells_of(cell: CollectiveCell, folder: Path) -> list[CellSummary]:
    """Of a run of the cell in three sizes."""
    made = run_of(in_three_sizes(cell), folder)
    [group] = collective_groups(summarise(made.manifest, made.trials))
    return [one.summary for one in group.figures]


def test_beside_the_bandwidth_is_what_it_comes_to_at_most_where_that_was_measured(tmp_path: Path) -> None:
    made = run_of(in_three_sizes(RING), tmp_path)
    assert of_the_limit(made, None) == set()
    assert of_the_limit(made, known()) == {"Dotted: at most 20.0 GB/s, what memory can do."}
    [group] = collective_groups(summarise(made.manifest, made.trials))
    drawn = collective_figure(group, "figure", bus_limit([one.summary for one in group.figures], known()))
    assert drawn is not None
    assert "limit: memory" in drawn.svg
    assert {row["busbw_limit_bytes_per_s"] for row in drawn.data} == {2e10}
    kind, words = presentation_of(made.manifest), "busbw is at most 20.0 GB/s, what memory can do."
    assert words not in " ".join(kind.text(made, tmp_path, Surface(width=200)).split())
    assert {row["busbw_limit_bytes_per_s"] for row in collective_rows(made)} == {None}
    keep_sheet(tmp_path, known())
    machine = made.manifest.machine.model_copy(update={"facts": {"machine.id": MACHINE}})
    here = replace(made, manifest=made.manifest.model_copy(update={"machine": machine}), results=tmp_path)
    assert words in " ".join(kind.text(here, tmp_path, Surface(width=200)).split())
    assert words in (kind.exporters()["markdown"].export(here, None) or "")
    assert words in SweepResult(here)._repr_html_()
    assert {row["busbw_limit_bytes_per_s"] for row in collective_rows(here)} == {2e10}
    assert json.loads(kind.as_json(replace(here, results=None), tmp_path))["collectives"] == collective_rows(here)


@pytest.mark.parametrize(
    ("collective", "replicas", "most"),
    [
        ("all_reduce", 2, 6e10 / 3),
        ("all_reduce", 3, 6e10 * (4 / 3) / 4),
        ("reduce_scatter", 2, 6e10 * (1 / 2) / 3),
        ("all_gather", 3, 6e10 * (2 / 3) / 2),
    ],
)
def test_in_memory_each_buffer_is_read_and_a_result_is_written(
    collective: str, replicas: int, most: float, tmp_path: Path
) -> None:
    of = RING.model_copy(update={"collective": collective, "replicas": replicas})
    made = run_of([of], tmp_path)
    [cell] = summarise(made.manifest, made.trials).cells
    found = bus_limit([cell], known())
    assert found is not None
    assert found.bytes_per_s == pytest.approx(most)


def test_a_broadcast_in_shared_memory_need_move_nothing_and_has_no_limit(tmp_path: Path) -> None:
    made = run_of([RING.model_copy(update={"collective": "broadcast"})], tmp_path)
    assert bus_limit(summarise(made.manifest, made.trials).cells, known()) is None


def test_the_limit_over_an_emulated_network_is_the_links_and_the_hosts_of_a_launcher_have_another_machines(
    tmp_path: Path,
) -> None:
    over = BETWEEN.model_copy(update={"workers": 2, "replicas": 1, "network": "rate=1gbit"})
    cells = cells_of(over, tmp_path)
    assert bus_limit(cells, known()) is None, "nobody measured the network"
    link = NetworkRecord(round_trip_s=1e-3, bandwidth_bits_per_s=9.6e8, congestion_control="bbr")
    measured = [replace(cell, trials=replace(cell.trials, network=link)) for cell in cells]
    assert bus_limit(measured, known()) == BusLimit("the network", 1.2e8)
    assert bus_limit(cells_of(RING, tmp_path / "one"), known(), "slurm") is None


def test_between_the_processes_of_one_machine_it_is_what_one_sends_another_where_that_was_measured(
    tmp_path: Path,
) -> None:
    between = BETWEEN.model_copy(update={"workers": 2, "replicas": 1, "network": ""})
    cells = cells_of(between, tmp_path)
    assert bus_limit(cells, known()) == BusLimit("memory", 2e10), "an earlier version measured no more"
    sent = Limit(
        quantity="between_processes", type="bytes", device="cpu", threads=2, rates=[4e9, 3e9], sizes=[1, 1],
        repetitions=[3, 3],
    )  # fmt: skip
    limits = known().model_copy(update={"limits": [*known().limits, sent]})
    assert bus_limit(cells, limits) == BusLimit("TCP between processes", 4e9)
