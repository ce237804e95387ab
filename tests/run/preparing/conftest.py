"""`prepare` by several ways, whose times are given."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.protocol.preparing import ShardPlan
from harness.record.tfrecords import Features
from harness.run.preparing import prepare as preparing
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.ways import prepare_by_each
from tests.run.preparing.written import Played


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`call` calls `prepare` by several ways, which take so many seconds, and half a second less each time; `writes`
    says what is in a file of a way, and `stops` what ends the reading of source and files in turns. `calls` has who
    wrote, in turns, `told` what was said and `files` is where."""
    now, calls, told, files = [0.0], list[str](), list[str](), tmp_path / "new"
    listener = FilesListener()
    monkeypatch.setattr(listener, "said", told.append)

    def call(
        writes: Callable[[str], bytes] = lambda _: b"1234",
        most: int = 4,
        stops: BaseException | None = None,
        **seconds: float,
    ) -> Features:
        class Timed(Played):
            def __init__(self, asked: AskedFiles, *_: Any) -> None:
                super().__init__(asked.target, most, content=writes(asked.by), stops=stops)
                self._by = asked.by

            def write(self, plan: Any, missing: Sequence[ShardPlan], *others: Any) -> None:
                calls.append(self._by)
                now[0] += seconds[self._by] - 0.5 * calls.count(self._by)
                super().write(plan, missing, *others)

        monkeypatch.setattr(preparing, "Writers", Timed)
        clock = SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: 0.0)
        monkeypatch.setattr(preparing, "time", clock)
        monkeypatch.setattr(preparing, "NEEDS", {})
        ways: Any = list(seconds)
        return prepare_by_each(AskedFiles("digits", files, tmp_path, shards=4), ways, listener)

    return SimpleNamespace(call=call, calls=calls, told=told, files=files)
