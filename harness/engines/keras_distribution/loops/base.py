"""What a way to distribute must be able to do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.spec.mesh import Mesh

if TYPE_CHECKING:
    import keras

BATCH, MODEL = "batch", "model"
"""The axes of a mesh, as Keras' own examples name them."""


@dataclass(frozen=True)
class DistributionWay(ABC):
    """A registered loop: a distribution, under which `Model.fit` trains."""

    name: str
    summary: str

    @abstractmethod
    def distribution(self, devices: Sequence[str], mesh: Mesh) -> "keras.distribution.Distribution":
        """Of these devices, row by row of the mesh; Unsupported where the mesh is none that it could have.

        Each process is fed its own share of a batch, so that Keras is not to cut the data over processes: it refuses to
        for all but tf.data.
        """

    def unlike(self) -> dict[str, str]:
        """What is not as under TensorFlow, by subject."""
        return {}
