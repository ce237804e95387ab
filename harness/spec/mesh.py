"""Meshes of devices as text: `batch:2,model:2`, checked, in one canonical spelling."""

import re
from dataclasses import dataclass

from harness.errors import UsageError, nearest
from harness.spec.lists import split_keyed

MESH_AXES = ("batch", "model")
MOST = 4096
_SIZE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_EXPECTED = "expected batch:N, model:N or both, like batch:2,model:2"


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid. Each row has one share of the global batch, and the devices of a row share out the model.

    A row is a replica in the sense of every other strategy: n = `batch`, on `batch` × `model` devices.
    """

    batch: int = 1
    """Shares of the global batch: replicas."""
    model: int = 1
    """Shards of what the model's layout cuts."""

    @classmethod
    def parse(cls, text: str) -> "Mesh":
        """An axis that is not named has the size 1. UsageError in one line names the key `mesh`."""
        found: dict[str, int] = {}
        for part in text.split(","):
            axis, _, size = (piece.strip() for piece in part.lower().partition(":"))
            if axis not in MESH_AXES:
                raise _refused(text, _EXPECTED + nearest(axis, MESH_AXES))
            if axis in found:
                raise _refused(text, f"'{axis}' is there twice")
            if not _SIZE.fullmatch(size) or int(size) > MOST:
                raise _refused(text, f"{_EXPECTED}, of 1 to {MOST} devices")
            found[axis] = int(size)
        mesh = cls(**found)
        if mesh.devices > MOST:
            raise _refused(text, f"that is {mesh.devices} devices, expected at most {MOST}")
        return mesh

    @classmethod
    def shards_of(cls, text: str) -> int:
        """Devices that one replica has on the mesh that `text` spells; 1 without any."""
        return cls.parse(text).model if text else 1

    @property
    def devices(self) -> int:
        """Devices in the mesh."""
        return self.batch * self.model

    @property
    def text(self) -> str:
        """The canonical spelling: equal meshes have equal texts, and `parse` reads it."""
        sizes = {"batch": self.batch, "model": self.model}
        return ",".join(f"{axis}:{size}" for axis, size in sizes.items() if size > 1) or "batch:1"


def split_values(text: str) -> list[str]:
    """The values of the axis, as a flag lists them: `batch:4,batch:2,model:2` is two meshes. See `split_keyed`."""
    return split_keyed(text, ":", lambda reason: _refused(text, reason))


def _refused(text: str, what: str) -> UsageError:
    return UsageError(f"mesh: given {text!r}, {what}")
