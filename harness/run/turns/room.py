"""Whether one more live trial fits the memory of GPUs: the devices are asked, as the host is."""

from harness.environment.cards import Cards

CARD_RESERVE = 0.1
"""Share of a card's memory that stays free: what proves a trial at its end has a model of its own."""
LEAST_TAKEN_BYTES = 2**26
"""A card on which trials took less is none that they use: starting CUDA there alone takes more."""


class CardRoom:
    """Room on every card for one more of the trials that are set up; counted from when this is made."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards
        self._free = self._free_now()
        self._each: dict[str, int] = {}
        """Of each card, the most that trials took of it which were set up since it was last asked, by their number."""
        self._live = 0

    def learn(self, live: int) -> None:
        """`live` trials are set up by now: what those took that are new."""
        now, new = self._free_now(), live - self._live
        if new > 0:
            for card, free in now.items():
                taken = (self._free.get(card, free) - free) // new
                self._each[card] = max(self._each.get(card, 0), taken)
        self._free, self._live = now, live

    def fits(self, setting_up: int = 0) -> bool:
        """Whether another one does, while `setting_up` may still take theirs. True while nothing is known of any."""
        for card, each in self._each.items():
            memory = self._cards.memory(card) if each >= LEAST_TAKEN_BYTES else None
            if memory is not None and memory.free - setting_up * each <= each + CARD_RESERVE * memory.total:
                return False
        return True

    def _free_now(self) -> dict[str, int]:
        found = {card: self._cards.memory(card) for card in self._cards.ids}
        return {card: memory.free for card, memory in found.items() if memory is not None}
