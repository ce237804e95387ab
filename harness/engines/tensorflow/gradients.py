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
LEAST_LIMIT_S = 300.0
"""To build a model may take so long, whatever the limit of a trial: TensorFlow is imported for it."""


def gradient_shapes(name: str) -> list[tuple[int, ...]]:
    """Shapes of the gradients of the model called `name`, in the order of its trained weights; none of a model that
    trains nothing. UsageError for one that cannot be built."""
    workload = load_workload(name)
    classes = CLASSES_OF_APPLICATIONS if name.startswith(PREFIX) else CLASSES
    model = workload.build(workload.input_shape or (), classes)
    return [tuple(int(size) for size in weight.shape) for weight in model.trainable_variables]


@functools.cache
def gradient_bytes(name: str, timeout_s: float = LEAST_LIMIT_S) -> int:
    """Bytes of float32 of all of them; a process of its own builds the model, since the parent has no framework.

    Raises UsageError, one line, where it cannot, or has not after `timeout_s`, or LEAST_LIMIT_S if that is more.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", __name__, name, str(os.getpid())]
    limit = max(timeout_s, LEAST_LIMIT_S)
    try:
        told = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # a model of the user's own may print anything
            check=False,
            env=os.environ | quiet,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"model: '{name}' was not built within {limit:g} s; mend it, or allow more seconds by --timeout"
        ) from None
    lines = told.stdout.splitlines() or ["{}"]
    try:
        found = json.loads(lines[-1])
    except json.JSONDecodeError:
        found = {}
    if not isinstance(found, dict):
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
