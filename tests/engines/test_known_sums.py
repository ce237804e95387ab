"""Known values through an average of processes: what each receives says whether all were in it, and who was not."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.trial.same_work.trainer import ReplicaAProcess

Array = np.ndarray[Any, Any]
Average = Callable[[list[Array], int], Array]
"""(what each process sends, the number of this one) -> what it receives."""


def sum_first(sent: list[Array], _rank: int) -> Array:
    """As Horovod does it, whose sum is of the type that travels."""
    return np.asarray(sum(sent[1:], sent[0]) * sent[0].dtype.type(1 / len(sent)))


def division_first(sent: list[Array], _rank: int) -> Array:
    """As PyTorch's hooks do it."""
    return sum_first([value / value.dtype.type(len(sent)) for value in sent], 0) * sent[0].dtype.type(len(sent))


def trainer_of(rank: int, workers: int, average: Average, dtype: str = "float32") -> ReplicaAProcess:
    class Averaging(ReplicaAProcess):
        _sent = ([(3, 4), (5,)], dtype)
        _single = _remarks = _mean = _alone = _known_step = SimpleNamespace()  # type: ignore[assignment]
        _request: Any = SimpleNamespace(training=SimpleNamespace(workers=workers), member=SimpleNamespace(index=rank))

        def averaged(self, patterns: Sequence[Array], weight: float) -> list[Array]:
            shares = [weight / 2.0**rank * 2.0**r for r in range(workers)]
            every = [[(share * pattern).astype(dtype) for share in shares] for pattern in patterns]
            return [average(sent, rank).astype(np.float32) for sent in every]

    return Averaging()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("average", [sum_first, division_first])
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5, 6])
def test_a_mean_of_all_is_right_in_whatever_order_it_divides(workers: int, average: Average, dtype: str) -> None:
    for rank in range(workers):
        assert trainer_of(rank, workers, average, dtype).check_reduction() is None


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_one_who_is_left_alone_is_told_so(workers: int) -> None:
    said = trainer_of(1, workers, lambda sent, rank: sent[rank]).check_reduction()
    assert str(said).endswith("or nothing was averaged: it is what this process had sent itself")


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_who_is_missing_is_named(workers: int) -> None:
    def without_first(sent: list[Array], _rank: int) -> Array:
        return sum_first(sent, 0) - sent[0] / len(sent)

    assert "the value of replica 0 is missing" in str(trainer_of(1, workers, without_first).check_reduction())
