"""GPUs that are watched while trials have their turns, and what of it is recorded; the cards are not there."""

import threading
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.environment.cards import CardMemory, CardReading
from harness.protocol.messages import WindowTimes
from harness.record import load_run
from harness.record.trial import Resources
from harness.run.progress import Quiet
from harness.run.turns import cards as module
from harness.run.turns.cards import CardWatch, CardWindow, watch_of
from harness.run.turns.figures import Taken, gpus_of
from harness.run.turns.group import TurnGroup, TurnRules
from harness.run.turns.room import CardRoom
from tests.record.examples import cell
from tests.run.fakes import WELL, Bench, FakeChild, Play, all_play
from tests.run.turns.groups import Group

GIB = 2**30
COOL = CardReading(1980, 300.0, 50, 10 * GIB, frozenset())
HOT = CardReading(1200, 250.0, 90, 12 * GIB, frozenset({"too hot", "power cap"}))
ON_GPUS = [
    cell(device="gpu", strategy=name, replicas=n, global_batch_size=32 * n)
    for name, n in (("none", 1), ("mirrored", 2))
]


class FakeCards:
    """Two cards. `a` takes 5 J between any two questions about its energy and gives `readings` in turn; `b` is idle."""

    ids = ("a", "b")

    def __init__(self, *readings: CardReading) -> None:
        self._readings = list(readings) or [COOL]
        self._asked = {"a": 0, "b": 0}
        self.read_so_often = threading.Semaphore(0)

    def read(self, card: str) -> CardReading:
        if card == "b":
            self.read_so_often.release()
            return CardReading(210, None, None, None, None)
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]

    def energy_j(self, card: str) -> float | None:
        self._asked[card] += 1
        return 5.0 * self._asked[card] if card == "a" else None

    def memory(self, card: str) -> CardMemory | None:
        return CardMemory(100 * GIB, 100 * GIB)

    def process_memory(self, card: str, pids: Collection[int]) -> int | None:
        return 9 * GIB if card == "a" and 11 in pids else None

    def wait_for(self, readings: int) -> None:
        for _ in range(readings):
            assert self.read_so_often.acquire(timeout=20)


def watch(*readings: CardReading) -> CardWatch:
    return CardWatch(FakeCards(*readings), period_s=0.001, metered_s=0.0)  # type: ignore[arg-type]


def cards_of(of: CardWatch) -> Any:
    return of.cards


def test_a_window_has_mean_clock_and_power_the_highest_heat_and_every_reason_of_its_readings() -> None:
    watching = watch(COOL, HOT)
    fake = cards_of(watching)
    with watching.watching() as found:
        fake.wait_for(2)
        assert found == {}
    assert found["a"].slowed == "power cap, too hot"
    assert (found["a"].temperature_c, found["a"].memory_used_bytes, found["a"].energy_j) == (90, 12 * GIB, 5.0)
    assert found["a"].sm_clock_mhz is not None
    assert 1200 <= found["a"].sm_clock_mhz <= 1590
    assert found["b"] == CardWindow(sm_clock_mhz=210)


@pytest.mark.parametrize(("metered_s", "joules"), [(0.0, 5.0), (60.0, None)])
def test_a_window_that_is_over_before_the_first_reading_has_no_clock_and_its_energy_unless_too_short_for_that(
    metered_s: float, joules: float | None
) -> None:
    watching = CardWatch(FakeCards(), period_s=60.0, metered_s=metered_s)  # type: ignore[arg-type]
    with watching.watching() as found:
        pass
    assert found == {"a": CardWindow(energy_j=joules), "b": CardWindow()}


def test_nothing_is_read_once_the_turn_is_over_however_it_ends() -> None:
    watching = watch()
    alive = threading.active_count()
    with pytest.raises(KeyboardInterrupt), watching.watching():
        raise KeyboardInterrupt
    assert threading.active_count() == alive


def test_trials_on_processors_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_cards", FakeCards)
    assert watch_of([cell()], "tensorflow") is None
    assert watch_of(ON_GPUS, "tensorflow") is not None
    monkeypatch.setattr(module, "open_cards", lambda: None)
    assert watch_of(ON_GPUS, "tensorflow") is None


