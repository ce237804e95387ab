"""The figure and the table of network speed."""

import re

from harness.record.trial import TrialRecord
from harness.report.export.rows import cell_row, trial_rows
from harness.report.figures import network_figure
from harness.report.tables.network import bits, network_table
from tests.networks import RATES, as_the_ring_costs, networked, on
from tests.synthetic import failed, make_run


def test_the_figure_is_one_svg_that_says_its_values_in_words() -> None:
    picture = network_figure(networked([on(text) for text in (*RATES, "")]), "fig")
    assert picture is not None
    assert picture.svg.startswith("<svg")
    assert picture.svg.endswith("</svg>")
    assert re.findall(r"#[0-9a-f]{6}\b", picture.svg) == []
    assert "at 100mbit, " in picture.description
    assert "at unshaped" in picture.description
    assert {row["network"] for row in picture.data} == {*RATES, "none"}
    assert all(row["step_s"] > 0 for row in picture.data)
    for tick in ("100mbit", "1gbit", "unshaped", "none", "expected from the ring"):
        assert tick in picture.svg


def test_fewer_than_two_rates_are_no_figure() -> None:
    assert network_figure(networked([on("rate=1gbit"), on("")]), "fig") is None
    assert network_figure(networked([on("rate=1gbit"), on("rate=1gbit,delay=1ms")]), "fig") is None
    assert network_figure(networked([on("")]), "fig") is None


def test_two_rates_of_one_delay_are_a_figure() -> None:
    assert network_figure(networked([on("rate=1gbit,delay=1ms"), on("delay=1ms")]), "fig") is not None


def test_the_table_has_what_was_asked_what_was_measured_and_the_same_without_a_network() -> None:
    table = network_table(networked([on(text) for text in (*RATES, "")]))
    shown = [(*row[1:4], row[9]) for row in table.rows]
    assert shown == [
        ("rate=100mbit", "50.0 µs", "100 Mbit/s", "cubic"),
        ("rate=1gbit", "50.0 µs", "1.00 Gbit/s", "cubic"),
        ("unshaped", "50.0 µs", "8.00 Gbit/s", "cubic"),
        ("none", "–", "–", "–"),
    ]
    steps = [(row[4], row[5]) for row in table.rows[:3]]
    assert all(step == expected for step, expected in steps), "the truth of these is the formula"


def test_a_network_that_is_not_there_is_in_the_table_with_what_became_of_it() -> None:
    def refused(record: TrialRecord) -> TrialRecord:
        if record.cell.network:
            return failed(record, "unsupported", "emulated networks need root", phase="start")
        return as_the_ring_costs(record)

    work = networked([on(text) for text in RATES], refused)
    assert [row[4] for row in network_table(work).rows] == ["not supported here"] * 3
    assert network_figure(work, "fig") is None


def test_without_networks_there_is_no_table() -> None:
    assert network_table(networked([on("")])).rows == ()


def test_bits_are_in_the_units_of_networks() -> None:
    assert [bits(value) for value in (9.47e7, 9.3e9, 950_000.0)] == ["94.7 Mbit/s", "9.30 Gbit/s", "950 kbit/s"]


def test_flat_rows_say_what_each_network_was() -> None:
    work = networked([on("rate=1gbit")])
    rows = {row["network"]: row for row in map(cell_row, work.cells)}
    assert rows["rate=1gbit"]["measured_network.bandwidth_bits_per_s"] == 1e9
    assert rows["rate=1gbit"]["measured_network.congestion_control"] == "cubic"
    assert rows[""]["measured_network.round_trip_s"] is None
    trials = trial_rows([as_the_ring_costs(trial) for trial in make_run([on("rate=1gbit")], faults=False)[1]])
    assert {row["cell.network"] for row in trials} == {"rate=1gbit"}
    assert {row["cluster.isolated"] for row in trials} == {True}
    assert {row["cluster.network.bandwidth_bits_per_s"] for row in trials} == {1e9}


def test_the_caption_says_what_a_slow_network_costs_and_only_what_is_drawn() -> None:
    picture = network_figure(networked([on(text) for text in (*RATES, "")]), "fig")
    assert picture is not None
    assert re.match(
        r"multi_worker_mirrored 2 workers ×1 b32 has [\d.]+ % of its throughput at unshaped left at 100mbit\. Left, ",
        picture.caption,
    )
    assert "'none' is the loopback" in picture.caption
    plain = network_figure(networked([on(text) for text in RATES[:2]]), "fig")
    assert plain is not None
    assert not re.search("unshaped|loopback|are drawn", plain.caption)


def test_curves_that_find_no_room_are_counted_and_in_the_csv() -> None:
    many = [on(text, batch_size=size, global_batch_size=2 * size) for size in range(8, 18) for text in RATES]
    picture = network_figure(networked(many), "fig")
    assert picture is not None
    assert "Of 10 curves the one that a slow network costs most: " in picture.caption
    assert "The first 8 of 10 curves are drawn; the table and the CSV have all." in picture.caption
    assert len({row["curve"] for row in picture.data}) == 10
