"""What a model is computed in, which says how closely two runs of it can be expected to agree."""

import os
from collections.abc import Sequence

from harness.engines.tensorflow.server_state import StatelessModel
from harness.engines.tensorflow.training import Training
from harness.record.trial import TF32
from harness.trial.judgement import STATE_TOLERANCE

OF_LAYERS = {"bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
"""The arithmetic of a layer by the type that it computes in; others round less than float32's."""


def arithmetic_of(training: Training) -> str:
    """The precision, or what float32 is computed in."""
    cell = training.cell
    return cell.precision if cell.precision != "float32" else float32_on(training.devices.names, xla=cell.xla)


def float32_on(devices: Sequence[str], *, xla: bool = False) -> str:
    """`tf32` where a GPU computes float32 in fewer bits, as TensorFlow lets it by itself; else `float32`.

    NVIDIA_TF32_OVERRIDE=0 forbids that to NVIDIA's libraries, whatever TensorFlow says, and not to kernels of XLA's.
    """
    import tensorflow as tf

    forbidden = os.environ.get("NVIDIA_TF32_OVERRIDE") == "0" and not xla
    on_gpus = any("GPU" in device for device in devices)
    if not on_gpus or forbidden or not tf.config.experimental.tensor_float_32_execution_enabled():
        return "float32"
    gpus = tf.config.list_physical_devices("GPU")
    able = [tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) for gpu in gpus]
    return TF32 if any(capability >= (8, 0) for capability in able) else "float32"


def coarsest_arithmetic(training: Training) -> str:
    """That, or what one of the model's layers computes in by a policy of its own, whichever rounds most."""
    model = training.model
    model = model.template if isinstance(model, StatelessModel) else model
    of_layers = (OF_LAYERS.get(layer.compute_dtype) for layer in model._flatten_layers())
    found = {arithmetic_of(training), *(name for name in of_layers if name)}
    return max(sorted(found), key=STATE_TOLERANCE.__getitem__)
