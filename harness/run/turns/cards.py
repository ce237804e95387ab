"""GPUs while a trial has its turn: read by a thread of the parent, and their counters before and after.

Nothing is read in the trial's own process, whose clock is running, and nothing while nobody has the turn.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.environment.cards import CardReading, Cards, open_cards
from harness.spec.work import Cell
from harness.trial.engines import devices_of

PERIOD_S = 0.04
"""Between two readings: two or three of a window of 0.1 s."""
METERED_S = 1.0
"""Energy is told of windows so long at least. An H100 counts it up once in 0.1 s, in steps of 12 J while idle: of a
shorter window it tells nothing, or what the card did before, for another trial."""


@dataclass(frozen=True)
class CardWindow:
    """One card in one window; see `GpuRecord`, whose lists have a value of each window."""

    sm_clock_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    memory_used_bytes: int | None = None
    slowed: str | None = None
    energy_j: float | None = None


class CardWatch:
    """Watches every card of the machine; which of them a trial uses, it says itself when it ends."""

    def __init__(self, cards: Cards, period_s: float = PERIOD_S, metered_s: float = METERED_S) -> None:
        self.cards = cards
        self._period_s, self._metered_s = period_s, metered_s

    @contextlib.contextmanager
    def watching(self) -> Iterator[dict[str, CardWindow]]:
        """Read the cards while entered; afterwards the dictionary has what each did, by its id."""
        found: dict[str, CardWindow] = {}
        readings: list[dict[str, CardReading]] = []
        over = threading.Event()
        reader = threading.Thread(target=self._read, args=(over, readings), daemon=True)
        before, begun = self._energy(), time.perf_counter()
        reader.start()
        try:
            yield found
        finally:
            over.set()
            reader.join()
            metered = time.perf_counter() - begun >= self._metered_s
            after = self._energy() if metered else dict.fromkeys(self.cards.ids)
            for card in self.cards.ids:
                found[card] = _window([reading[card] for reading in readings], before[card], after[card])

    def process_memory(self, pids: Collection[int]) -> dict[str, int]:
        """Bytes of each card that these processes hold, of the cards of which the driver tells that."""
        sizes = {card: self.cards.process_memory(card, pids) for card in self.cards.ids}
        return {card: size for card, size in sizes.items() if size is not None}

    def _read(self, over: threading.Event, readings: list[dict[str, CardReading]]) -> None:
        while not over.wait(self._period_s):
            readings.append({card: self.cards.read(card) for card in self.cards.ids})

    def _energy(self) -> dict[str, float | None]:
        return {card: self.cards.energy_j(card) for card in self.cards.ids}


def watch_of(cells: Iterable[Cell], *engines: str) -> CardWatch | None:
    """What watches the GPUs under trials of `cells`; None where all compute on processors, or nobody can be asked."""
    devices = devices_of(engines)
    if all(cell.shape.device in devices and devices[cell.shape.device].on_processors for cell in cells):
        return None
    cards = open_cards()
    return None if cards is None else CardWatch(cards)


def _window(readings: Sequence[CardReading], before: float | None, after: float | None) -> CardWindow:
    clocks = [reading.sm_clock_mhz for reading in readings if reading.sm_clock_mhz is not None]
    powers = [reading.power_w for reading in readings if reading.power_w is not None]
    reasons = [reading.slowed for reading in readings if reading.slowed is not None]
    taken = None if before is None or after is None else after - before
    return CardWindow(
        sm_clock_mhz=round(statistics.fmean(clocks)) if clocks else None,
        power_w=round(statistics.fmean(powers), 3) if powers else None,
        temperature_c=max((r.temperature_c for r in readings if r.temperature_c is not None), default=None),
        memory_used_bytes=max((r.memory_used_bytes for r in readings if r.memory_used_bytes is not None), default=None),
        slowed=", ".join(sorted(set[str]().union(*reasons))) if reasons else None,
        energy_j=None if taken is None or taken < 0 else round(taken, 3),
    )
