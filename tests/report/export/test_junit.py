"""JUnit's XML as the page of tests of a CI system reads it."""

from xml.etree import ElementTree

from harness.record.trial import TrialRecord
from harness.report.export import exporters
from tests.comparisons import as_run
from tests.synthetic import failed, make_cell, make_run


def test_junit_has_a_case_a_cell_which_fails_where_the_cell_is_lost_and_is_skipped_where_it_cannot_run() -> None:
    endings = {
        1: ("wrong_result", "the sum\x00 misses <2>"),
        2: ("unsupported", "no NCCL"),
        3: ("crashed", "signal 11"),
    }
    cells = [make_cell("none", data="tfrecord:a\x1bb*"), *(make_cell("mirrored", count) for count in endings)]

    def ended(record: TrialRecord) -> TrialRecord:
        ending = endings.get(record.cell.replicas) if record.cell.strategy == "mirrored" else None
        return record if ending is None else failed(record, *ending)

    made = as_run(*make_run(cells, blocks=2, faults=False, change=ended), "run", {})
    suite = ElementTree.fromstring(exporters()["junit"].export(made, None) or "")
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "2",
        "skipped": "1",
    }
    assert [case.get("name") for case in suite] == [cell.full_name.replace("\x1b", "\ufffd") for cell in cells]
    assert [[(end.tag, end.get("message")) for end in case] for case in suite] == [
        [],
        [("failure", "wrong result: the sum\ufffd misses <2>")],
        [("skipped", "not supported here: no NCCL")],
        [("failure", "crashed: signal 11")],
    ]
