"""Digits prepared once for all tests that only read them."""

from pathlib import Path
from typing import Any

import pytest

from harness.engines.tensorflow.data import load_source


@pytest.fixture(scope="session")
def digits_dir(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 - sets TensorFlow up
    """A data folder in which `digits` is prepared."""
    folder = tmp_path_factory.mktemp("data")
    load_source("digits").prepare(folder)
    return folder
