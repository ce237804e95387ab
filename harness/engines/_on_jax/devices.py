"""The devices of one process: on the processor, with the threads that they share, or cards."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from harness.engines._on_jax import REFUSED_SETTINGS
from harness.engines._on_jax.compiled import share_compiled, write_compiled_too
from harness.engines._on_jax.joining import join
from harness.environment.cuda import card_at
from harness.environment.gpu import not_found
from harness.errors import HarnessError, Unsupported
from harness.protocol.messages import Request
from harness.record.trial import TF32, Executed, Resources
from harness.trial.same_work.catalogue import GPU
from harness.trial.same_work.reference import FLOAT32
from harness.visible import message

POOL = "NPROC"
"""A variable that XLA reads as its backend starts: how many threads its pools have."""
OF_POOL, BEGUN_S = "tf_XLAEigen", 1.0
"""What the threads of that pool that computes call themselves, and how long they are waited for until they do."""
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""A variable that says whether a process takes three quarters of a card at once, as is JAX's own choice."""
OF_CARDS = {GPU, "cuda", "rocm"}
"""What JAX_PLATFORMS may have that is a GPU."""
AMPERE = 8.0
"""The compute capability from which on cards multiply in TF32."""
WHOLE, ROUNDS_MORE = ("highest", "float32", "f32_f32_f32"), ("bf16_", "f16_", "any_f8")
"""JAX's precisions of products in which float32 is not TF32, and how those begin that have fewer bits than TF32."""
THREADS_A_DEVICE = 2
"""XLA's devices on a processor share pools of threads, in which those that wait for an all-reduce block. With as many
threads as devices a run of steps that nobody waits for was seen to hang at 2 and at 4 devices; with twice as many it
was not (`docs/engines.md`)."""


class TrialDevices(NamedTuple):
    """What the replicas of a trial got: devices, the threads of a pool, and the processors or cards that bound them."""

    devices: list[Any]
    """Of all processes, in the order of the replicas."""
    own: list[Any]
    """Those of this process."""
    threads: int
    """As many as were asked for; 0 is XLA's own choice: all cores."""
    physical: int
    shared: bool
    arithmetic: str = FLOAT32
    """What float32 is computed in: a key of `harness.trial.judgement.STATE_TOLERANCE`."""
    cards: tuple[str, ...] = ()
    """The id of each of this process's cards that CUDA's driver tells."""

    @property
    def on_cards(self) -> bool:
        """Whether they are GPUs."""
        return any(device.platform == GPU for device in self.own)

    @property
    def resources(self) -> Resources:
        """Those of this process; of the threads how many all devices share, counted where their number was not left to
        XLA, and how many of those compute for one device."""
        threads = _in_pool(self.threads) if self.threads else 0
        return Resources(
            logical_devices=[f"{device.platform}:{device.id}" for device in self.own],
            physical_devices=self.physical,
            shared=self.shared,
            intra_op_threads=threads if len(self.own) == 1 else threads // (THREADS_A_DEVICE * len(self.own)),
            inter_op_threads=threads,
            gpus=list(self.cards),
        )

    def told(self, found: Executed) -> Executed:
        """What was executed, with what is known of it here."""
        if not self.on_cards:
            return found
        unlike = {subject: words for subject, words in found.unlike.items() if subject != "threads"}
        return found.model_copy(update={"arithmetic": self.arithmetic, "unlike": unlike})


def _in_pool(asked: int) -> int:
    """How many threads XLA's pool has, which JAX tells nobody: by their names, which they take as they begin. 0 where
    the kernel does not tell."""
    until = time.monotonic() + BEGUN_S
    while (found := _threads_called(OF_POOL)) < asked and time.monotonic() < until:
        time.sleep(0.01)
    return found


def _threads_called(name: str) -> int:
    found = 0
    for told in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has ended
            found += told.read_text().strip() == name
    return found


def set_up(request: Request) -> TrialDevices:
    """Start JAX's backend with the devices of this process's replicas, and join the other processes where there are
    several; HarnessError where it had been started before, Unsupported where a second pool is asked for, or
    more cards than JAX finds."""
    if request.inter_op_threads:
        raise Unsupported(f"inter_op_threads: {REFUSED_SETTINGS['inter_op_threads']}")
    return _cards(request) if request.cell.shape.device == GPU else _of_processor(request)


