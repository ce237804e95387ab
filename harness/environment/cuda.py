"""Which card CUDA means by a number in this process: NVML counts otherwise, and knows no CUDA_VISIBLE_DEVICES."""

import ctypes
import uuid

from harness.environment.gpu import card_id

DRIVER = "libcuda.so.1"


def card_at(ordinal: int) -> str | None:
    """The id (`gpu.N.id`) of the card; of a part of a card (MIG) the whole card's. None where the driver does not tell.

    Asks the driver that a framework has started in this process, and starts nothing.
    """
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return None
    device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if driver.cuDeviceGet(ctypes.byref(device), ctypes.c_int(ordinal)) or driver.cuDeviceGetUuid(raw, device):
        return None
    return card_id(f"GPU-{uuid.UUID(bytes=bytes(raw))}")
