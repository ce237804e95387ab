"""The answer beside the base case of one process on all cores: what distributing is held against on virtual devices."""

import re
from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.record.manifest import DeviceRecord
from harness.record.reading import load_run
from harness.record.trial import TrialRecord
from harness.report.figures import throughput_figure
from harness.report.words.answer import answer_lines
from harness.report.words.brief import brief_lines
from tests.comparisons import scaled
from tests.report.answers import said
from tests.report.workloads import workload
from tests.synthetic import failed, make_cell, make_run, unproved

ROOT = Path(__file__).parents[2]


def on_two_cores(whole: float = 1.0, **kwargs: object) -> str:
    """One device, two cores and two replicas; `whole` is the factor on the step time of one process on both cores."""

    def slower(record: TrialRecord) -> TrialRecord:
        return scaled(record, whole) if record.cell == WHOLE else record

    cells = [make_cell("none"), WHOLE, make_cell("mirrored", 2)]
    return said(cells, faults=False, change=slower, **kwargs)


WHOLE = make_cell("none", intra_op_threads=2)


def test_distributing_pays_against_the_better_of_one_device_and_the_whole_machine() -> None:
    better = "no strategy on all 2 cores"
    text = on_two_cores(0.8)
    assert re.match(rf"Distribute: mirrored, 2 replicas, .* 1\.\d\d× \[1\.\d\d – 1\.\d\d\] {better}\.\n", text)
    assert re.search(rf"On these virtual devices distributing pays: .* \({better}, batch 32\);", text)
    one = on_two_cores(1.1)
    assert re.match(r"Distribute: mirrored, 2 replicas, .* 1\.\d\d× \[1\.\d\d – 1\.\d\d\] no strategy\.\n", one)
    assert "(no strategy, one device, batch 32);" in one


def test_where_one_process_on_all_cores_is_faster_the_advice_is_not_to_distribute() -> None:
    text = on_two_cores(0.4)
    assert text.startswith("Do not distribute: no strategy on all 2 cores, batch 32, ")
    assert "On these virtual devices do not distribute: the best distributed cell (mirrored, 2 replicas" in text
    assert "the fastest cell without a strategy (no strategy on all 2 cores, batch 32)" in text


def test_faster_than_one_virtual_device_is_no_claim_where_the_whole_machine_was_not_measured() -> None:
    text = said()
    assert text.startswith("Faster than one device; against the whole machine not measured.\n")
    assert "Whether distributing pays is unknown: the fastest has 1.88× [1.86 – 1.89]" in text
    assert "the whole machine without a strategy, which one would run instead, was not measured." in text
    assert "istributing pays:" not in text
    slower = said([make_cell("none"), make_cell("mirrored", 2)], physical=1)
    assert "On these virtual devices do not distribute: the best" in slower  # as it would be against a faster base


def test_one_device_that_is_all_of_the_processor_is_the_whole_machine_and_no_virtual_device() -> None:
    cells, whole = [make_cell("none", device="whole-cpu"), make_cell("mirrored", 2, device="whole-cpu")], DeviceRecord
    text = said(cells, faults=False, devices={"whole-cpu": whole(on_processors=True)})
    assert text.startswith("Distribute: mirrored, 2 replicas")
    assert "\nDistributing pays: " in text
    parts = said(cells, faults=False, devices={"whole-cpu": whole(on_processors=True, virtual=True)})
    assert parts.startswith("Faster than one device; against the whole machine not measured.\n")


def test_a_whole_machine_without_a_figure_was_not_measured() -> None:
    cells = [make_cell("none"), WHOLE, make_cell("mirrored", 2)]
    died = said(cells, faults=False, change=lambda it: failed(it, "crashed", "died") if it.cell == WHOLE else it)
    assert died.startswith("Faster than one device; against the whole machine not measured.\n")


def test_a_whole_machine_that_could_not_be_proved_is_not_said_to_be_unmeasured() -> None:
    cells = [make_cell("none"), WHOLE, make_cell("mirrored", 2)]
    summary = summarise(*make_run(cells, faults=False, change=lambda it: unproved(it) if it.cell == WHOLE else it))
    text, glance = "\n".join(answer_lines(summary)), "\n".join(brief_lines(summary))
    assert text.startswith("Faster than one device; against the whole machine not measured and proved.\n")
    assert "the whole machine without a strategy, which one would run instead, was not measured and proved." in text
    assert "one device; the whole machine without a strategy was not measured and proved." in glance


GAINS = "The gain is of these processors: what more devices would give, replicas that share them do not tell."


def test_overhead_and_a_gain_never_stand_in_one_answer() -> None:
    run = load_run(ROOT / "results" / "reference")
    kept = "\n".join(answer_lines(summarise(run.manifest, run.trials)))
    shared = said([make_cell("none"), make_cell("mirrored", 3)], faults=False)
    for text in (on_two_cores(0.8), said(), shared):
        assert GAINS in text
        assert "overhead" not in text
    assert (GAINS in kept) != ("overhead" in kept)
    for text in (on_two_cores(0.3), on_two_cores(0.3, physical=1)):
        assert GAINS not in text
        assert "overhead, not hardware scaling" in text


@pytest.mark.parametrize(
    ("blocks", "most", "run"), [(4, "fastest", ", what one would run instead"), (1, "highest", "")]
)
def test_the_line_across_is_what_one_would_run_where_it_is_the_fastest_without_a_strategy(
    blocks: int, most: str, run: str
) -> None:
    wide = make_cell("none", intra_op_threads=2)
    cells = [make_cell("none"), wide, make_cell("mirrored", 2), make_cell("mirrored", 3)]
    work = workload(cells, blocks=blocks, faults=False, change=lambda it: scaled(it, 0.5) if it.cell == wide else it)
    picture = throughput_figure(work, "fig")
    assert picture is not None
    assert f", the {most} of its 2 base cases. " in picture.caption
    assert re.search(rf"examples/s \(none ×1 b32 2 threads\){run}( of any strategy)?\. Each point", picture.caption)
    assert picture.caption.startswith(f"The {most} distributed cell, ")
