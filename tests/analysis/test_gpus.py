"""Clocks that were held down and energy, from records of GPUs to what a reader is told."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.analysis import summarise
from harness.analysis.comparison import compare_runs
from harness.analysis.estimates.verdict import Margins
from harness.analysis.gpus import clock_readings, gpu_windows
from harness.record import TrialRecord
from harness.record.gpus import GpuRecord
from harness.report.figures import clocks_figure
from harness.report.tables.sweep import ranking_table
from harness.report.words.answer import answer_lines
from tests.comparisons import sweep_run
from tests.record.examples import trial
from tests.synthetic import make_cell, make_run

CELLS = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]


def read(record: TrialRecord, *cards: dict[str, Any]) -> TrialRecord:
    """The trial with those cards, each figure the same in every window."""
    assert record.windows is not None
    count = len(record.windows.seconds)
    gpus = [
        GpuRecord(id=str(n), **{key: [value] * count for key, value in card.items()}) for n, card in enumerate(cards)
    ]
    return TrialRecord.model_validate(record.model_dump() | {"gpus": gpus})


def hot(strategy: str) -> Callable[[TrialRecord], TrialRecord]:
    """Cards are too hot under the trials of one strategy, and take 50 J a window under all."""
    return lambda record: read(
        record, {"slowed": "too hot" if record.cell.strategy == strategy else "", "energy_j": 50.0}
    )


def test_energy_is_that_of_all_cards_over_the_measured_windows_by_their_work() -> None:
    found = gpu_windows([read(trial(), {"energy_j": 30.0}, {"energy_j": 34.0})])
    assert found is not None
    assert found.joules_each == pytest.approx(64.0 / (10 * 64))  # steps of a window, examples of a step
    assert (found.read, found.slowed) == (0, 0)


def test_a_window_of_which_one_card_did_not_tell_its_energy_does_not_count() -> None:
    first = read(trial(), {"energy_j": 32.0}, {"energy_j": 32.0})
    known, other = first.gpus
    gaps = [None if number % 2 else 32.0 for number in range(len(other.energy_j))]
    halved = first.model_copy(update={"gpus": [known, other.model_copy(update={"energy_j": gaps})]})
    found = gpu_windows([halved])
    assert found is not None
    assert found.joules_each == pytest.approx(64.0 / 640)
    assert gpu_windows([read(trial(), {"energy_j": 32.0}, {"sm_clock_mhz": 900})]) is None


def test_a_window_is_slowed_when_one_card_is_and_warm_up_does_not_count() -> None:
    found = gpu_windows([read(trial(), {"slowed": ""}, {"slowed": "power cap, too hot"})])
    assert found is not None
    assert found.words == "10 of 10 windows (power cap, too hot)"
    assert gpu_windows([trial()]) is None


def test_a_record_whose_gpus_were_read_in_other_windows_than_its_own_is_refused() -> None:
    for lists in ({"energy_j": [1.0]}, {"slowed": [""] * 12, "energy_j": [1.0] * 11}):
        with pytest.raises(ValueError, match=r"differ in length|another number of windows"):
            TrialRecord.model_validate(trial().model_dump() | {"gpus": [{"id": "a", **lists}]})
    with pytest.raises(ValueError, match="less than or equal"):
        read(trial(), {"power_w": 1e300})


def test_records_without_gpus_are_written_as_before_and_those_with_read_back() -> None:
    assert "gpus" not in trial().model_dump_json()
    there = read(trial(), {"sm_clock_mhz": 1980, "power_w": 640.5, "temperature_c": 61, "slowed": ""})
    assert TrialRecord.model_validate_json(there.model_dump_json()) == there


def test_a_report_says_where_clocks_were_held_down_and_what_an_example_took() -> None:
    summary = summarise(*make_run(CELLS, faults=False, change=hot("mirrored")))
    [work] = summary.workloads
    text = "\n".join(answer_lines(summary))
    assert "A GPU's clock was held down in " in text
    assert "most often those of mirrored ×2" in text
    table = ranking_table(work, summary.noise)
    assert table.columns[-1].name == "J/example"
    assert all(row[-1] not in ("", "–") for row in table.rows)
    plain = summarise(*make_run(CELLS, faults=False))
    assert "clock was held down" not in "\n".join(answer_lines(plain))
    assert ranking_table(plain.workloads[0], plain.noise).columns[-1].name == "trials"


def clocked(record: TrialRecord) -> TrialRecord:
    """Two cards, of which the first is too hot from the second block on and then has a lower clock."""
    hot = record.block > 0
    first = {"sm_clock_mhz": 1200 if hot else 1980, "slowed": "too hot" if hot else "", "energy_j": 50.0}
    return read(record, first, {"sm_clock_mhz": 1970, "slowed": "", "energy_j": 50.0})


def test_clocks_are_shown_by_turn_and_cells_that_took_turns_have_theirs_in_common() -> None:
    _, trials = make_run(CELLS, blocks=2, faults=False, change=clocked)
    readings = clock_readings(trials)
    windows = sum(len(trial.windows.seconds) for trial in trials if trial.windows is not None)
    assert len(readings) == 2 * windows
    own = [one for one in readings if one.card == "0"]
    assert [one.turn for one in own] == sorted(one.turn for one in own)
    assert {one.cell_id for one in own if one.turn == 0} == {cell.cell_id for cell in CELLS}
    turned = [one.turn for one in own if one.slowed]
    assert min(turned) > max(one.turn for one in own if not one.slowed)
    drawn = clocks_figure(readings, "clocks")
    assert drawn is not None
    assert f"A clock was held down in {len(turned)} windows of {len(readings):,}: too hot." in drawn.caption
    assert "GPU 0: 1,200 to 1,980 MHz" in drawn.svg


def test_where_no_clock_was_read_no_figure_of_clocks_stands() -> None:
    _, trials = make_run(CELLS, faults=False)
    assert clock_readings(trials) == []
    assert clocks_figure([], "clocks") is None
    partly = [read(trials[0], {"power_w": 300.0})]
    assert clock_readings(partly) == []


def test_a_comparison_says_on_which_side_clocks_were_held_down() -> None:
    a, b = (sweep_run(f"run-{n}", CELLS, seed=n, change=hot(at)) for n, at in ((1, "nothing"), (2, "mirrored")))
    said = [remark for remark in compare_runs(a, b, Margins()).remarks if "clock was held down" in remark]
    assert len(said) == 1
    assert said[0].startswith("mirrored ×2")
    assert "in 0 of " in said[0]
    assert "windows (too hot) of B" in said[0]
