"""What a profile of a few steps says of where their time goes, on processors: a moment belongs to what runs in it.

Where several run at once the moment is the first one's of PARTS, so communication and input count only as far as
nothing computes meanwhile, as in `docs/protocol.md#parts-of-a-step`. Cards' profiles name kernels instead of ops and
are not read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PARTS = ("compute", "update", "communication", "input")
"""Of a moment in which several run the first one counts."""
REST = "rest"
"""When none of them runs: Python, the strategy, the executor between ops."""
HOST_PLANE, GPU_PLANE = "/host:CPU", "/device:GPU:"
"""What TensorFlow's profiler calls the host and a GPU (`xplane_schema.cc`)."""
NEXT_BATCH = "EagerLocalExecute: IteratorGetNext"
"""The step's wait for its batch, in the thread that trains."""
INPUT_THREADS = "tf_data"
"""What the names of tf.data's own threads begin with: what they do nobody waits for there."""


@dataclass(frozen=True)
class _Span:
    part: str
    start: int
    end: int


def parts_of(planes: Sequence[Any], steps: int, optimizer: str) -> dict[str, float] | None:
    """Seconds a step of each part and of the rest, of a profile's XPlanes; `optimizer` is the name that its ops are
    below. Without communication where the profile has no collective, as where devices add up by plain ops. None where
    a GPU computed, or nothing of the step is there."""
    if any(plane.name.startswith(GPU_PLANE) for plane in planes):
        return None
    spans = [span for plane in planes if plane.name == HOST_PLANE for span in _spans(plane, optimizer)]
    if not any(span.part == "compute" for span in spans):
        return None
    picoseconds = _by_part(spans)
    if not any(span.part == "communication" for span in spans):
        del picoseconds["communication"]
    return {part: 1e-12 * spent / steps for part, spent in picoseconds.items()}


def _spans(plane: Any, optimizer: str) -> Iterator[_Span]:
    for line in plane.lines:
        if line.name.startswith(INPUT_THREADS):
            continue
        for event in line.events:
            if part := part_of(plane.event_metadata[event.metadata_id].name, optimizer):
                start = 1000 * line.timestamp_ns + event.offset_ps
                yield _Span(part, start, start + event.duration_ps)


def part_of(event: str, optimizer: str) -> str | None:
    """The part that an event of the host is of; None of what is no op of the step. Ops are `name:type`."""
    if event == NEXT_BATCH:
        return "input"
    name, _, kind = event.partition(":")
    if not name or not kind.isidentifier():
        return None
    if kind.startswith(("Collective", "Nccl")):
        return "communication"
    return "update" if optimizer in name.split("/")[:-1] else "compute"


def _by_part(spans: Sequence[_Span]) -> dict[str, int]:
    """Picoseconds of each part from the first span's begin to the last one's end."""
    turns = sorted([(span.start, 1, span.part) for span in spans] + [(span.end, -1, span.part) for span in spans])
    running, spent = dict.fromkeys(PARTS, 0), dict.fromkeys((*PARTS, REST), 0)
    before = turns[0][0]
    for moment, change, part in turns:
        spent[next((each for each in PARTS if running[each]), REST)] += moment - before
        running[part] += change
        before = moment
    return spent
