"""No waiting where a test has nothing to wait for."""

import pytest


@pytest.fixture(autouse=True)
def stacks_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.live.STACKS_S", 0.0)
