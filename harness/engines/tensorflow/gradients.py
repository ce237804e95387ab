"""The gradients of a model as the buffers of a collective: of each trained weight a tensor of its shape.

Of an embedding's table it is as large as the table, which a step that sends no more than the rows it met does not send.
"""

import functools
import json
import math
import os
import subprocess
import sys

from harness.engines.tensorflow.workloads import load_workload
from harness.engines.tensorflow.workloads.applications import PREFIX
from harness.errors import HarnessError, UsageError
from harness.spec.collective import ELEMENT_BYTES
from harness.trial.parent import die_with_parent

CLASSES, CLASSES_OF_APPLICATIONS = 10, 1000
"""Of `digits`, and of ImageNet, with which the applications' weights were published. A model of the user's own has its
own."""


def gradient_shapes(name: str) -> list[tuple[int, ...]]:
    """Shapes of the gradients of the model called `name`, in the order of its trained weights. UsageError for a model
    that cannot be built, or that trains nothing."""
    workload = load_workload(name)
    classes = CLASSES_OF_APPLICATIONS if name.startswith(PREFIX) else CLASSES
    model = workload.build(workload.input_shape or (), classes)
    shapes = [tuple(int(size) for size in weight.shape) for weight in model.trainable_variables]
    if not shapes:
        raise UsageError(f"model: '{name}' trains nothing, so it has no gradients to send")
    return shapes


@functools.cache
def gradient_bytes(name: str) -> int:
    """Bytes of float32 of all of them; a process of its own builds the model, since the parent has no framework.

    Raises UsageError, one line, where it cannot.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", __name__, name, str(os.getpid())]
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | quiet)
    lines = told.stdout.splitlines() or ["{}"]
    try:
        found = json.loads(lines[-1])
    except json.JSONDecodeError:  # what a model of the user's own printed last
        found = {}
    if "bytes" in found:
        return int(found["bytes"])
    reason = found.get("reason") or next(iter(told.stderr.splitlines()[-1:]), f"exit code {told.returncode}")
    raise UsageError(f"{reason}" if reason.startswith("model:") else f"model: '{name}' could not be built: {reason}")


def _tell(name: str) -> None:
    try:
        shapes = gradient_shapes(name)
    except HarnessError as error:
        print(json.dumps({"reason": str(error)}))
        return
    print(json.dumps({"bytes": ELEMENT_BYTES * sum(map(math.prod, shapes))}))


if __name__ == "__main__":
    die_with_parent(int(sys.argv[2]))
    _tell(sys.argv[1])
