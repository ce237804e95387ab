"""Windows of equal time for all that is compared, from the first block to the last."""

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.protocol.messages import Report, Request
from harness.record.trial import TrialRecord, Windows
from harness.run.interrupts import Interrupts
from harness.run.turns.live import LiveTrial, Slot
from harness.run.turns.steps import ALIKE_WITHIN, COST_S, StepCounts
from harness.spec import Cell
from tests.record.examples import cell, trial
from tests.run.fakes import Bench, Play

ONE, TWO, THREE = cell(), cell(cross_device_op="nccl"), cell(replicas=3, global_batch_size=96)
SWEPT = [cell(batch_size=size, global_batch_size=2 * size) for size in range(1, 13)]
SEEN = (0.0061, 0.007, 0.0112, 0.0127, 0.0162, 0.0177, 0.0198, 0.0214, 0.0326, 0.0352, 0.0488, 0.0505)
"""Seconds of a step of the default sweep's cells on two cores."""
COST = 0.002
"""Seconds that a window costs beside its steps: what unequal windows make of it, is no property of the cells."""


def live(
    of: Cell, step_s: float | None, side: str | None = None, window_s: float = 0.1, instrument: str = ""
) -> LiveTrial:
    """A trial that waits for its first turn; a step took `step_s` in its pilot, None where it never got so far."""
    slot = Slot("run", 0, "g", 0, 1, "turns")
    request = Request(
        cell=of, seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1, instrument=instrument
    )
    waiting = LiveTrial(of, slot, None, request, 1.0, Interrupts(), side=side)  # type: ignore[arg-type]
    if step_s is not None:
        waiting.pilot = Report(ready=True, step_seconds=step_s, window_seconds=max(window_s, step_s))
    return waiting


def agreed(counts: StepCounts, *trials: LiveTrial) -> list[int | None]:
    counts.agree(trials)
    return [one.steps for one in trials]


def both(a: float | None, b: float | None, cells: tuple[Cell, Cell] = (ONE, TWO)) -> list[LiveTrial]:
    return [live(cells[0], a, "a"), live(cells[1], b, "b")]


def of_sweep(steps: Sequence[float], counts: StepCounts | None = None) -> list[float]:
    """How long a window of each cell lasts, were every step as long as in the pilot."""
    chosen = agreed(counts or StepCounts(), *(live(*pair) for pair in zip(SWEPT, steps, strict=False)))
    return [step_s * (count or 0) for step_s, count in zip(steps, chosen, strict=True)]


@pytest.mark.parametrize("slower", [0.4, 0.7, 1.0, 1.2, 1.4, 1.7, 1.9])
def test_windows_of_a_sweeps_cells_last_about_equally_long_and_about_what_was_asked_for(slower: float) -> None:
    lasting = of_sweep([slower * step_s for step_s in SEEN])
    assert min(lasting) >= 0.1 - 1e-9, "as each pilot says"
    assert sum(lasting) / len(lasting) < 0.14
    assert COST / min(lasting) - COST / max(lasting) <= 0.007


@pytest.mark.parametrize(
    "steps", [(0.005, 0.03, 0.07), (0.0999, 0.1001, 0.011), (0.051, 0.034, 0.099), (0.15, 0.16, 0.005)]
)
def test_no_window_that_is_compared_is_shorter_than_was_asked_for(steps: tuple[float, ...]) -> None:
    lasting = of_sweep(steps)
    assert min(lasting) >= 0.1 - 1e-9
    assert max(lasting) <= 2 * max(0.1, *steps) + 1e-9


def test_steps_that_fill_a_window_exactly_are_not_one_more_for_rounding() -> None:
    assert [of_sweep([step_s]) for step_s in (0.1, 0.05, 0.02, 0.1 / 3, 0.1 / 7)] == [[pytest.approx(0.1)]] * 5


def test_a_cell_whose_step_is_longer_than_a_window_sets_the_time_of_all() -> None:
    assert of_sweep([0.15, 0.005, 0.05]) == pytest.approx([0.15, 0.15, 0.15])


def test_a_cell_that_needs_more_than_twice_as_long_does_not() -> None:
    assert of_sweep([0.25, 0.005, 0.05]) == pytest.approx([0.25, 0.1, 0.1])


