"""Every name that a spec may use with PyTorch, for the parent: importing this imports no PyTorch."""

from harness.engines.torch.loops import loops
from harness.engines.torch.loops.ddp_hook import COMPRESSIONS
from harness.spec.catalogue import Catalogue, DeviceTraits
from harness.trial.same_work.catalogue import GPU, TAKEN_APART, replicas_are_processes

CARDS = DeviceTraits(GPU, "physical GPUs, one a process", live_trials=4, past_networks=True)
"""NCCL takes the memory of a host between its cards, whatever network its processes are in."""


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    return replicas_are_processes(
        "a plain eager step in one process",
        "over Gloo, on GPUs over NCCL",
        {name: f"gradients travel in {of.dtype}, by DDP's {of.hook}" for name, of in COMPRESSIONS.items()},
        {name: loop.summary for name, loop in loops().items()},
        first="ddp",
        instruments=dict.fromkeys(loops(), TAKEN_APART),
        cards=(CARDS,),
    )
