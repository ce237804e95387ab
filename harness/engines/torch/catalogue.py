"""Every name that a spec may use with PyTorch, for the parent: importing this imports no PyTorch."""

from harness.engines.torch.loops import loops
from harness.engines.torch.loops.ddp_hook import COMPRESSIONS
from harness.spec.catalogue import Catalogue
from harness.trial.same_work.catalogue import TAKEN_APART, replicas_are_processes


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    return replicas_are_processes(
        "a plain eager step in one process",
        "over Gloo",
        {name: f"gradients travel in {of.dtype}, by DDP's {of.hook}" for name, of in COMPRESSIONS.items()},
        {name: loop.summary for name, loop in loops().items()},
        first="ddp",
        instruments=dict.fromkeys(loops(), TAKEN_APART),
    )
