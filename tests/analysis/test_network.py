"""Curves against the speed of the network: who is on them, and what the ring's cost formula expects."""

import pytest

from harness.analysis.network import network_curves, ring_round_trips, ring_s
from harness.record.trial import Executed, TrialRecord
from tests.networks import RATES, as_the_ring_costs, messages_round_trips, networked, on
from tests.synthetic import failed, make_cell


def test_the_ring_sends_each_byte_nearly_twice_and_waits_for_each_round_trip() -> None:
    megabyte, second_there_and_back = [10**6], 1.0
    assert ring_s(2, megabyte, 0.0, 8e6) == pytest.approx(1.0)
    assert ring_s(4, megabyte, 0.0, 8e6) == pytest.approx(1.5)
    assert ring_s(4, [0, 0], second_there_and_back, 8e6) == pytest.approx(2 * 4.5)
    assert ring_s(1, megabyte, 1.0, 8e6) == 0


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_the_round_trips_are_those_of_the_messages_that_the_log_of_tensorflow_shows(ranks: int) -> None:
    alone, in_a_row = messages_round_trips(ranks)
    assert alone == ranks + 0.5
    assert ring_round_trips(ranks) == pytest.approx(in_a_row, rel=0.06)


def test_a_curve_is_what_differs_in_the_rate_only_and_the_slowest_network_is_first() -> None:
    work = networked([on(text, batch_size=batch) for batch in (32, 64) for text in reversed(RATES)])
    curves = network_curves(work)
    assert [curve.label.rpartition(" ")[2] for curve in curves] == ["b32", "b64"]
    for curve in curves:
        assert [point.summary.trials.cell.network for point in curve.points] == list(RATES)


def test_a_delay_has_a_curve_of_its_own_and_the_loopback_stands_beside_the_shortest() -> None:
    delayed = [f"{text},delay=2ms" for text in RATES[:2]]
    curves = network_curves(networked([on(text) for text in (*delayed, *RATES, "")]))
    assert [curve.label for curve in curves] == [
        "multi_worker_mirrored 2 workers ×1 b32",
        "multi_worker_mirrored 2 workers ×1 b32, delay 2 ms",
    ]
    assert curves[0].loopback is not None
    assert curves[0].loopback.network is None
    assert curves[1].loopback is None


def test_each_congestion_control_has_a_curve_of_its_own() -> None:
    governed = [f"{text},congestion={name}" for name in ("bbr", "cubic") for text in RATES[:2]]
    curves = network_curves(networked([on(text) for text in (*RATES, *governed)]))
    assert [curve.label.rpartition(" b32")[2] for curve in curves] == ["", ", bbr", ", cubic"]
    assert [len(curve.points) for curve in curves] == [len(RATES), 2, 2]


def test_where_nothing_is_hidden_the_formula_is_what_is_measured() -> None:
    curves = network_curves(networked([on(text) for text in (*RATES, "rate=100mbit,delay=2ms", "delay=2ms")]))
    assert len(curves) == 2
    for curve in curves:
        assert [point.expected_over_measured for point in curve.points] == pytest.approx([1.0] * len(curve.points))
    assert curves[0].points[0].step_s > 2 * curves[0].points[-1].step_s


def test_a_step_that_hides_its_communication_is_above_what_the_formula_expects() -> None:
    def hidden(record: TrialRecord) -> TrialRecord:
        return as_the_ring_costs(record).model_copy(update={"step_time_s": record.step_time_s})

    slowest, *_, fastest = network_curves(networked([on(text) for text in RATES], hidden))[0].points
    assert slowest.expected_over_measured is not None
    assert slowest.expected_over_measured < 0.5
    assert fastest.expected_over_measured == pytest.approx(1.0)


def test_what_is_no_ring_has_no_expectation() -> None:
    def sent(record: TrialRecord) -> TrialRecord:
        return as_the_ring_costs(record).model_copy(update={"executed": Executed(fingerprint="x")})

    points = network_curves(networked([on(text) for text in RATES], sent))[0].points
    assert [point.expected_step_s for point in points] == [None, None, None]


def test_a_cell_that_is_not_ok_is_on_no_curve() -> None:
    def refused(record: TrialRecord) -> TrialRecord:
        if record.cell.network == "unshaped":
            return failed(record, "unsupported", "emulated networks need root", phase="start")
        return as_the_ring_costs(record)

    [curve] = network_curves(networked([on(text) for text in RATES], refused))
    assert [point.summary.trials.cell.network for point in curve.points] == list(RATES[:2])


def test_the_same_program_on_two_networks_is_not_the_same_experiment() -> None:
    work = networked([on(text) for text in RATES])
    assert all(not cell.same_experiment_as for cell in work.cells)


def test_one_worker_is_the_own_base_of_every_network() -> None:
    alone = make_cell("multi_worker_mirrored", 1)
    work = networked([alone, *(on(text) for text in RATES)])
    bases = {cell.vs_own.base_id for cell in work.cells if cell.trials.cell.network and cell.vs_own}
    assert bases == {alone.cell_id}


def test_ops_are_compared_on_the_same_network_only() -> None:
    work = networked([on(text, op=op) for text in RATES for op in ("auto", "ring")])
    assert [len(group.results) for group in work.ops] == [2, 2, 2]
    assert all(group.label.endswith(f", {text}") for group, text in zip(work.ops, RATES, strict=True))
    assert work.ops[0].label.endswith(", rate=100mbit")
