"""TensorFlow as an engine. Everything else of its folder is imported when it is asked for."""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from harness.engines.tensorflow.clusters import TensorFlowClusters
from harness.errors import UsageError
from harness.protocol.engine import Ending, Software, Task, Trainer
from harness.protocol.messages import Request
from harness.protocol.preparing import Described, PrepareOrder, ReadingCompared
from harness.spec.catalogue import Catalogue
from harness.visible import quoted

OPTIONAL = ("sklearn", "matplotlib", "IPython")
"""What Keras imports where it is there, for wrappers and pictures that no trial has: a fifth of its import."""


SOFTWARE = Software(
    needs={"tensorflow": "2", "keras": "3", "pydantic": "2"},
    titles={"tensorflow": "TensorFlow", "keras": "Keras"},
    brought_by={"tensorflow": ("tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-macos")},
    comes_with={"keras": "tensorflow"},
    variables=(
        "TF_USE_LEGACY_KERAS",
        "KERAS_BACKEND",
        "TF_XLA_FLAGS",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_DETERMINISTIC_OPS",
        "TF_CUDNN_DETERMINISTIC",
        "TF_ENABLE_AUTO_MIXED_PRECISION",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "TF_GPU_THREAD_MODE",
        "TF_GPU_THREAD_COUNT",
        "TF_GPU_ALLOCATOR",
        "DTENSOR_GPU_USE_NCCL_COMMUNICATION",
    ),
)


@contextlib.contextmanager
def as_if_missing(names: Sequence[str]) -> Iterator[None]:
    """While entered, modules that were not imported before cannot be; afterwards they are imported as ever."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # as Python spells it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def import_keras(engine: str) -> dict[str, str]:
    """Import TensorFlow and Keras for an engine; their versions. UsageError where Keras is to compute with another
    framework."""
    if (backend := os.environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        raise UsageError(
            f"KERAS_BACKEND: given {quoted(backend)}, and engine '{engine}' trains with Keras on TensorFlow; "
            "unset that variable"
        )
    from harness.engines.tensorflow.membership import leave_others

    leave_others()
    with as_if_missing(OPTIONAL):
        import keras
        import tensorflow as tf
    return {"tensorflow": tf.__version__, "keras": keras.__version__}


class TensorFlow:
    """TensorFlow 2 with Keras 3."""

    name = "tensorflow"
    title = "TensorFlow"
    clusters = TensorFlowClusters()
    software = SOFTWARE

    def catalogue(self) -> Catalogue:
        """Every registered name."""
        from harness.engines.tensorflow.catalogue import load_catalogue

        return load_catalogue()

    def preload(self) -> dict[str, str]:
        """TensorFlow, Keras, what data sources want, and the modules of a trial; the runtime does not start.

        UsageError where Keras is to compute with another framework.
        """
        versions = import_keras(self.name)

        from harness.engines.tensorflow.data import PRELOAD

        for name in PRELOAD:
            with contextlib.suppress(ImportError):  # a data source that needs it will say so, with the remedy
                importlib.import_module(name)
        for name in ("threads", "trainer", "tasks"):  # what a fork would else import, each time anew
            importlib.import_module(f"{__package__}.{name}")
        return versions

    def on_host(self, request: Request) -> Request:
        """With the size of the inter-op pool."""
        from harness.engines.tensorflow.threads import with_threads

        return with_threads(request)

    def classify(self, error: Exception) -> Ending:
        """What TensorFlow's and Keras' exceptions mean."""
        from harness.engines.tensorflow.ending import classify

        return classify(error)

    def trainer(self, request: Request) -> Trainer:
        """Strategy, model, optimizer, input and loop."""
        from harness.engines.tensorflow.trainer import TensorFlowTrainer

        return TensorFlowTrainer(request)

    def prepare_files(self, order: PrepareOrder) -> Described | ReadingCompared | None:
        """Write TFRecord files, or say what they would hold."""
        from harness.engines.tensorflow.preparing import prepare_files

        return prepare_files(order)

    def tasks(self) -> Mapping[str, Task]:
        """Data, probes, a user's own step, jobs that faults are done to."""
        from harness.engines.tensorflow.tasks import TASKS

        return TASKS


ENGINE = TensorFlow()
