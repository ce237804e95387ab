"""Horovod as an engine. Everything else of its folder is imported when it is asked for."""

import importlib
from pathlib import Path

from harness.engines.tensorflow.engine import SOFTWARE, import_keras
from harness.protocol.engine import Ending, Environment, Software, SourceBuild, Trainer
from harness.protocol.messages import Membership, Request
from harness.spec.catalogue import Catalogue
from harness.trial.collectives import Sending
from harness.trial.same_work.engine import AlikeProcesses, TrialsAlone

BUILT_BY = ("setuptools", "wheel", "cloudpickle", "psutil", "PyYAML", "packaging", "cffi")
"""What its build and its own modules import."""


class HorovodClusters(AlikeProcesses):
    """Processes that are all alike, each with one replica."""

    title = "Horovod"

    def join(self, member: Membership) -> None:
        """Move to the process's network; Horovod starts where the cell is built. HarnessError with the reason."""
        from harness.engines.horovod.group import enter

        enter(member)


class Horovod(TrialsAlone):
    """Horovod, its replicas a process each."""

    name = "horovod"
    title = "Horovod"
    clusters = HorovodClusters()
    software = Software(
        titles={"horovod": "Horovod", **SOFTWARE.titles},
        brought_by=SOFTWARE.brought_by,
        variables=(
            *SOFTWARE.variables,
            "HOROVOD_FUSION_THRESHOLD",
            "HOROVOD_CYCLE_TIME",
            "HOROVOD_CACHE_CAPACITY",
            "HOROVOD_BATCH_D2D_MEMCOPIES",
            "HOROVOD_AUTOTUNE",
            "HOROVOD_DISABLE_GROUP_FUSION",
            "HOROVOD_THREAD_AFFINITY",
        ),
    )
    environment = Environment(
        needs={"horovod": "0.28", "tensorflow": "2.16", "keras": "3", "numpy": "1.26", "psutil": "6", "pydantic": "2"},
        installs=("tensorflow", "keras", "numpy", "pydantic", "scikit-learn", *BUILT_BY),
        constraints=Path(__file__).parent / "constraints.txt",
        built=SourceBuild(
            package="horovod",
            tools=("cmake", "g++", "make"),
            variables={
                "HOROVOD_WITH_TENSORFLOW": "1",
                "HOROVOD_WITHOUT_PYTORCH": "1",
                "HOROVOD_WITHOUT_MXNET": "1",
                "HOROVOD_WITH_GLOO": "1",
                "HOROVOD_WITHOUT_MPI": "1",
                "HOROVOD_CPU_OPERATIONS": "GLOO",
                "CMAKE_POLICY_VERSION_MINIMUM": "3.5",  # CMake 4 else refuses what the Gloo in it asks for
            },
            # an operation for XLA, which uses what TensorFlow no longer has
            without={"horovod/tensorflow/CMakeLists.txt": "xla_mpi_ops.cc"},
        ),
    )

    def catalogue(self) -> Catalogue:
        """Every registered name."""
        from harness.engines.horovod.catalogue import load_catalogue

        return load_catalogue()

    def preload(self) -> dict[str, str]:
        """TensorFlow, Keras, Horovod and the modules of a trial; neither TensorFlow's runtime nor Horovod starts.

        UsageError where Keras is to compute with another framework.
        """
        versions = import_keras(self.name)
        import horovod
        import horovod.runner.http.http_server
        import horovod.tensorflow.keras

        for name in ("trainer", "collectives"):  # what a fork would else import, each time anew
            importlib.import_module(f"{__package__}.{name}")
        return {"horovod": horovod.__version__, **versions}

    def classify(self, error: Exception) -> Ending:
        """What TensorFlow's and Keras' exceptions mean, through which Horovod's come."""
        from harness.engines.tensorflow.ending import classify

        return classify(error)

    def trainer(self, request: Request) -> Trainer:
        """Model, optimizer, input, the group of processes and the loop."""
        from harness.engines.horovod.trainer import HorovodTrainer

        return HorovodTrainer(request)

    def sending(self, request: Request) -> Sending:
        """The buffer of this process, and the group."""
        from harness.engines.horovod.collectives import HorovodSending

        return HorovodSending(request)


ENGINE = Horovod()