def test_a_record_has_every_window_of_the_cards_that_the_trial_names_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = Resources(logical_devices=["/device:GPU:0"], gpus=["a", "of another host"])
    plays = all_play(Play(outcome=WELL.model_copy(update={"resources": resources})))
    monkeypatch.setattr("harness.run.kinds.sweep.watch_of", lambda *_: watch())
    monkeypatch.setattr(FakeChild, "pids", (11,))
    bench = Bench(tmp_path, ON_GPUS, plays)
    bench.start()
    for record in load_run(bench.path).trials:
        assert record.windows is not None
        [gpu] = record.gpus
        assert gpu.id == "a"
        assert gpu.energy_j == [5.0] * len(record.windows.seconds)
        assert gpu.process_memory_bytes == 9 * GIB


def test_without_gpus_a_record_is_written_as_it_was_before_they_were_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [cell()])
    bench.start()
    assert "gpus" not in (bench.path / "trials.jsonl").read_text()


def test_a_window_before_which_an_update_was_proved_and_one_that_came_in_late_have_no_reading() -> None:
    taken = Taken()

    def window(number: int, check_seconds: float = 0.0) -> WindowTimes:
        return WindowTimes(
            round=number,
            steps=1,
            seconds=0.1,
            cpu_seconds=0.1,
            waiting_seconds=0.0,
            waiting_cpu_seconds=0.0,
            check_seconds=check_seconds,
        )

    proved = iter([0.0, 2.5])
    trial: Any = SimpleNamespace(
        taken=taken, take_turn=lambda number: taken.windows.append(window(number, next(proved)))
    )
    group = TurnGroup([], TurnRules(2, 0, 1), lambda _: None, Quiet(), None, watch())
    group._turn(trial, 0)
    group._turn(trial, 1)
    taken.windows.append(window(2))
    [gpu] = gpus_of(taken, ["a"])
    assert gpu.energy_j == [5.0, None, None]


class Filling:
    """A card of 100 GiB, and one that nobody uses and somebody else has nearly filled."""

    ids = ("a", "others")

    def __init__(self, free: float = 100.0) -> None:
        self.free = free

    def memory(self, card: str) -> CardMemory:
        return CardMemory(int((self.free if card == "a" else 1.0) * GIB), 100 * GIB)


def test_another_trial_fits_while_what_the_largest_took_is_free_beside_the_reserve() -> None:
    card = Filling()
    room = CardRoom(card)  # type: ignore[arg-type]
    assert room.fits()
    card.free = 70.0  # the first took 30
    room.learn(1)
    assert room.fits()
    card.free = 60.0  # the second 10, which says nothing of the third
    room.learn(2)
    assert room.fits()
    assert not room.fits(setting_up=1)
    card.free = 39.0
    room.learn(3)
    assert not room.fits()


def test_a_trial_that_ended_and_gave_its_memory_back_is_no_news_of_what_one_takes() -> None:
    card = Filling(50.0)
    room = CardRoom(card)  # type: ignore[arg-type]
    card.free = 100.0
    room.learn(0)
    assert room.fits()
    card.free = 60.0
    room.learn(1)
    card.free = 49.0
    assert not room.fits()


@pytest.mark.parametrize(("fit", "live"), [(5.5, 5), (3.5, 3), (1.5, 2)])
def test_a_group_has_as_many_trials_as_the_cards_have_room_for_and_the_rest_runs_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: float, live: int
) -> None:
    """Each trial takes 10 GiB of a card as soon as it is started."""
    monkeypatch.setattr("harness.run.turns.room.CARD_RESERVE", 0.0)
    cells = [cell(device="gpu", replicas=n, global_batch_size=32 * n) for n in range(2, 8)]
    plays = all_play(Play())

    class Taking(FakeCards):
        def memory(self, card: str) -> CardMemory:
            return CardMemory(int((fit - len(group.zygote.spawned)) * 10 * GIB), 100 * GIB)

    group = Group(tmp_path, plays, cells, together=1)
    group.turns._cards = CardWatch(Taking(), period_s=60.0)  # type: ignore[arg-type]
    waiting = group.run()
    assert len(group.kept) == live
    assert [trial.cell for trial in waiting] == cells[live:]
