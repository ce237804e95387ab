"""An engine whose framework takes a chip as it is imported, as TensorFlow takes a TPU: by a lock on a file.

One process at a time may hold it, and a fork does not inherit it. CHIP_LOCK names the file; with CHIP_IS_KNOWN=no the
engine does not say that an import takes the chip.
"""

import dataclasses
import fcntl
import os

from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue, DeviceTraits
from tests.engines.numpy_engine import LeastSquares, NumpyEngine


class ChipEngine(NumpyEngine):
    """NumPy, on a chip."""

    _owner = 0

    def catalogue(self) -> Catalogue:
        """The chip is the only device."""
        known = os.environ.get("CHIP_IS_KNOWN") != "no"
        chip = DeviceTraits("chip", "one process at a time", live_trials=1, taken_by_import=known)
        return dataclasses.replace(super().catalogue(), devices={"chip": chip})

    def preload(self) -> dict[str, str]:
        """Take the chip, unless another process has it."""
        descriptor = os.open(os.environ["CHIP_LOCK"], os.O_RDWR | os.O_CREAT)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._owner = os.getpid()
        except OSError:
            self._owner = 0
        return super().preload()

    def trainer(self, request: Request) -> LeastSquares:
        """Unsupported where this process does not have the chip."""
        if self._owner != os.getpid():
            raise Unsupported("the chip is in use by another process", may_pass=True)
        return super().trainer(request)
