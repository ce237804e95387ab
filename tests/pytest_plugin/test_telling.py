"""What a gate says while it measures."""

import contextlib
import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from harness.pytest_plugin.telling import teller


class Closed(io.StringIO):
    """Standard error on a full disk, or in a pipe whose reader is gone."""

    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self._fault = fault

    def write(self, text: str) -> int:
        raise self._fault


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), BrokenPipeError(), ValueError("closed")])
@pytest.mark.parametrize("capture", [None, SimpleNamespace(global_and_fixture_disabled=contextlib.nullcontext)])
def test_a_line_that_cannot_be_written_does_not_end_the_gate(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, capture: Any
) -> None:
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=lambda _: capture))
    monkeypatch.setattr(sys, "stderr", Closed(fault))
    teller(config)("block 1 of 6")
