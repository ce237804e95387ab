"""STREAM's add really adds all elements, in arrays that no cache holds."""

import numpy as np
import pytest

from harness.trial.stream import BYTES_AN_ELEMENT, LARGEST, MEMORY_SHARE, SMALLEST, StreamAdd, array_elements


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_element_is_added_whatever_the_number_of_threads(threads: int) -> None:
    add = StreamAdd(threads, 1001)
    a, b, c = add.arrays
    b[:], c[:] = np.arange(1001), 0.5
    add()
    assert np.array_equal(a, np.arange(1001) + 0.5)


def test_it_counts_the_bytes_of_the_three_arrays() -> None:
    add = StreamAdd(1, 100)
    assert sum(array.nbytes for array in add.arrays) == BYTES_AN_ELEMENT * add.elements


@pytest.mark.parametrize(
    ("cache", "elements"),
    [(32 * 2**20, 4 * 32 * 2**20 // 8), (None, SMALLEST), (2**20, SMALLEST), (2**34, LARGEST)],
    ids=["four caches", "not told", "small", "huge"],
)
def test_an_array_is_four_caches_large_within_bounds(cache: int | None, elements: int) -> None:
    assert array_elements(cache, 2**40) == elements


def test_all_arrays_together_take_no_more_than_their_share_of_free_memory() -> None:
    free = 2**30
    assert BYTES_AN_ELEMENT * array_elements(2**34, free) <= MEMORY_SHARE * free
