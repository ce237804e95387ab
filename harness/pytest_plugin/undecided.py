"""The warning of a gate test that ends without a verdict."""

import pytest


class UndecidedGate(pytest.PytestWarning):
    """The measurement does not tell; `-W error::harness.pytest_plugin.UndecidedGate` makes it a failure."""
