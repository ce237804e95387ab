"""Which cards a process computes on, by what TensorFlow shows it and what CUDA's driver says of a number."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow import cards
from harness.engines.tensorflow.cards import cards_in_use

GPUS = ("/device:GPU:0", "/device:GPU:1")


@pytest.fixture
def host(tf: Any, monkeypatch: pytest.MonkeyPatch) -> dict[int, str | None]:
    """Cards by CUDA's number; this process has taken the last two of four."""
    names: dict[int, str | None] = {2: "third", 3: "fourth"}
    visible = [SimpleNamespace(name=f"/physical_device:GPU:{number}") for number in names]
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: visible)
    monkeypatch.setattr(cards, "card_at", names.get)
    return names


def test_a_process_names_the_cards_that_it_took_and_not_the_first_of_its_host(host: dict[int, str | None]) -> None:
    assert cards_in_use(GPUS) == ["third", "fourth"]
    host[3] = None
    assert cards_in_use(GPUS) == []


@pytest.mark.usefixtures("host")
def test_a_trial_on_processors_names_no_card_though_there_are_some() -> None:
    assert cards_in_use(["/device:CPU:0"]) == []
