"""Which backends of Keras distribute, as the documentation's table of them says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[3] / "benchmarks" / "keras_backends.py"


def told(python: str, backend: str) -> str:
    """What the script says last of a backend, in an interpreter that has it."""
    outside = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
    done = subprocess.run([python, str(SCRIPT), backend], env=outside, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_tensorflow_trains_on_one_of_two_devices_without_an_error() -> None:
    of_one = "tensorflow: fit trained without an error; its weights are on 1 of 2 devices"
    assert told(sys.executable, "tensorflow") == of_one


def test_jax_trains_on_both(keras_python: str) -> None:
    assert told(keras_python, "jax") == "jax: fit trained without an error; its weights are on 2 of 2 devices"
