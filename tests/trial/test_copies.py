"""What a proof holds of a state that lies on several devices."""

import math

import ml_dtypes
import numpy as np
import pytest

from harness.trial.copies import one_where_alike


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32, bool, np.complex128])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_what_devices_hold_alike_is_one_array_and_a_copy(dtype: type, shape: tuple[int, ...]) -> None:
    on_devices = [np.ones(shape, dtype) for _ in range(3)]
    on_devices[1][...] = 0
    first, other, third = one_where_alike(on_devices)
    assert first is third
    for device in on_devices:
        device[...] = 0
    assert (first == 1).all()
    assert not other.any()


def test_what_is_no_number_in_both_is_alike_and_zeros_of_two_signs_are_not() -> None:
    first, second, third = one_where_alike(np.array([math.nan, zero], np.float32) for zero in (0.0, 0.0, -0.0))
    assert first is second
    assert first is not third
    assert np.signbit(third[1])


def test_what_nobody_else_writes_is_not_copied() -> None:
    given = [np.array([value], np.float32) for value in (1, 1, 2)]
    first, second, third = one_where_alike(given, ours=True)
    assert first is second is given[0]
    assert third is given[2]


def test_arrays_of_other_types_or_shapes_are_not_alike() -> None:
    found = one_where_alike([np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros((1, 2), np.float32)])
    assert [(array.dtype.name, array.shape) for array in found] == [
        ("float32", (2,)),
        ("int32", (2,)),
        ("float32", (1, 2)),
    ]


def test_text_is_told_apart_by_what_it_says() -> None:
    first, second, third = one_where_alike(np.array([word], object) for word in ("a", "a", "b"))
    assert second is first
    assert third is not first
    first, second, third = one_where_alike([b"a", b"a", b"bcd"], ours=True)  # as TensorFlow gives a single one
    assert second is first
    assert third == b"bcd"