def test_a_lone_cell_has_windows_of_the_fewest_steps_that_last_as_long_as_was_asked_for() -> None:
    assert of_sweep([0.07]) == pytest.approx([0.14])
    assert of_sweep([0.009]) == pytest.approx([0.108])


def test_cells_of_a_later_group_have_windows_as_long_as_those_before_them() -> None:
    counts = StepCounts()
    agreed(counts, live(ONE, 0.15), live(TWO, 0.01))
    assert agreed(counts, live(THREE, 0.005)) == [30]


def test_a_noisy_pilot_moves_the_length_of_windows_by_no_more_than_its_own_error(tmp_path: Path) -> None:
    chance = random.Random(1)
    paces = {one.cell_id: step_s for one, step_s in zip(SWEPT, SEEN, strict=True)}

    class Noisy(Play):
        def ready(self) -> Report:
            seen = self.seconds(0) * chance.uniform(0.93, 1.07)
            return Report(ready=True, sync_seconds=0.0002, steps=1, step_seconds=seen, window_seconds=max(0.1, seen))

    def plays(request: object) -> Play:
        pace = paces[request.cell.cell_id]  # type: ignore[attr-defined]
        return Noisy(steps=1, seconds=lambda _: pace)

    run = Bench(tmp_path, SWEPT, plays, sweep={"trials": 2, "window": 0.1}).start()
    first, second = (
        [time for record in run.trials if record.windows and record.block == block for time in record.windows.seconds]
        for block in (0, 1)
    )
    assert len(first) == len(second) == len(SWEPT) * 5
    assert min(first) >= 0.1 / 1.07 - 1e-9
    assert COST / min(first) - COST / max(first) < 0.007 + 2 * 0.07 * COST / 0.1
    assert min(second) >= 0.1 - 1e-6, "by what those of the first block lasted"
    assert COST / min(second) - COST / max(second) < 0.007 + 1e-6


def test_after_the_first_block_a_cell_has_the_windows_that_its_steps_need_and_not_its_cold_pilot() -> None:
    def first(of: Cell, steps: int, step_s: float) -> TrialRecord:
        windows = trial().windows
        assert windows is not None
        taken = windows.model_copy(
            update={"steps_per_window": steps, "seconds": [steps * step_s] * len(windows.seconds)}
        )
        return trial(0, cell=of, cell_id=of.cell_id, windows=taken)

    counts = StepCounts()
    assert agreed(counts, live(ONE, 0.02), live(TWO, 0.15)) == [8, 1]
    counts.choose_again([first(ONE, 8, 0.01), first(TWO, 1, 0.12)], 0.1)
    assert agreed(counts, live(ONE, 0.03), live(TWO, 0.2)) == [12, 1], "the later pilots have no say"


def test_sides_whose_steps_are_alike_share_the_larger_number() -> None:
    for a, b in ((0.025, 0.025), (0.025, 0.017), (0.012, 0.024), (0.024, 0.012), (0.1, 0.055)):
        numbers = agreed(StepCounts(), *both(a, b))
        assert numbers == [max(math.ceil(0.1 / a - 1e-9), math.ceil(0.1 / b - 1e-9))] * 2


def test_sides_whose_steps_are_more_than_twice_apart_have_windows_of_equal_time() -> None:
    assert agreed(StepCounts(), *both(0.025, 0.01)) == [4, 10]
    assert agreed(StepCounts(), *both(0.01, 0.05)) == [10, 2]


def test_sides_of_which_a_step_is_not_the_same_work_have_windows_of_equal_time_however_alike_their_steps() -> None:
    small, large = cell(batch_size=32, global_batch_size=64), cell(batch_size=64, global_batch_size=128)
    numbers = agreed(StepCounts(), *both(0.010, 0.019, (small, large)))
    lasting = [count * step_s for count, step_s in zip(numbers, (0.010, 0.019), strict=True)]
    assert COST_S / min(lasting) - COST_S / max(lasting) <= ALIKE_WITHIN
    assert agreed(StepCounts(), *both(0.010, 0.019)) == [10, 10]


