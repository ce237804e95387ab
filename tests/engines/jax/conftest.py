"""Where JAX is, for tests that train with it."""

import pytest

from harness.engines.jax import ENGINE
from harness.run.process.engines import home_of, install_command


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "jax_python" in getattr(item, "fixturenames", ()):
            item.add_marker("jax")


@pytest.fixture(scope="session")
def jax_python() -> str:
    """An interpreter with JAX: the one of the tests, or the one that `engine install` has made."""
    home = home_of(ENGINE)
    if home.interpreter is None:
        pytest.skip(f"JAX {home.why_not}: {install_command('jax')}")
    return home.interpreter.path
