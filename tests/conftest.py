"""What several rooms' tests share: TensorFlow set up once, a browser, and which of them run in one process."""

import gc
import importlib
import importlib.machinery
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import hypothesis
import pytest


class _AsTheyAre:
    """Imports modules of the harness as Python does. Since it brings a plugin, pytest would rewrite the assert
    statements of the whole package, in every worker, and compile all of it beside what the commands have compiled."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        return importlib.machinery.PathFinder.find_spec(name, path, target) if name.startswith("harness.") else None


sys.meta_path.insert(0, _AsTheyAre)  # type: ignore[arg-type]  # before the first of them is imported

from harness.run.process.zygote import Zygote  # noqa: E402
from tests.preloaded import handed_in  # noqa: E402
from tests.preloading import end_served_passes_soon  # noqa: E402

TESTS = Path(__file__).parent
VIRTUAL_DEVICES = 8
IMPORTING = {"tf", "preloaded"}
"""Fixtures whose tests need TensorFlow; who uses one is marked `tensorflow`."""
OF_ENGINES = {"jax_python", "keras_python", "torch_python", "horovod_python"}
"""Fixtures whose tests train with an engine beside TensorFlow; who uses one is marked `engine`."""
ALONE = {"tf": "tensorflow", "chromium": "browser", "emulation": "network", "slurm": "slurm"}
"""Fixtures whose tests all run in one process of pytest-xdist, one after the other, and the name of their group:
an import of TensorFlow, a browser or a network at a time."""
MEASURED = "measured"
"""The group of what is marked `engine` or `measures`: threads of those engines spin while they wait for each other, and
two at once on the same cores slow each other down many times."""
COLLECTED_WITH_TENSORFLOW = pytest.StashKey[bool]()
WORTH_COLLECTING = 200_000
"""Objects made, and not let go of, since garbage was last looked for."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Example counts stay; a time limit for one example would only measure what else the machine does.
hypothesis.settings.register_profile("harness", deadline=None)
hypothesis.settings.load_profile("harness")

# Each of these makes a pytest or pytest-benchmark that a test starts take itself for a worker of this run.
for _variable in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
    del os.environ[_variable]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Neither while thousands of tests are collected nor later are they, or what they import, looked through for
    garbage: that was a tenth of what a worker computed."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs TensorFlow and what runs in one process; on several processes the longest come first."""
    config.stash[COLLECTED_WITH_TENSORFLOW] = "tensorflow" in sys.modules
    several = hasattr(config, "workerinput")
    for item in items:
        used = getattr(item, "fixturenames", ())
        if IMPORTING.intersection(used):
            item.add_marker("tensorflow")
        if OF_ENGINES.intersection(used):
            item.add_marker("engine")
        if group := _group(item, used):
            item.add_marker(pytest.mark.xdist_group(group))
            if several and hasattr(item, "_id"):
                # pytest-xdist 3.8 adds the group where pytest kept the id before 9.2 (its issue 1386).
                item._id = type(item._id).parse(f"{item.nodeid}@{group}")
    if several:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: (_alone(item) != MEASURED, item.path not in slow))


def _alone(item: pytest.Item) -> str | None:
    """The group of what must be alone."""
    used = getattr(item, "fixturenames", ())
    marked = any(map(item.get_closest_marker, ("engine", "measures")))
    return next((group for fixture, group in ALONE.items() if fixture in used), MEASURED if marked else None)


def _group(item: pytest.Item, used: Sequence[str]) -> str | None:
    """The tests that an item runs in one process with: users of what is to be alone, or of what a module makes once."""
    if group := _alone(item):
        return group
    definitions = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    shared = (made[-1] for name, made in definitions.items() if name in used and name not in IMPORTING)
    if any(made.scope in ("module", "session") and made.baseid.startswith("tests") for made in shared):
        return ".".join(item.path.relative_to(TESTS).with_suffix("").parts)  # rooms have files of one name
    return None


@pytest.fixture
def collected_with_tensorflow(pytestconfig: pytest.Config) -> bool:
    """Whether a module of the tests has imported it, and so every process that has collected that module."""
    return pytestconfig.stash[COLLECTED_WITH_TENSORFLOW]


@pytest.fixture(autouse=True)
def _only_what_is_marked_imports_tensorflow(request: pytest.FixtureRequest) -> Iterator[None]:
    """So that `make test-quick`, which leaves out what is marked, stays quick."""
    before = "tensorflow" in sys.modules
    yield
    if not before and "tensorflow" in sys.modules and not request.node.get_closest_marker("tensorflow"):
        pytest.fail("imports TensorFlow, and uses none of the fixtures that mark a test so")


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
    _leave_input_as_it_is(tensorflow)
    end_served_passes_soon()
    gc.collect()
    gc.freeze()  # what was imported is never garbage
    return tensorflow


def _leave_input_as_it_is(tf: Any) -> None:
    """No autotuning of pipelines: to destroy an iterator TensorFlow waits for its autotuner, which sleeps for as long
    as half the iterator's life, up to a minute."""
    datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops")
    finished = datasets.DatasetV2._apply_debug_options

    def without_autotuning(dataset: Any) -> Any:
        options = tf.data.Options()
        options.autotune.enabled = False
        return finished(dataset.with_options(options))

    datasets.DatasetV2._apply_debug_options = without_autotuning


@pytest.fixture(autouse=True)
def _tensorflows_garbage_is_collected_between_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """And in this thread: by chance it would be in that of a replica, while a step is traced.

    A strategy traces its replicas in threads that wait for one another. When one of them came to destroy what an
    earlier test had left (meshes, iterators, functions), all of them waited for one to two minutes. Only once enough
    was made to be worth a look at everything that lives: after each test that was half of what the tests computed.
    """
    if "tf" in request.fixturenames:
        gc.disable()
    yield
    if not gc.isenabled() and gc.get_count()[0] > WORTH_COLLECTING:
        gc.collect()


@pytest.fixture(scope="session")
def preloaded() -> Callable[[], AbstractContextManager[None]]:
    """While what it gives is entered, zygotes are forked from one TensorFlow, see `tests.preloaded`."""
    return handed_in


@pytest.fixture
def zygote(preloaded: Callable[[], AbstractContextManager[None]]) -> Iterator[Zygote]:
    """A zygote with TensorFlow."""
    with preloaded(), Zygote() as started:
        yield started


@pytest.fixture(scope="module")
def shared_zygote(preloaded: Callable[[], AbstractContextManager[None]]) -> Iterator[Zygote]:
    """The same, one for all tests of a module."""
    with preloaded(), Zygote() as started:
        yield started


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
