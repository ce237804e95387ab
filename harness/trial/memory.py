"""How much memory a trial took."""

import sys
from collections.abc import Sequence
from pathlib import Path


def peak_memory_bytes() -> int | None:
    """The process's largest resident set since its start, shared pages of the zygote included."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def peak_device_memory_bytes(device_names: Sequence[str]) -> int | None:
    """Largest sum of device memory over the replicas' GPUs; None where TensorFlow does not count it."""
    import tensorflow as tf

    gpus = {name.rpartition("/device:")[2] for name in device_names if "GPU" in name}
    if not gpus:
        return None
    return sum(int(tf.config.experimental.get_memory_info(gpu)["peak"]) for gpu in gpus)
