"""What the check of the servers says of the additions that it finds, and how workers read a user's own data."""

import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow.loops._coordinator import CoordinatorLoop
from harness.engines.tensorflow.strategies.parameter_server import miscounted


def test_additions_that_were_each_made_once_are_no_evidence_however_many() -> None:
    assert miscounted([1] * 8 * 128) is None


def test_what_was_lost_and_what_was_made_twice_is_named() -> None:
    said = miscounted([1, 0, 1, 2])
    assert said == "of 4 additions to one variable, each to be made once: number 1 0 times, number 3 2 times"


def test_of_many_wrong_ones_the_first_are_named() -> None:
    assert str(miscounted([0] * 7)).endswith("number 4 0 times and 2 more")


class _Batches(Iterator[Any]):
    """What workers read from."""

    def __next__(self) -> Any:
        raise StopIteration


class _Reading(CoordinatorLoop):
    """A loop of which nothing is built; as workers begin to read it is seen whether `garbage` still lies in memory."""

    def __init__(self, gives: str) -> None:
        self._training: Any = SimpleNamespace(batches=[], source=SimpleNamespace(gives=gives))
        self._coordinator: Any = SimpleNamespace(create_per_worker_dataset=lambda made: made())
        garbage: Any = _Batches()
        garbage.itself = garbage
        self.garbage = weakref.ref(garbage)

    def _input(self) -> Callable[[], Any]:
        return self._made

    def _made(self) -> Iterator[Any]:
        self.lay_there = self.garbage() is not None
        made = _Batches()
        self.read = weakref.ref(made)
        return made


@pytest.mark.parametrize("gives", ["own", "images"])
def test_while_workers_read_data_whose_python_code_runs_here_nothing_that_would_wait_for_them_is_let_go_of(
    gives: str,
) -> None:
    gc.disable()
    try:
        loop = _Reading(gives)
        loop.run(SimpleNamespace(begin=lambda: 0, end=lambda _: None))  # type: ignore[arg-type]
    finally:
        gc.enable()
    read = loop.read
    assert loop.lay_there == (gives != "own")
    del loop
    gc.collect()
    assert read() is not None
