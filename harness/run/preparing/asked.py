"""What is to be prepared, and who is told how far it is."""

from dataclasses import dataclass
from pathlib import Path

from harness.record.tfrecords import WrittenShard
from harness.spec.sweep import Sweep
from harness.spec.values import FileCompression, RunBy

NEEDS: dict[RunBy, str] = {"dask": "dask", "beam": "apache_beam"}
"""The module of each way of running processes that is an extra."""


@dataclass(frozen=True)
class AskedFiles:
    """What is to be prepared, where, and by whom."""

    source: str
    target: Path
    data_dir: Path
    shards: int | None = None
    compression: FileCompression = "none"
    by: RunBy = "local"
    processes: int = 1
    timeout_s: float = Sweep.model_fields["timeout"].default
    """The most that a process may take for one example."""
    timed: bool = False
    """Written to be timed among other ways, and anew where that is stopped."""


class FilesListener:
    """Is told; this one says nothing."""

    def read(self, examples: int) -> None:
        """So many have been read of the source, before it is known how many there are."""

    def begun(self, examples: int, files: int, whole: int) -> None:
        """Examples and files in all, and how many files were whole already."""

    def file(self, shard: WrittenShard) -> None:
        """One more is whole."""

    def said(self, words: str) -> None:
        """A line of what else there is to know."""
