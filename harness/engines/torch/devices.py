"""Where a process computes: on the processor, or on a card of its own. All that differs between the two is here."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import distributed, nn

from harness.environment.cuda import card_at
from harness.environment.gpu import not_found
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.record.trial import TF32, Executed, Resources
from harness.spec.catalogue import VIRTUAL_CPU
from harness.trial.same_work.catalogue import GPU
from harness.trial.same_work.reference import FLOAT32
from harness.trial.same_work.trainer import of_this_process

AMPERE = (8, 0)
"""The compute capability from which on cards multiply in TF32."""


class Processor:
    """The processor: what is computed there is done when the call returns, and nobody counts its memory."""

    device = torch.device("cpu")

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def joins(self) -> Mapping[str, Any]:
        """What `init_process_group` is told of it."""
        return {"backend": "gloo"}

    def put(self, what: Any) -> Any:
        """A tensor or a module that lies on the host, where it is computed with."""
        return what

    def wait(self) -> None:
        """Return when all that was begun here is done."""

    def peak_bytes(self) -> int | None:
        """The most bytes of tensors at a time since `forget_peak`; None where nobody counts them."""
        return None

    def forget_peak(self) -> None:
        """From now on the peak is of what comes."""

    def arithmetic(self, module: Any) -> str:
        """What float32 is computed in: a key of `harness.trial.judgement.STATE_TOLERANCE`."""
        return FLOAT32

    def told(self, found: Executed, module: Any = None) -> Executed:
        """What was executed, with what is known of it here: of `module`, or where there is none of a collective."""
        return found

    @property
    def resources(self) -> Resources:
        """Of this process."""
        return of_this_process(self._request, (self._threads, 0))

    @property
    def _threads(self) -> int:
        """As PyTorch says, within an op, where they were set; 0 is its own choice."""
        return self._request.intra_op_threads and torch.get_num_threads()


class Card(Processor):
    """A card of its own: the first that is visible, or that of the process's number among those of its host.

    Calls return before they are done, NCCL's too. Unsupported, with the reason, where there is no card for it.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if not torch.cuda.is_available():
            raise Unsupported(no_card_reason())
        index = 0 if request.member is None else request.member.first_device
        self._count = torch.cuda.device_count()
        if index >= self._count:
            raise Unsupported(
                f"{index + 1} processes on this host need a GPU each, since NCCL refuses two on one, and PyTorch finds "
                f"{self._count}"
            )
        self.device = torch.device("cuda", index)
        torch.cuda.set_device(self.device)

    @property
    def joins(self) -> Mapping[str, Any]:
        """Tensors on the card travel by NCCL, whose communicator is made at once; numbers on the host by Gloo.

        Nothing destroys the communicator: trials leave by os._exit once all have said how they ended, and the driver
        takes back what they had.
        """
        return {"backend": "cpu:gloo,cuda:nccl", "device_id": self.device}

    def put(self, what: Any) -> Any:
        """Copied from page-locked memory without waiting for it: what comes later on the card does wait."""
        if isinstance(what, nn.Module):
            return what.to(self.device)
        return what.pin_memory().to(self.device, non_blocking=True)

    def wait(self) -> None:
        """Every stream of the card, NCCL's among them."""
        torch.cuda.synchronize(self.device)

    def peak_bytes(self) -> int | None:
        """As PyTorch's allocator counts them; what it keeps for later, CUDA and its libraries come besides."""
        return int(torch.cuda.max_memory_allocated(self.device))

    def forget_peak(self) -> None:
        """What lies there now counts on."""
        torch.cuda.reset_peak_memory_stats(self.device)

    def arithmetic(self, module: Any) -> str:
        """TF32 where the card has it and one of the module's layers is computed in it."""
        convolves = any(isinstance(part, nn.Conv2d) for part in module.modules())
        taken = [kind for kind, on in self._in_tf32.items() if on and (convolves or kind != CONVOLUTIONS)]
        return TF32 if taken else FLOAT32

    @property
    def _in_tf32(self) -> dict[str, bool]:
        """Which kinds of ops compute float32 in TF32: PyTorch's own choice is convolutions alone, and nothing here
        changes it. NVIDIA_TF32_OVERRIDE=0 forbids it to NVIDIA's libraries, whatever PyTorch says; AMD's cards, whose
        capabilities are other numbers, have none."""
        able = torch.version.hip is None and torch.cuda.get_device_capability(self.device) >= AMPERE
        able = able and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"
        allowed = {CONVOLUTIONS: torch.backends.cudnn.allow_tf32, PRODUCTS: torch.backends.cuda.matmul.allow_tf32}
        return {kind: able and on for kind, on in allowed.items()}

    def told(self, found: Executed, module: Any = None) -> Executed:
        """With what really carries tensors of the card, and the arithmetic."""
        operations = {f"{op}[{self._carrier}]": count for op, count in found.operations.items()}
        if module is None:
            return found.model_copy(update={"operations": operations})
        kinds = " and ".join(kind for kind, on in self._in_tf32.items() if on)
        kept = {subject: words for subject, words in found.unlike.items() if subject != "threads"}
        chosen = {} if torch.backends.cudnn.benchmark else {"kernels": "convolutions not chosen by their times"}
        unlike = {**kept, **chosen, "arithmetic": f"TF32 in {kinds} alone" if kinds else "no TF32"}
        told = {"operations": operations, "arithmetic": self.arithmetic(module), "unlike": unlike}
        return found.model_copy(update=told)

    @property
    def _carrier(self) -> str:
        """The name of the backend that the group has for this card."""
        return str(distributed.group.WORLD._get_backend(self.device).name())

    @property
    def resources(self) -> Resources:
        """The card, and how many the host has."""
        card = card_at(self.device.index)
        return Resources(
            logical_devices=[str(self.device)],
            physical_devices=self._count,
            intra_op_threads=self._threads,
            gpus=[] if card is None else [card],
        )


CONVOLUTIONS, PRODUCTS = "convolutions", "matrix products"
PLACES: Mapping[str, Callable[[Request], Processor]] = {VIRTUAL_CPU: Processor, GPU: Card}
"""By device kind."""


def place_of(request: Request) -> Processor:
    """Where the process of a request computes; to be asked before anything else is built."""
    return PLACES[request.cell.shape.device](request)


def no_card_reason() -> str:
    """Why PyTorch finds no GPU here, and what to do, in one line."""
    of = torch.version.cuda or torch.version.hip
    if of is None:
        return (
            f"PyTorch {torch.__version__} finds no GPU: it is a build for processors; the one with CUDA is in pip's "
            "default index: python -m harness engine install torch"
        )
    remedy = f"the driver is older than a build for CUDA {of} wants, or CUDA_VISIBLE_DEVICES hides them"
    return not_found(f"PyTorch {torch.__version__}", remedy)