def test_trials_of_one_cell_share_the_larger_number_however_far_their_pilots_are_apart() -> None:
    assert agreed(StepCounts(), *both(0.05, 0.01, (ONE, ONE))) == [10, 10]


def test_what_the_first_block_chose_holds_for_the_later_ones() -> None:
    counts = StepCounts()
    agreed(counts, *both(0.025, 0.02))
    assert agreed(counts, *both(0.003, 0.1)) == [5, 5]
    assert agreed(counts, *both(0.003, None)) == [5, 5]


def test_numbers_that_differ_hold_as_well() -> None:
    counts = StepCounts()
    agreed(counts, *both(0.025, 0.005))
    assert agreed(counts, *both(0.02, 0.02)) == [4, 20]


def test_a_side_that_is_first_set_up_in_a_later_block_joins_the_number_that_holds() -> None:
    for late in (0.033, 0.025, 0.02, 0.0125):
        counts = StepCounts()
        agreed(counts, live(ONE, 0.025, "a"))
        assert agreed(counts, *both(0.014, late)) == [4, 4]


def test_such_a_side_keeps_its_own_when_it_is_far_from_the_number_that_holds() -> None:
    counts = StepCounts()
    agreed(counts, live(ONE, 0.025, "a"))
    assert agreed(counts, *both(0.005, 0.005)) == [4, 20]


def test_a_run_that_goes_on_keeps_the_numbers_of_its_latest_trials() -> None:
    def earlier(of: Cell, steps: int, block: int) -> object:
        windows = trial().windows
        assert windows is not None
        seconds = [0.15] * len(windows.seconds)
        taken = Windows(**{**windows.model_dump(), "steps_per_window": steps, "seconds": seconds})
        return trial(block, cell=of, cell_id=of.cell_id, windows=taken)

    records = [earlier(ONE, 3, 0), earlier(TWO, 7, 0), earlier(ONE, 5, 1)]
    counts = StepCounts(records)  # type: ignore[arg-type]
    assert agreed(counts, *both(0.011, 0.011)) == [5, 7]
    assert agreed(counts, live(THREE, 0.03)) == [5], "windows as long as those of the earlier trials"


def test_a_slow_cell_that_ran_first_and_alone_does_not_make_the_windows_of_later_ones_long() -> None:
    counts = StepCounts()
    assert agreed(counts, live(ONE, 10.0)) == [1]
    assert agreed(counts, live(TWO, 0.01)) == [10]
    assert agreed(counts, live(THREE, 10.0)) == [1]


def test_where_no_pilot_came_so_far_nothing_is_chosen() -> None:
    counts = StepCounts()
    assert agreed(counts, *both(None, None)) == [None, None]
    assert agreed(counts) == []
    assert agreed(counts, *both(0.033, 0.033)) == [4, 4]


def test_an_instrument_has_steps_of_its_own_in_windows_as_long_and_keeps_them_when_the_run_goes_on() -> None:
    whole, empty = live(ONE, 0.05, "whole"), live(ONE, 0.001, "empty", instrument="empty")
    counts = StepCounts()
    assert agreed(counts, whole, empty) == [2, 100]
    earlier = trial(side="empty")
    assert earlier.windows is not None
    windows = earlier.windows.model_copy(update={"steps_per_window": 100, "seconds": [0.1] * 12})
    checks = earlier.checks.model_copy(update={"gate": "instrument"})
    earlier = earlier.model_copy(update={"windows": windows, "checks": checks})
    again = live(ONE, 0.002, "empty", instrument="empty")
    assert agreed(StepCounts([earlier]), again) == [100]
    assert agreed(StepCounts([earlier]), live(ONE, 0.05, "whole")) == [2]


@pytest.mark.parametrize("step_s", [0.0013, 0.02, 0.3])
def test_windows_are_of_whole_calls_where_a_call_makes_several_steps(step_s: float) -> None:
    single, several = ONE, ONE.model_copy(update={"steps_per_execution": 8})
    of_sweep = agreed(StepCounts(), live(several, step_s))
    a, b = agreed(StepCounts(), *both(step_s, step_s, (single, several)))
    assert [(steps or 1) % 8 for steps in (*of_sweep, b)] == [0, 0]
    assert a == b or step_s == 0.3, "two sides have one number of steps, unless one would wait long for the other"
