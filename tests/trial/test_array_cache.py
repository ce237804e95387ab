"""What one trial computed is read by the next, and by no other sweep."""

import multiprocessing
import os
import resource
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from harness.trial.array_cache import cached_arrays
from tests.rights import as_no_root


def test_arrays_are_computed_once_for_a_key(tmp_path: Path) -> None:
    calls = []

    def compute() -> dict[str, np.ndarray]:
        calls.append({"a": np.arange(3), "b": np.ones((2, 2), dtype=np.float32)})
        return calls[-1]

    first = cached_arrays(str(tmp_path), "kind", b"key", compute)
    again = cached_arrays(str(tmp_path), "kind", b"key", compute)
    assert len(calls) == 1
    assert first is calls[0], "who has computed them need not read them"
    assert again.keys() == first.keys()
    assert all(np.array_equal(again[name], first[name]) and again[name].dtype == first[name].dtype for name in first)


def test_what_numpys_files_do_not_know_is_the_same_to_the_first_as_to_later_ones(tmp_path: Path) -> None:
    made = {"a": np.ones(2, ml_dtypes.bfloat16)}
    kinds = {str(cached_arrays(str(tmp_path), "kind", b"key", lambda: made)["a"].dtype) for _ in range(2)}
    assert kinds == {"|V2"}


def test_another_key_or_kind_is_computed_anew(tmp_path: Path) -> None:
    assert cached_arrays(str(tmp_path), "kind", b"one", lambda: {"a": np.zeros(1)})["a"] == 0
    assert cached_arrays(str(tmp_path), "kind", b"two", lambda: {"a": np.ones(1)})["a"] == 1
    assert cached_arrays(str(tmp_path), "other", b"one", lambda: {"a": np.full(1, 2)})["a"] == 2


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    assert cached_arrays("", "kind", b"key", lambda: {"a": np.zeros(1)})["a"] == 0
    assert cached_arrays("", "kind", b"key", lambda: {"a": np.ones(1)})["a"] == 1
    assert list(tmp_path.iterdir()) == []


def test_a_disk_on_which_they_do_not_fit_keeps_nothing_of_them_and_they_are_as_computed(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        found = cached_arrays(str(tmp_path), "kind", b"key", lambda: {"a": np.arange(1000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert np.array_equal(found["a"], np.arange(1000))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_file_keeps_nothing_and_others_are_not_waited_for(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with as_no_root():
        assert cached_arrays(str(tmp_path), "kind", b"key", lambda: {"a": np.ones(1)}, LONG_S)["a"] == 1


def test_a_fault_of_the_computation_is_told_though_it_is_one_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cached_arrays(str(tmp_path), "kind", b"key", lambda: {"a": np.fromfile(tmp_path / "none")}, LONG_S)


LONG_S = 600.0


class Slow:
    """Something that takes until it is told to go on; it says that it has begun."""

    def __init__(self) -> None:
        self.begun, self.told = multiprocessing.Event(), multiprocessing.Event()

    def __call__(self) -> dict[str, Any]:
        self.begun.set()
        self.told.wait()
        return {"a": np.array(os.getpid())}


def wanting(folder: Path, compute: Slow, limit_s: float = LONG_S) -> multiprocessing.Process:
    """A process that wants the arrays, and ends."""
    other = multiprocessing.get_context("fork").Process(
        target=cached_arrays, args=(str(folder), "kind", b"key", compute, limit_s)
    )
    other.start()
    return other


def test_one_who_comes_while_another_computes_waits_for_that_and_computes_nothing(tmp_path: Path) -> None:
    first, second = Slow(), Slow()
    computing = wanting(tmp_path, first)
    assert first.begun.wait(LONG_S)
    waiting = wanting(tmp_path, second)
    assert not second.begun.wait(0.2)
    first.told.set()
    waiting.join()
    computing.join()
    assert (computing.exitcode, waiting.exitcode, second.begun.is_set()) == (0, 0, False)


def test_one_that_is_killed_holds_up_nobody(tmp_path: Path) -> None:
    first, second = Slow(), Slow()
    killed = wanting(tmp_path, first)
    assert first.begun.wait(LONG_S)
    killed.kill()
    second.told.set()
    cached_arrays(str(tmp_path), "kind", b"key", second, LONG_S)
    killed.join()
    assert second.begun.is_set()


def test_one_that_takes_longer_than_the_limit_is_not_waited_for(tmp_path: Path) -> None:
    first, second = Slow(), Slow()
    stuck = wanting(tmp_path, first)
    assert first.begun.wait(LONG_S)
    second.told.set()
    cached_arrays(str(tmp_path), "kind", b"key", second, 0.05)
    stuck.kill()
    stuck.join()
    assert second.begun.is_set()
