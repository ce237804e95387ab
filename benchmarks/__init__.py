"""Sweep specs, the pytest-benchmark suite, and a user's own model as an example."""
