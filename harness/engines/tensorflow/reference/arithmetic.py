"""What a model is computed in, which says how closely two runs of it can be expected to agree."""

import os

from harness.engines.tensorflow.server_state import StatelessModel
from harness.engines.tensorflow.training import Training
from harness.trial.judgement import STATE_TOLERANCE

OF_LAYERS = {"bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
"""The arithmetic of a layer by the type that it computes in; others round less than float32's."""


def arithmetic_of(training: Training) -> str:
    """The precision, or `tf32` where a GPU computes float32 in fewer bits, as TensorFlow lets it by itself.

    NVIDIA_TF32_OVERRIDE=0 forbids that to NVIDIA's libraries, whatever TensorFlow says, and not to kernels of XLA's.
    """
    import tensorflow as tf

    cell = training.cell
    if cell.precision != "float32" or not tf.config.experimental.tensor_float_32_execution_enabled():
        return cell.precision
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0" and not cell.xla:
        return cell.precision
    gpus = [gpu for gpu in tf.config.list_physical_devices("GPU") if "GPU" in training.devices.names[0]]
    able = [tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) for gpu in gpus]
    return "tf32" if any(capability >= (8, 0) for capability in able) else "float32"


def coarsest_arithmetic(training: Training) -> str:
    """That, or what one of the model's layers computes in by a policy of its own, whichever rounds most."""
    model = training.model
    model = model.template if isinstance(model, StatelessModel) else model
    of_layers = (OF_LAYERS.get(layer.compute_dtype) for layer in model._flatten_layers())
    found = {arithmetic_of(training), *(name for name in of_layers if name)}
    return max(sorted(found), key=STATE_TOLERANCE.__getitem__)
