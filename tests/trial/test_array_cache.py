"""What one trial computed is read by the next, and by no other sweep."""

from pathlib import Path

import numpy as np

from harness.trial.array_cache import cached_arrays


def test_arrays_are_computed_once_for_a_key(tmp_path: Path) -> None:
    calls = []

    def compute() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"a": np.arange(3), "b": np.ones((2, 2), dtype=np.float32)}

    first = cached_arrays(str(tmp_path), "kind", b"key", compute)
    again = cached_arrays(str(tmp_path), "kind", b"key", compute)
    assert len(calls) == 1
    assert again.keys() == first.keys()
    assert all(np.array_equal(again[name], first[name]) and again[name].dtype == first[name].dtype for name in first)


def test_another_key_or_kind_is_computed_anew(tmp_path: Path) -> None:
    assert cached_arrays(str(tmp_path), "kind", b"one", lambda: {"a": np.zeros(1)})["a"] == 0
    assert cached_arrays(str(tmp_path), "kind", b"two", lambda: {"a": np.ones(1)})["a"] == 1
    assert cached_arrays(str(tmp_path), "other", b"one", lambda: {"a": np.full(1, 2)})["a"] == 2


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    assert cached_arrays("", "kind", b"key", lambda: {"a": np.zeros(1)})["a"] == 0
    assert cached_arrays("", "kind", b"key", lambda: {"a": np.ones(1)})["a"] == 1
    assert list(tmp_path.iterdir()) == []
