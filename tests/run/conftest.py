"""No waiting where a test has nothing to wait for, and memory that others do not use up meanwhile."""

import pytest


@pytest.fixture(autouse=True)
def stacks_are_written_at_once(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("slow") is None:  # what is slow has real processes, which take their time
        for name in ("SLICE_S", "USUAL_S"):
            monkeypatch.setattr(f"harness.run.process.stacks.{name}", 0.0)


@pytest.fixture(autouse=True)
def there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.turns.group.available_memory_bytes", lambda: 2**50)
