"""Every name that a spec may use with PyTorch, for the parent: importing this imports no PyTorch."""

from dataclasses import replace

from harness.engines.torch.loops import loops
from harness.engines.torch.loops.base import PLAIN
from harness.engines.torch.loops.ddp_hook import COMPRESSIONS
from harness.spec.catalogue import Catalogue, DeviceTraits
from harness.trial.same_work.catalogue import GPU, TAKEN_APART, replicas_are_processes

CARDS = DeviceTraits(GPU, "physical GPUs, one a process", live_trials=4, past_networks=True)
"""NCCL takes the memory of a host between its cards, whatever network its processes are in."""


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    found = replicas_are_processes(
        "a plain eager step in one process",
        "over Gloo, on GPUs over NCCL",
        {name: f"gradients travel in {of.dtype}, by DDP's {of.hook}" for name, of in COMPRESSIONS.items()},
        {name: loop.summary for name, loop in loops().items()},
        first="ddp",
        instruments=dict.fromkeys(loops(), TAKEN_APART),
        cards=(CARDS,),
    )
    compressing = tuple(name for name, loop in loops().items() if loop.build.takes_compression)
    packing = tuple(name for name, loop in loops().items() if loop.build.takes_buckets)
    return replace(
        found,
        strategies={name: replace(traits, packing_loops=packing) for name, traits in found.strategies.items()},
        cross_device_ops={
            name: traits if name == PLAIN else replace(traits, loops=compressing)
            for name, traits in found.cross_device_ops.items()
        },
        refuses={
            **found.refuses,
            "inter_op_threads": "PyTorch's steps run one op after another; give --intra-op-threads",
        },
    )
