"""One number of steps a window for all that is compared as equal, from the first block to the last."""

from harness.record.trial import Windows
from harness.run.interrupts import Interrupts
from harness.run.turns.live import LiveTrial, Slot
from harness.run.turns.steps import StepCounts
from harness.spec import Cell
from tests.record.examples import cell, trial

ONE, TWO, THREE = cell(), cell(cross_device_op="nccl"), cell(replicas=3, global_batch_size=96)


def live(of: Cell, steps: int | None, side: str | None = None) -> LiveTrial:
    """A trial that waits for its first turn; `steps` is what its pilot chose, None where it never got so far."""
    slot = Slot("run", 0, "g", 0, 1, "turns")
    return LiveTrial(of, slot, None, None, 1.0, Interrupts(), side=side, steps=steps)  # type: ignore[arg-type]


def agreed(counts: StepCounts, *trials: LiveTrial) -> list[int | None]:
    counts.agree(trials)
    return [one.steps for one in trials]


def both(a: int | None, b: int | None, cells: tuple[Cell, Cell] = (ONE, TWO)) -> list[LiveTrial]:
    return [live(cells[0], a, "a"), live(cells[1], b, "b")]


def test_sides_whose_pilots_are_alike_share_the_larger_number() -> None:
    for a, b in ((4, 4), (4, 6), (8, 4), (4, 8), (1, 2)):
        assert agreed(StepCounts(), *both(a, b)) == [max(a, b)] * 2


def test_sides_whose_pilots_are_more_than_twice_apart_keep_each_its_own() -> None:
    for a, b in ((4, 9), (9, 4), (1, 3)):
        assert agreed(StepCounts(), *both(a, b)) == [a, b]


def test_trials_of_one_cell_share_the_larger_number_however_far_their_pilots_are_apart() -> None:
    assert agreed(StepCounts(), *both(2, 9, (ONE, ONE))) == [9, 9]


def test_what_the_first_block_chose_holds_for_the_later_ones() -> None:
    counts = StepCounts()
    agreed(counts, *both(4, 6))
    assert agreed(counts, *both(30, 1)) == [6, 6]
    assert agreed(counts, *both(30, None)) == [6, 6]


def test_numbers_that_differ_hold_as_well() -> None:
    counts = StepCounts()
    agreed(counts, *both(4, 20))
    assert agreed(counts, *both(5, 5)) == [4, 20]


def test_a_side_that_is_first_set_up_in_a_later_block_joins_the_number_that_holds() -> None:
    for late in (3, 4, 5, 8):
        counts = StepCounts()
        agreed(counts, live(ONE, 4, "a"))
        assert agreed(counts, *both(7, late)) == [4, 4]


def test_such_a_side_keeps_its_own_when_it_is_far_from_the_number_that_holds() -> None:
    counts = StepCounts()
    agreed(counts, live(ONE, 4, "a"))
    assert agreed(counts, *both(20, 20)) == [4, 20]


def test_a_run_that_goes_on_keeps_the_numbers_of_its_earlier_trials() -> None:
    def earlier(of: Cell, steps: int, block: int) -> object:
        windows = trial().windows
        assert windows is not None
        taken = Windows(**{**windows.model_dump(), "steps_per_window": steps})
        return trial(block, cell=of, cell_id=of.cell_id, windows=taken)

    records = [earlier(ONE, 3, 0), earlier(TWO, 7, 0), earlier(ONE, 5, 1)]
    assert agreed(StepCounts(records), *both(9, 9)) == [3, 7]  # type: ignore[arg-type]


def test_cells_of_a_sweep_keep_each_its_own() -> None:
    assert agreed(StepCounts(), live(ONE, 4), live(TWO, 5), live(THREE, 6)) == [4, 5, 6]


def test_where_no_pilot_came_so_far_nothing_is_chosen() -> None:
    counts = StepCounts()
    assert agreed(counts, *both(None, None)) == [None, None]
    assert agreed(counts) == []
    assert agreed(counts, *both(3, 3)) == [3, 3]
