"""What several rooms' tests share: TensorFlow set up once, and a browser to look at reports with."""

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import hypothesis
import pytest

VIRTUAL_DEVICES = 8
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Example counts stay; a time limit for one example would only measure what else the machine does.
hypothesis.settings.register_profile("harness", deadline=None)
hypothesis.settings.load_profile("harness")


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow in this process, with eight virtual CPU devices and no GPU; imported once (7-10 s).

    Devices and pools are fixed once its runtime has started, so no test may import TensorFlow but
    through this fixture. Each replica computes on one thread; the inter-op pool is twice as large as
    eight replicas, whose collectives block a thread each.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    tensorflow = importlib.import_module("tensorflow")
    config = tensorflow.config
    # Not CUDA_VISIBLE_DEVICES: the processes that tests start would inherit it.
    config.set_visible_devices([], "GPU")
    cpu = config.list_physical_devices("CPU")[0]
    config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration()] * VIRTUAL_DEVICES)
    config.threading.set_intra_op_parallelism_threads(1)
    config.threading.set_inter_op_parallelism_threads(2 * VIRTUAL_DEVICES)
    return tensorflow


@pytest.fixture(scope="session")
def chromium() -> Path:
    """A headless-capable Chromium. Without one the test is skipped, but on CI it fails: there it must run."""
    for name in _BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    message = f"no browser ({', '.join(_BROWSERS)}) on the PATH"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
