"""What really runs in a step: its all-reduces, and a fingerprint of model, optimizer and way."""

import hashlib
from typing import Any

from harness.engines.torch.loops.base import Averaging
from harness.record.trial import Executed
from harness.trial.instruments import Holds

UNLIKE = {
    "compiler": "none: eager, op after op",
    "layout": "channels first",
    "processes": "one a replica",
    "threads": "each process has its own pool",
}
"""What is not as under TensorFlow."""


def inspect(averaging: Averaging, optimizer: Any, stages: list[str], remarks: dict[str, str]) -> Executed:
    """After a step or more. An eager step has no program; its fingerprint is of what it is made of."""
    reductions = sorted(averaging.reductions(), reverse=True)
    shapes = [(name, tuple(parameter.shape)) for name, parameter in averaging.module.named_parameters()]
    made_of = repr((str(averaging.called), shapes, str(optimizer), type(averaging).__name__, reductions))
    return Executed(
        operations={"all-reduce": len(reductions)} if reductions else {},
        packs=len(reductions),
        pack_bytes=reductions,
        fingerprint=hashlib.sha256(made_of.encode()).hexdigest()[:16],
        input=stages,
        unlike={
            **UNLIKE,
            **({"packs": averaging.packs} if reductions else {}),
            **({"statistics": averaging.buffers} if averaging.buffers else {}),
            **remarks,
        },
    )


def of_instrument(whole: Executed, name: str, holds: Holds) -> Executed:
    """What ran of a step that lacks something, by what was counted of it."""
    sums, same = holds.bytes_added_up, holds.bytes_added_up == sum(whole.pack_bytes)
    sizes = whole.pack_bytes if same else [sums] if sums else []
    made_of = f"{whole.fingerprint} {name}"
    told = {"operations": dict(holds.reductions), "packs": len(sizes), "pack_bytes": sizes}
    return whole.model_copy(update={**told, "fingerprint": hashlib.sha256(made_of.encode()).hexdigest()[:16]})
