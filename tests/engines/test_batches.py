"""The engine's input, which is NumPy's: batches, their order, and images in the model's size."""

import itertools
import time

import numpy as np
import pytest

from harness.protocol.engine import GATE_UPDATES
from harness.trial.same_work.batches import Data, resized
from harness.trial.sameness import LOOKED_AT

SHAPE = (28, 28, 1)


def data(name: str, size: int = 64, seed: int = 1, ahead: int = 2) -> Data:
    return Data(name, SHAPE, size, seed, ahead)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_the_gate_has_as_many_batches_as_updates_and_no_two_are_alike(name: str) -> None:
    gate = data(name).gate
    assert len(gate) == GATE_UPDATES
    assert [(x.shape, x.dtype, y.shape, y.dtype) for x, y in gate] == [((64, *SHAPE), "float32", (64,), "int32")] * 2
    assert not np.array_equal(gate[0][0], gate[1][0])


def test_a_batch_larger_than_the_data_repeats_no_example_unchanged() -> None:
    x, _ = data("digits", size=1000).gate[1]
    flat = np.concatenate([data("digits", size=1000).gate[0][0], x]).reshape(2000, -1)
    assert len(np.unique(flat[1797:], axis=0)) == 203
    assert not any((flat[:203] == flat[1797:]).all(axis=1))


def test_every_digit_comes_once_a_pass_and_passes_differ() -> None:
    batches = list(itertools.islice(data("digits", size=1797, ahead=0).batches(lambda batch: batch), 2, 4))
    sums = [np.sort(x.reshape(1797, -1).sum(axis=1)) for x, _ in batches]
    np.testing.assert_array_equal(*sums)
    assert not np.array_equal(batches[0][1], batches[1][1])


def test_what_comes_after_the_gate_is_the_seeds_and_does_not_depend_on_how_much_is_made_ahead() -> None:
    def labels(seed: int, ahead: int) -> list[int]:
        stream = data("digits", seed=seed, ahead=ahead).batches(lambda batch: batch)
        return np.concatenate([y for _, y in itertools.islice(stream, 6)]).tolist()

    assert labels(1, 0) == labels(1, 3)
    assert labels(1, 0) != labels(2, 0)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_what_the_step_is_given_has_one_digest_whoever_places_it_and_another_in_another_order(name: str) -> None:
    def digest(seed: int = 1, ahead: int = 2, thread: bool = False, share: slice = slice(None)) -> str:
        made = Data(name, SHAPE, 64, seed, ahead, share, thread)
        list(itertools.islice(made.batches(lambda batch: batch), LOOKED_AT))
        return made.seen.digest

    assert digest() == digest(ahead=0) == digest(thread=True) != ""
    assert digest() != digest(share=slice(0, 32))
    assert (digest() == digest(seed=2)) == (name == "synthetic"), "those are the same whatever the seed"


def test_so_many_batches_are_placed_before_they_are_asked_for() -> None:
    placed: list[int] = []
    stream = data("digits", ahead=3).batches(lambda batch: placed.append(len(batch[1])))
    list(itertools.islice(stream, GATE_UPDATES + 1))
    assert len(placed) == GATE_UPDATES + 1 + 3


def test_the_record_names_the_stages() -> None:
    assert data("digits").stages == ["Digits(1797)", "Shuffle(1797)", "Batch(64)", "Prefetch(2)"]
    assert data("digits", ahead=0).stages[-1] == "Batch(64)"
    assert data("synthetic").stages == ["Synthetic", "Batch(64)", "OnDevices"]
    of_three = Data("digits", SHAPE, 96, 1, ahead=2, processes=3)
    assert of_three.stages == ["Digits(1797)", "Shard(3)", "Shuffle(599)", "Batch(32)", "Prefetch(2)"]


def test_the_record_says_where_batches_are_gathered_but_of_what_stays_on_the_devices() -> None:
    beside = Data("digits", SHAPE, 64, 1, ahead=2, thread=True)
    assert beside.unlike == {"input": "batches are gathered in a Python thread beside the step"}
    own = {"input": "batches are gathered in the step's own thread"}
    assert data("digits").unlike == Data("digits", SHAPE, 64, 1, ahead=0, thread=True).unlike == own
    assert data("synthetic").unlike == {}


def test_what_may_be_ready_before_a_step_asks_is_what_is_made_ahead_and_what_a_thread_waits_to_hand_over() -> None:
    placed: list[int] = []
    in_thread = Data("digits", SHAPE, 64, 1, ahead=3, thread=True)
    stream = in_thread.batches(lambda batch: placed.append(len(batch[1])))
    for _ in range(GATE_UPDATES + 1):
        next(stream)
    end = time.monotonic() + 10
    while len(placed) < GATE_UPDATES + 1 + in_thread.ahead and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)  # in which more would be placed
    assert len(placed) == GATE_UPDATES + 1 + in_thread.ahead
    assert data("digits", ahead=3).ahead == 3
    assert Data("digits", SHAPE, 64, 1, ahead=0, thread=True).ahead == 0


def test_an_image_of_one_colour_keeps_it_in_every_size() -> None:
    grey = np.full((2, 8, 8, 1), 0.25, np.float32)
    np.testing.assert_allclose(resized(grey, (32, 20, 3)), np.full((2, 32, 20, 3), 0.25), rtol=1e-6)


def test_a_ramp_is_resized_with_half_pixel_centres() -> None:
    ramp = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
    np.testing.assert_allclose(resized(ramp, (1, 8, 1)).ravel(), [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3])
