"""The batches of a process are held against those that its cell, the seed and its place give, by labels in order."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.own_engine import Mean
from harness.engines.tensorflow.trainer import KEEP_ORDER, MAY_REORDER, TensorFlowTrainer
from harness.protocol.messages import Membership, Request
from harness.spec.axes import INPUT, TABLE
from harness.spec.cell import TrainingCell
from harness.trial.same_work.batches import Data
from harness.trial.same_work.fed import check_input
from harness.trial.sameness import LOOKED_AT
from tests.synthetic import make_cell
from tests.trial.own import tried

SHAPE, WORKERS, SIZE, SEED = (28, 28, 1), 3, 48, 7
ADDRESSES = {"worker": [f"127.0.0.1:{port}" for port in range(1, 1 + WORKERS)]}
OTHERS = "worker 2 was fed other examples than seed 7 gives it, from batch {} on"


def asked(rank: int, data: str = "digits") -> Request:
    keys = {"workers": WORKERS, "global_batch_size": SIZE, "data": data}
    of: dict[str, Any] = {"cell": make_cell("none", 1).model_copy(update=keys), "seed": SEED, "data_dir": ""}
    member = Membership(task="worker", index=rank, cluster=ADDRESSES)
    return Request(**of, window_s=0.1, intra_op_threads=1, inter_op_threads=1, member=member)


def seen(rank: int, seed: int = SEED, count: int = LOOKED_AT, processes: int = WORKERS, data: str = "digits") -> Any:
    """What a worker is fed, placed ahead of the step as in a trial."""
    share = slice(rank * SIZE // WORKERS, (rank + 1) * SIZE // WORKERS)
    made = Data(data, SHAPE, SIZE, seed, 2, share, processes=processes)
    list(itertools.islice(made.batches(lambda batch: batch), count))
    return made.seen.digests


@pytest.mark.parametrize("rank", range(WORKERS))
def test_what_the_seed_gives_each_of_several_processes_is_right(rank: int) -> None:
    assert check_input(asked(rank), seen(rank)) == {"input": None}


def test_a_process_alone_has_every_example() -> None:
    request = asked(0).model_copy(update={"member": None})
    alone = request.model_copy(update={"cell": request.training.model_copy(update={"workers": 1})})
    made = Data("digits", SHAPE, SIZE, SEED, 0)
    list(itertools.islice(made.batches(lambda batch: batch), LOOKED_AT))
    assert check_input(alone, made.seen.digests) == {"input": None}


@pytest.mark.parametrize(
    ("found", "batch"),
    [
        ({"rank": 2, "seed": SEED + 1}, 3),
        ({"rank": 2, "processes": 1}, 3),
        ({"rank": 1}, 1),
    ],
)
def test_another_order_another_cut_or_anothers_examples_are_told_by_the_first_batch_that_differs(
    found: dict[str, int], batch: int
) -> None:
    assert check_input(asked(2), seen(**found)) == {"input": OTHERS.format(batch)}


def test_of_fewer_batches_as_many_are_held_against_the_seed() -> None:
    of_five = seen(2, count=3)
    assert len(of_five) == 5, "two were placed ahead"
    assert check_input(asked(2), of_five) == {"input": None}
    assert check_input(asked(2), seen(2, seed=1, count=3)) == {"input": OTHERS.format(3)}


def test_nothing_is_said_of_one_batch_that_stays_on_the_devices_and_of_batches_that_nobody_looked_at() -> None:
    assert check_input(asked(2, "synthetic"), seen(1, data="synthetic")) == {}
    assert check_input(asked(2), []) == {}


class FedOthers(Mean):
    def check_input(self) -> dict[str, str | None]:
        return {"input": "it was fed numbers of another seed"}


def test_an_engine_of_ones_own_is_asked_what_it_was_fed(tmp_path: Path) -> None:
    outcome, _ = tried(FedOthers, tmp_path)
    assert (outcome.status, outcome.checks.input) == ("wrong_result", False)
    assert outcome.reason == "input: it was fed numbers of another seed"


def tensorflow_asked(**keys: Any) -> dict[str, str | None]:
    """What TensorFlow's trainer says of a cell whose first batches had other labels than the seed gives."""
    of = asked(0).training.model_copy(update={"workers": 1, **keys})
    trainer = object.__new__(TensorFlowTrainer)
    trainer._request = asked(0).model_copy(update={"member": None, "cell": of})
    trainer._loop = SimpleNamespace(seen=SimpleNamespace(digests=["other"]))  # type: ignore[assignment]
    return trainer.check_input()


@pytest.mark.parametrize("key", MAY_REORDER)
def test_where_an_axis_may_ask_for_another_order_tensorflows_is_held_against_nothing(key: str) -> None:
    default = TrainingCell.model_fields[key].default
    other = next(value for value in TABLE[key].tried if value != default)
    assert tensorflow_asked(**{key: other}) == {}


@pytest.mark.parametrize("key", KEEP_ORDER)
def test_else_it_is_held_against_the_seeds(key: str) -> None:
    default = TrainingCell.model_fields[key].default
    other = next(value for value in TABLE[key].tried if value != default)
    found = {"input": OTHERS.format(1).replace("worker 2", "the process")}
    assert tensorflow_asked(**{key: other}) == found == tensorflow_asked()


def test_every_axis_of_the_input_keeps_the_order_or_may_change_it() -> None:
    assert {*KEEP_ORDER, *MAY_REORDER, "data"} == {key for key, axis in TABLE.items() if axis.shown_by == INPUT}