def _cards(request: Request) -> TrialDevices:
    """The first that JAX finds. Memory is taken as it is needed: other trials of the cards are alive, too."""
    os.environ.setdefault(PREALLOCATE, "false")
    import jax

    if request.scratch:
        share_compiled(Path(request.scratch))
    found, count = _found_cards(jax), request.cell.devices
    if count > len(found):
        raise Unsupported(f"{count} replicas need a GPU each, and JAX finds {len(found)}")
    own = found[:count]
    ids = (card_at(device.local_hardware_id) for device in own)
    return TrialDevices(own, own, 0, len(found), False, _arithmetic(own), tuple(one for one in ids if one))


def _found_cards(jax: Any) -> list[Any]:
    """Unsupported, with the reason, where there is none."""
    asked = str(jax.config.jax_platforms or "")
    if asked and not OF_CARDS & set(asked.split(",")):
        raise Unsupported(f"JAX {jax.__version__} finds no GPU, since JAX_PLATFORMS is '{asked}': unset it")
    try:
        found: list[Any] = jax.local_devices(backend=GPU)
    except RuntimeError as error:
        build = f"{sys.executable} -m pip install 'jax[cuda12]=={jax.__version__}'"
        said = f"JAX says: {message(str(error))}"
        remedy = f"CUDA_VISIBLE_DEVICES hides them, or this build is for processors ({build}); {said}"
        raise Unsupported(not_found(f"JAX {jax.__version__}", remedy)) from error
    return found


def _arithmetic(cards: list[Any]) -> str:
    """XLA multiplies and convolves float32 in TF32 where a card has it and nobody asks for more: JAX's default
    precision, and what it calls high and bfloat16. NVIDIA_TF32_OVERRIDE=0 forbids it to NVIDIA's libraries, and not to
    XLA's own kernels. Unsupported for what rounds more."""
    import jax

    able = all(_capability(card) >= AMPERE for card in cards)
    asked = str(jax.config.jax_default_matmul_precision).lower()
    if asked.startswith(ROUNDS_MORE):
        raise Unsupported(f"JAX_DEFAULT_MATMUL_PRECISION is {asked}: products are proved in float32 and TF32 alone")
    return FLOAT32 if not able or asked in WHOLE or asked.startswith("f64") else TF32


def _capability(card: Any) -> float:
    """Of NVIDIA's cards; 0 of another maker's, which JAX names by letters, such as gfx942."""
    try:
        return float(card.compute_capability)
    except (AttributeError, ValueError):
        return 0.0


def _of_processor(request: Request) -> TrialDevices:
    """One device has the threads that the cell asks for. Several share twice as many as they need, or they may hang."""
    import jax

    count, each = request.cell.devices, request.intra_op_threads
    threads = each if count == 1 else THREADS_A_DEVICE * count * max(1, each)
    if threads:
        os.environ[POOL] = str(threads)
    try:
        jax.config.update("jax_num_cpu_devices", count)  # before which XLA's own flag of that comes to nothing
    except RuntimeError as error:
        raise HarnessError(f"JAX's backend was started before the trial: {message(str(error))}") from None
    jax.config.update("jax_platforms", "cpu")  # whatever accelerators there are, these devices are the processor's
    if request.scratch:
        share_compiled(Path(request.scratch))
    if request.member is not None:
        join(request.member, request.others_limit_s)
        write_compiled_too(request.member.index)
    own = jax.local_devices()
    devices = own if request.member is None else jax.devices()
    physical = max(1, len(os.sched_getaffinity(0)) // max(1, each))
    return TrialDevices(devices, own, threads, physical, shared=len(devices) > physical)


def mean(value: float, request: Request) -> float:
    """The mean over the processes of what each gives, where there are several."""
    if request.member is None:
        return value
    import numpy as np
    from jax.experimental import multihost_utils

    return float(np.mean(multihost_utils.process_allgather(np.float32(value))))


def in_order(array: Any) -> list[Any]:
    """What of an array this process's devices have, in the order of their numbers."""
    return sorted(array.addressable_shards, key=lambda shard: shard.device.id)


def laid(values: Any, sharding: Any) -> Any:
    """NumPy's arrays in any structure, the same in each process, on the devices that the sharding is of.

    Over several processes JAX's `device_put` has them send each other every array first, to see that it is the same.
    That took longer than all else of building a model. Here the gate sees it: all hold the same state in the end.
    """
    import jax
    import numpy as np

    if sharding.is_fully_addressable:
        return jax.device_put(values, sharding)
    return jax.tree.map(
        lambda value: jax.make_array_from_callback(np.shape(value), sharding, lambda index: value[index]), values
    )
