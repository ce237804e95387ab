"""The gate of instruments: a step with something left out lacks what its name says and nothing else, whatever engine
trains. What a step holds each engine finds out by itself."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.record.explain import (
    BARRIER,
    EMPTY,
    FORWARD,
    IN_ONE_CALL,
    NO_INPUT,
    NO_REDUCTION,
    NO_UPDATE,
    REDUCTION,
)
from harness.record.explain import STEPS_A_CALL as STEPS_A_CALL  # an engine's instruments make as many

ONE_NUMBER = 4
"""Its bytes, in float32."""
READ_INPUT = (NO_REDUCTION, NO_UPDATE, BARRIER)
"""Instruments that have batches of the input; the others have the gate's, which lie on the devices."""


@dataclass(frozen=True)
class Holds:
    """What of a step tells instruments apart."""

    work: Counter[str]
    """Products, convolutions, and what goes backward, by op."""
    reductions: Counter[str]
    changes: int
    """Of variables."""
    bytes_added_up: int = 0
    """Over replicas, of gradients or one number."""
    collectives: int = 0
    """Also those of a scalar, which are in no record."""
    reads: int = 0
    """Of variables."""
    flops: int | None = None
    """Of the work; None where nobody counts them, or could, such as within a loop."""
    sent_besides: Counter[str] = field(default_factory=Counter)
    """What replicas tell each other that is no sum, such as untrained statistics."""
    left: int = 0
    """Of products and convolutions, what an optimiser of programs has left, where an engine tells."""
    forward: Counter[str] | None = None
    """Of the work, what is of the forward pass; None where nobody can tell."""
    updates: int = 0
    """Of the changes, those that the optimizer makes, where an engine tells."""


def lacks_more(name: str, whole: Holds, holds: Holds, goes_backward: Callable[[str], bool]) -> str | None:
    """What an instrument's step lacks or has against its name; None where it is as it should be.

    `goes_backward` tells of an op's name in `work` whether it does.
    """
    computes = name not in (FORWARD, EMPTY, REDUCTION)
    reduces = name in (NO_INPUT, NO_UPDATE, REDUCTION, IN_ONE_CALL)
    updates = name in (NO_INPUT, NO_REDUCTION, BARRIER, IN_ONE_CALL)
    if computes and holds.work != whole.work:
        return f"it computes {in_words(holds.work)} where the whole step computes {in_words(whole.work)}"
    told = holds.flops is not None and whole.flops is not None
    if computes and told and holds.flops != whole.flops:
        return f"its products take {holds.flops:,} operations where the whole step's take {whole.flops:,}"
    if computes and holds.left != whole.left:
        return f"{holds.left} products and convolutions are executed, and {whole.left} in the whole step"
    if reduces and holds.reductions != whole.reductions:
        return f"it reduces by {in_words(holds.reductions)} where the whole step does by {in_words(whole.reductions)}"
    if reduces and holds.bytes_added_up != whole.bytes_added_up:
        return f"it adds up {holds.bytes_added_up:,} bytes where the whole step adds up {whole.bytes_added_up:,}"
    if not reduces and holds.reductions and not (name == BARRIER and holds.bytes_added_up == ONE_NUMBER):
        return f"it still reduces, by {in_words(holds.reductions)}"
    if updates and holds.changes != whole.changes:
        return f"it changes variables {holds.changes} times where the whole step does {whole.changes} times"
    most = 0 if whole.updates and name in (EMPTY, REDUCTION) else whole.changes - max(1, whole.updates)
    if not updates and holds.changes > most:
        return f"it changes variables {holds.changes} times, and may change them {most} times at most"
    if name == BARRIER and not holds.collectives:
        return "no replica waits for another"
    if (updates or name == NO_UPDATE) and holds.sent_besides != whole.sent_besides:
        besides, of_whole = in_words(holds.sent_besides), in_words(whole.sent_besides)
        return f"besides sums it sends {besides} where the whole step sends {of_whole}"
    ahead = any(not goes_backward(op) for op in whole.work)
    if name == FORWARD and ahead and not (holds.work and (holds.left or not whole.left)):
        return f"it computes nothing where the whole step computes {in_words(whole.work)}"
    if name == FORWARD and any(map(goes_backward, holds.work)):
        return f"it goes backward: {in_words(holds.work)}"
    if name == FORWARD and None not in (whole.forward, holds.forward) and holds.forward != whole.forward:
        forward, of_whole = in_words(holds.forward or Counter()), in_words(whole.forward or Counter())
        return f"it computes {forward} where the whole step's forward pass computes {of_whole}"
    if name in (EMPTY, REDUCTION) and holds.work:
        return f"it computes {in_words(holds.work)}"
    return None


def in_words(counts: Counter[str]) -> str:
    """`2 MatMul, 1 ReluGrad`."""
    return ", ".join(f"{count} {op}" for op, count in sorted(counts.items())) or "nothing"
