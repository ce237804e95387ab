"""A cell: one configuration to measure, identified by a hash of its canonical form."""

import functools
import hashlib
import json

from harness.spec.axes import MOST, TABLE, Axes, BatchScope, Partitioner, Positive, Precision, Updates
from harness.spec.mesh import Mesh
from harness.spec.naming import sayings

__all__ = ["LATER", "MOST", "BatchScope", "Cell", "Partitioner", "Positive", "Precision", "Updates"]

LATER = {key: Axes.model_fields[key].default for key, axis in TABLE.items() if axis.later}
"""Keys that cells of earlier runs do not have, with their defaults, at which they are left out of the identity: a cell
is the same cell in a run of then and in one of now."""


class Cell(Axes):
    """One configuration. `global_batch_size` G = n·b is stored so that no reader has to derive it.

    `workers` × `replicas` is the number of replicas. `packing` is `default`, `num_packs=K` or
    `bytes_per_pack=B`. With parameter servers (`ps` above 0) replicas are not in sync: each update is one
    worker's, so G, the examples that one update is computed from, is b.
    """

    @property
    def cell_id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the canonical JSON form."""
        return _identity(self)

    @property
    def replicas_in_sync(self) -> int:
        """n: replicas over all workers; with parameter servers, those that work at the same time."""
        return self.replicas * self.workers

    @property
    def model_shards(self) -> int:
        """Devices that one replica has: 1 but on a mesh with a `model` axis."""
        return Mesh.shards_of(self.mesh)

    @property
    def devices(self) -> int:
        """Devices of one worker."""
        return self.replicas * self.model_shards

    @property
    def devices_in_sync(self) -> int:
        """Devices of all replicas: n, times the shards of a model that is cut."""
        return self.replicas_in_sync * self.model_shards

    @property
    def asynchronous(self) -> bool:
        """Whether every worker updates by itself, waiting for no other."""
        return self.ps > 0

    @property
    def replicas_per_update(self) -> int:
        """Replicas whose gradients one update sums."""
        return 1 if self.asynchronous else self.replicas_in_sync

    @property
    def replica_batch_size(self) -> int:
        """b: examples that one replica sees in one step."""
        return self.global_batch_size // self.replicas_per_update

    @property
    def label(self) -> str:
        """A short name for tables and figures; it names what usually varies within a sweep."""
        if self.loop == "own":
            return f"{self.model} b{self.batch_size}"
        parts = [self.strategy]
        if self.mesh:
            parts.append(self.mesh)
        elif self.ps:
            parts.append(f"{self.workers} workers {self.ps} ps")
        elif self.workers > 1:
            parts.append(f"{self.workers} workers ×{self.replicas}")
        else:
            parts.append(f"×{self.replicas}")
        parts.append(f"b{self.batch_size}" + (" global" if self.batch_scope == "global" else ""))
        return " ".join([*parts, *sayings(self)])


@functools.lru_cache(maxsize=65536)
def _identity(cell: Cell) -> str:
    """Kept outside the model: a value cached on the instance would survive `model_copy`, and lie."""
    values = cell.model_dump(mode="json")
    for key, default in LATER.items():
        if values[key] == default:
            del values[key]
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
