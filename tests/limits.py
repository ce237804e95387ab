"""Valid records of a machine's limits, for tests of whatever reads or writes them."""

from typing import Any

from harness.record.limits import Limit, LimitsRecord
from harness.record.manifest import Machine

MACHINE = "3f2a91c07d55"
REASON = "TensorFlow finds no GPU"


def limit(**changes: Any) -> Limit:
    """Products of float32 on one thread, of three processes."""
    values: dict[str, Any] = {
        "quantity": "products",
        "type": "float32",
        "device": "cpu",
        "threads": 1,
        "rates": [60e9, 64e9, 62e9],
        "sizes": [1024, 1024, 1024],
        "repetitions": [4, 5, 5],
    }
    return Limit(**(values | changes))


def missing(**changes: Any) -> Limit:
    """A copy that no GPU is there for."""
    none: dict[str, Any] = {"rates": [], "sizes": [], "repetitions": [], "reason": REASON}
    return limit(**({"quantity": "host_to_device", "type": "bytes", "device": "gpu", "threads": 0} | none | changes))


def limits(**changes: Any) -> LimitsRecord:
    """Products and memory on one thread, and a copy that cannot be measured."""
    memory = limit(quantity="memory", type="float64", rates=[12e9, 13e9, 12.5e9], sizes=[2**24] * 3)
    values: dict[str, Any] = {
        "machine_id": MACHINE,
        "created_utc": "2026-11-23T15:10:09+00:00",
        "harness_version": "0.1.0",
        "seconds": 24.5,
        "limits": [limit(), memory, missing()],
        "machine": Machine(facts={"machine.id": MACHINE, "cpu.usable_cores": 2}, warnings=["the load is high"]),
    }
    return LimitsRecord(**(values | changes))
