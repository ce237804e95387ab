"""How much memory of accelerators a trial took."""

from collections.abc import Sequence


def peak_device_memory_bytes(device_names: Sequence[str]) -> int | None:
    """Largest sum of device memory over the replicas' GPUs; None where TensorFlow does not count it."""
    import tensorflow as tf

    gpus = {name.rpartition("/device:")[2] for name in device_names if "GPU" in name}
    if not gpus:
        return None
    return sum(int(tf.config.experimental.get_memory_info(gpu)["peak"]) for gpu in gpus)
