"""Whether a process was fed the batches that its cell, the seed and its place among the processes give."""

import itertools
from collections.abc import Sequence

from harness.protocol.messages import Request
from harness.trial.same_work.batches import DIGITS, Data

AS_THEY_ARE = (8, 8, 1)
"""The digits' own size: labels do not depend on it, and no image need be resized."""


def check_input(request: Request, seen: Sequence[str]) -> dict[str, str | None]:
    """The evidence against the batches whose labels had these digests (`harness.trial.sameness.LabelsSeen`), None where
    there is none: they are drawn anew, whatever the trainer did with its own.

    Nothing of a batch that stays on the devices, which is one of the gate's, of data that only an engine of one's own
    has, and of batches that nobody looked at.
    """
    if request.training.data != DIGITS or not seen:
        return {}
    pairs = enumerate(zip(seen, _due(request, len(seen)), strict=True), start=1)
    wrong = next((number for number, (found, due) in pairs if found != due), None)
    who = "the process" if request.member is None else request.member.name
    said = f"{who} was fed other examples than seed {request.seed} gives it, from batch {wrong} on"
    return {"input": None if wrong is None else said}


def _due(request: Request, count: int) -> list[str]:
    """What the digests of the first batches are to be."""
    cell = request.training
    size, rank = cell.global_batch_size // cell.workers, 0 if request.member is None else request.member.index
    share = slice(rank * size, (rank + 1) * size)
    data = Data(cell.data, AS_THEY_ARE, cell.global_batch_size, request.seed, 0, share, processes=cell.workers)
    for _ in itertools.islice(data.batches(lambda batch: batch), count):
        pass
    return data.seen.digests[:count]
