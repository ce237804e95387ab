"""JAX on cards that are lent by the processor: what asks for GPUs is given two of its devices.

All else is as on a card, from the launcher to the record. Only in a trial's own process, which ends with it.
"""

import os
from typing import Any

from harness.engines.jax.engine import Jax
from harness.protocol.engine import Trainer
from harness.protocol.messages import Request
from harness.record.trial import TF32

CARDS = 2


def lend() -> None:
    """From now on, device kind `gpu` means such a card in this process."""
    from harness.engines._on_jax import devices

    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={CARDS}"
    os.environ[devices.POOL] = str(devices.THREADS_A_DEVICE * CARDS)
    devices._found_cards = _of_the_processor
    devices._arithmetic = lambda _: TF32
    devices.TrialDevices.on_cards = True  # type: ignore[method-assign, assignment]


def _of_the_processor(jax: Any) -> list[Any]:
    found: list[Any] = jax.local_devices(backend="cpu")
    return found


class LentJax(Jax):
    """JAX and its lent cards."""

    def trainer(self, request: Request) -> Trainer:
        lend()
        return super().trainer(request)
