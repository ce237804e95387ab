"""Where the engines beside TensorFlow are, for tests that train with them."""

from pathlib import Path
from typing import Any

import pytest

from harness.engines.horovod import ENGINE as HOROVOD
from harness.engines.jax import ENGINE as JAX
from harness.engines.keras_distribution import ENGINE as KERAS_DISTRIBUTION
from harness.engines.torch import ENGINE as TORCH
from harness.run.process import engines
from harness.run.process.engines import home_of, install_command

pytest.register_assert_rewrite("tests.engines.sweeps")


def python_of(engine: Any) -> str:
    """An interpreter with the engine: the one of the tests, or the one that `engine install` has made."""
    home = home_of(engine)
    if home.interpreter is None:
        pytest.skip(f"{engine.title} {home.why_not}: {install_command(engine.name)}")
    return home.interpreter.path


@pytest.fixture(scope="session")
def jax_python() -> str:
    return python_of(JAX)


@pytest.fixture(scope="session")
def keras_python() -> str:
    return python_of(KERAS_DISTRIBUTION)


@pytest.fixture(scope="session")
def torch_python() -> str:
    return python_of(TORCH)


@pytest.fixture(scope="session")
def horovod_python() -> str:
    return python_of(HOROVOD)


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of environments, which is empty, on a machine whose own Python has no JAX."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(engines, "versions_here", lambda _: {"numpy": "2.0.0"})
    return tmp_path / "cache" / "tf-distribute-harness" / "engines"
