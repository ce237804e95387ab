"""What a trial takes: processes, each with its devices, and the files that its data are written into."""

from dataclasses import dataclass

from harness.spec.values import FileCompression
from harness.visible import plural


@dataclass(frozen=True)
class Shape:
    """What a trial takes: its processes, and what each of them has."""

    workers: int = 1
    servers: int = 0
    """Parameter servers; with any, a coordinator is one process more."""
    replicas: int = 1
    """Devices of one worker that take part, or groups of them that share a model."""
    device: str = ""
    """The kind of device that the harness sets up; empty where that is the work's own affair."""
    network: str = ""
    """The emulated network between the processes; empty is none."""


@dataclass(frozen=True)
class DataFiles:
    """TFRecord files that data are written into before they are read."""

    shards: int
    compression: FileCompression

    @property
    def words(self) -> str:
        """`4 files, gzip`."""
        return plural(self.shards, "file") + (f", {self.compression}" if self.compression != "none" else "")
