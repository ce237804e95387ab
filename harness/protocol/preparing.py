"""What `prepare` says to the processes that write TFRecord files, as a file each way: no pipe that could break."""

from typing import Literal, Protocol

from harness.protocol.messages import Message
from harness.record.tfrecords import Features, ReadingSpeed
from harness.spec.values import RunBy

ANSWER, FAULT = "answer-{}.json", "fault.txt"
"""Names in an order's scratch folder: what was asked for, by the order's number, or in one line why it could not be
had."""
SIGN = "sign-{}-{}"
"""There, too, by the order's number and that of the process: how many examples it has read, written anew while it goes
on, from the first on."""


class ShardPlan(Message):
    """One file to write: the examples from number `first` on."""

    file: str
    first: int
    examples: int


class PrepareOrder(Message):
    """What one process, or one driver of several, is to do.

    `import` takes the time to import what is needed, as others do something else; `describe` makes the source ready and
    says what its examples are; `write` writes files; `compare` reads the source and the files in turns.
    """

    number: int
    do: Literal["import", "describe", "write", "compare"]
    source: str
    data_dir: str
    scratch: str
    """A folder for the answer."""
    target: str = ""
    features: Features | None = None
    """Of `write`: what `describe` has found, with the compression asked for."""
    groups: tuple[tuple[ShardPlan, ...], ...] = ()
    """Of `write`: files by the process that writes them, each group in one pass over the source."""
    by: RunBy = "local"
    """Who runs the groups; `local` has one group, and a process each is started by `prepare` itself."""


class Described(Message):
    """The answer to `describe`: `features` without shards, of as many examples as there are."""

    features: Features
    state: str
    """What tells the source's examples from those that it had another time."""


class ReadingCompared(Message):
    """The answer to `compare`: the first examples of both, read and decoded in turns."""

    source: ReadingSpeed
    files: ReadingSpeed


class Preparer(Protocol):
    """An engine that writes TFRecord files."""

    def prepare_files(self, order: PrepareOrder) -> Described | ReadingCompared | None:
        """Do what is asked for, in this process; None where that has no answer. Raises HarnessError."""
