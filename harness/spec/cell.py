"""A cell: one configuration to measure, identified by a hash of its canonical form."""

import functools
import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveInt

BatchScope = Literal["per_replica", "global"]
Precision = Literal["float32", "mixed_bfloat16", "mixed_float16"]


class Cell(BaseModel):
    """One configuration. `global_batch_size` G = n·b is stored so that no reader has to derive it.

    `workers` × `replicas` is the number of replicas in sync. `packing` is `default`,
    `num_packs=K` or `bytes_per_pack=B`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    strategy: str
    replicas: PositiveInt
    workers: PositiveInt = 1
    batch_size: PositiveInt
    batch_scope: BatchScope
    global_batch_size: PositiveInt
    cross_device_op: str
    packing: str = "default"
    model: str
    data: str
    precision: Precision = "float32"
    xla: bool = False
    optimizer: str = "adam"
    loop: str = "custom"

    @property
    def cell_id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the canonical JSON form."""
        return _identity(self)

    @property
    def replicas_in_sync(self) -> int:
        """n: replicas over all workers."""
        return self.replicas * self.workers

    @property
    def replica_batch_size(self) -> int:
        """b: examples that one replica sees in one step."""
        return self.global_batch_size // self.replicas_in_sync

    @property
    def label(self) -> str:
        """A short name for tables and figures; it names what usually varies within a sweep."""
        if self.loop == "own":
            return f"{self.model} b{self.batch_size}"
        parts = [self.strategy]
        if self.workers > 1:
            parts.append(f"{self.workers} workers ×")
        parts.append(f"×{self.replicas}")
        parts.append(f"b{self.batch_size}" + (" global" if self.batch_scope == "global" else ""))
        if self.cross_device_op != "auto":
            parts.append(self.cross_device_op)
        if self.packing != "default":
            parts.append(self.packing)
        if self.loop != "custom":
            parts.append(self.loop)
        return " ".join(parts)


@functools.lru_cache(maxsize=65536)
def _identity(cell: Cell) -> str:
    """Kept outside the model: a value cached on the instance would survive `model_copy`, and lie."""
    canonical = json.dumps(cell.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
