"""Suites of a user's own, run by pytest in this process over planted measurements."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

# Imported here, once: a pytest inside this process forgets what it was the first to import, and numpy cannot
# be imported twice.
from harness.pytest_plugin import against, baselines, session  # noqa: F401
from tests.pytest_plugin.planted import Planted
from tests.run.repositories import Repo

INSTALLED = any(point.value == "harness.pytest_plugin" for point in metadata.entry_points(group="pytest11"))
LOADED = () if INSTALLED else ("-p", "harness.pytest_plugin")
"""How a pytest gets the plugin: by itself once the package is installed with its entry point."""
ONE = """
import pytest

@pytest.mark.training_gate(model="steps:{0}")
def test_{0}():
    pass
"""


def gate_tests(*names: str) -> str:
    """A module with an empty gate test of each planted truth."""
    return "".join(ONE.format(name) for name in names)


@dataclass(frozen=True)
class Suite:
    """A user's folder: a git repository with one commit, and the tests that are written to it."""

    pytester: pytest.Pytester
    planted: Planted

    def write(self, text: str, name: str = "test_gate.py") -> None:
        (self.pytester.path / name).write_text(text)

    def ini(self, *lines: str) -> None:
        (self.pytester.path / "pytest.ini").write_text("\n".join(["[pytest]", *lines]))

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in this process; nothing is measured but planted."""
        return self.pytester.runpytest_inprocess(*LOADED, "-p", "no:cacheprovider", *arguments)

    def against(self, *arguments: str) -> pytest.RunResult:
        return self.run("--gate-against", "main", *arguments)

    @property
    def results(self) -> Path:
        return self.pytester.path / "results"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    planted = Planted()
    monkeypatch.setattr(against, "decide", planted.decide)
    monkeypatch.setattr(baselines, "measure_matrix", planted.measure_matrix)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    repository = Repo(pytester.path)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.commit({"steps.py": "", ".gitignore": "results/\n"})
    return Suite(pytester, planted)


Runner = Callable[..., "subprocess.CompletedProcess[str]"]


def text_of(result: Any) -> str:
    """All that a pytest said."""
    return str(result.stdout.str()) + str(result.stderr.str())
