"""What tests of several modules of this engine share."""

from collections.abc import Iterator

import pytest

from harness.engines.tensorflow.data import text


@pytest.fixture
def few_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Text has 40 pieces, and not 4,000."""
    monkeypatch.setattr(text, "PIECES", 4)
    for again in (True, False):
        for pieces in (text._in_bytes, text._in_words):
            pieces.cache_clear()
        if again:
            yield
