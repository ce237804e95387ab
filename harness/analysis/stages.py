"""What the stages of an input pipeline tell of the data that come through it, as they were seen in a run."""

import re
from collections.abc import Sequence

from harness.spec.axes import is_own_code
from harness.spec.cell import TrainingCell
from harness.spec.inputs import JPEG_FILES, UNCOUNTED

_OWN_EXAMPLES = re.compile(r"Shuffle\((\d+)\) Repeat Batch\(\d+\)(?!.* Repeat)")
"""How those end that draw a user's own examples. Batches of the user's own are repeated last of all."""
_COUNT_OF_FILES = re.compile(r"([\d,]+) files?\b")


def can_be_kept(cell: TrainingCell, stages: Sequence[str]) -> bool:
    """Whether a cache takes the data: of a user's own code only examples, of which it is known how many there are.

    Of them the buffer tells it that they are shuffled in, where its size was not asked for: it holds all, or 1 GiB of
    them; of an unknown number UNCOUNTED, unless fewer are 1 GiB, which with no cache asked for looks like a known one.
    """
    if not is_own_code(cell.data):
        return True
    shuffled = _OWN_EXAMPLES.search(" ".join(stages))
    if shuffled is None or cell.shuffle_buffer:
        return False
    size = int(shuffled[1])
    return size > UNCOUNTED or (size < UNCOUNTED and cell.cache == "none")


def in_several_files(cell: TrainingCell, stages: Sequence[str]) -> bool:
    """Whether data that may be read from several files at a time lie in several. Where no stage tells, photographs may
    lie in one, and what was written or given as files is taken for several."""
    told = _COUNT_OF_FILES.search(" ".join(stages))
    return int(told[1].replace(",", "")) > 1 if told else cell.shards > 1 or not are_photographs(cell.data)


def are_photographs(data: str) -> bool:
    """Whether they are crops of photographs, however many."""
    return data.startswith(JPEG_FILES) and not is_own_code(data)
