"""A machine's limits as a reader sees them."""

from harness.report.limits import limits_json, limits_table
from tests.limits import REASON, limit, limits, missing


def test_the_table_has_the_best_beside_what_a_process_comes_to() -> None:
    table = limits_table(limits())
    assert table.rows[0] == ("matrix product", "float32", "1 thread", "64.0 GFLOP/s", "62.0 [57.2 – 67.2] GFLOP/s", "3")
    assert table.rows[1][:4] == ("memory, STREAM's add", "float64", "1 thread", "13.0 GB/s")
    assert len(table.rows) == 2


def test_what_was_not_measured_is_named_with_its_reason_once() -> None:
    both = limits(limits=[limit(), missing(), missing(quantity="device_to_host")])
    assert limits_table(both).note.endswith(
        f"\nNot measured: copy from host to device (bytes, GPU) and copy from device to host (bytes, GPU): {REASON}."
    )


def test_the_prefix_is_that_of_the_limit() -> None:
    fast, slow = limit(device="gpu", threads=0, rates=[2e12], sizes=[8192], repetitions=[9]), limit(rates=[5e6] * 3)
    [first, second] = limits_table(limits(limits=[fast, slow])).rows
    assert first[2:5] == ("GPU", "2.00 TFLOP/s", "2.00 no interval TFLOP/s")
    assert second[3] == "5.00 MFLOP/s"


def test_a_machine_reads_base_units_the_interval_and_the_reason() -> None:
    document = limits_json(limits())
    first, _, last = document["limits"]
    assert (first["limit"], first["unit"], first["processes"]) == (64e9, "FLOP/s", 3)
    low, high = first["reached_interval"]
    assert low < first["reached"] < high
    assert (last["limit"], last["reached"], last["reached_interval"]) == (None, None, None)
    assert last["reason"] == REASON
