"""How much memory of accelerators a trial took."""

import gc
from collections.abc import Sequence


def peak_device_memory_bytes(device_names: Sequence[str]) -> int | None:
    """Largest sum of device memory over the replicas' GPUs; None where TensorFlow does not count it."""
    import tensorflow as tf

    gpus = _gpus(device_names)
    if not gpus:
        return None
    return sum(int(tf.config.experimental.get_memory_info(gpu)["peak"]) for gpu in gpus)


def forget_peak(device_names: Sequence[str]) -> None:
    """Let the peak begin anew with what is in use now: what came before was not the training's."""
    import tensorflow as tf

    gpus = _gpus(device_names)
    if gpus:
        gc.collect()  # what is over lies on the devices until then
    for gpu in gpus:
        tf.config.experimental.reset_memory_stats(gpu)


def _gpus(device_names: Sequence[str]) -> list[str]:
    """As TensorFlow's counters are asked for them."""
    return sorted({name.rpartition("/device:")[2] for name in device_names if "GPU" in name})
