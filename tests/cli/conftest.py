"""The command line in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli import run
from harness.record import RunStore
from tests.cli.real import end_what_goes_on
from tests.record.examples import manifest, trial

Harness = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _nothing_goes_on_after_a_test() -> Iterator[None]:
    yield
    end_what_goes_on()


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Harness:
    """`harness ARGUMENTS` in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run of one trial under `results`."""
    with RunStore.create(tmp_path / "results", manifest()) as store:
        store.append(trial(0))
    return store.path
