"""A cell: one configuration to measure, identified by a hash of its canonical form."""

import functools
import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.spec.mesh import Mesh

BatchScope = Literal["per_replica", "global"]
Precision = Literal["float32", "mixed_bfloat16", "mixed_float16"]
Partitioner = Literal["none", "fixed", "min_size", "max_size"]
Updates = Literal["locked", "keras"]

MOST = 2**60
"""No count or size is larger; what is below it fits 64 bits, and a float in the quotients that are made of it."""
Positive = Annotated[int, Field(ge=1, le=MOST)]

LATER = ("ps", "partitioner", "updates", "network", "mesh")
"""Keys that cells of earlier runs do not have: at their defaults they are left out of the identity, so that a cell
is the same cell in a run of then and in one of now."""


class Cell(BaseModel):
    """One configuration. `global_batch_size` G = n·b is stored so that no reader has to derive it.

    `workers` × `replicas` is the number of replicas. `packing` is `default`, `num_packs=K` or
    `bytes_per_pack=B`. With parameter servers (`ps` above 0) replicas are not in sync: each update is one
    worker's, so G, the examples that one update is computed from, is b.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    strategy: str
    replicas: Positive
    workers: Positive = 1
    batch_size: Positive
    batch_scope: BatchScope
    global_batch_size: Positive
    cross_device_op: str
    packing: str = "default"
    model: str
    data: str
    precision: Precision = "float32"
    xla: bool = False
    optimizer: str = "adam"
    loop: str = "custom"
    ps: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Parameter servers."""
    partitioner: Partitioner = "none"
    """How large variables are spread over parameter servers."""
    updates: Updates = "locked"
    """How updates reach parameter servers: by fused, locked kernels, or by the Keras optimizer."""
    network: str = ""
    """The emulated network between the processes, as `harness.spec.network` spells it; empty is none."""
    mesh: str = ""
    """Of `dtensor`: its devices, `batch:4` or `batch:2,model:2`; `replicas` is the size of `batch`."""

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
        return Mesh.parse(self.mesh).model if self.mesh else 1

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
        if self.cross_device_op != "auto":
            parts.append(self.cross_device_op)
        if self.packing != "default":
            parts.append(self.packing)
        if self.partitioner != "none":
            parts.append(f"partitioner {self.partitioner}")
        if self.updates != "locked":
            parts.append(f"{self.updates} updates")
        if self.loop != "custom":
            parts.append(self.loop)
        if self.network:
            parts.append(self.network)
        return " ".join(parts)


@functools.lru_cache(maxsize=65536)
def _identity(cell: Cell) -> str:
    """Kept outside the model: a value cached on the instance would survive `model_copy`, and lie."""
    values = cell.model_dump(mode="json")
    for key in LATER:
        if values[key] == Cell.model_fields[key].default:
            del values[key]
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
