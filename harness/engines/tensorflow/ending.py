"""What it means when TensorFlow, Keras or a model raises."""

import re

from harness.protocol.engine import Ending
from harness.trial.ending import plain_ending

UNSUPPORTED_MESSAGES = (
    r"No OpKernel was registered to support Op '\w+'",
    r"Could not find (a valid )?device for node",
    r"[Nn]ot supported|[Uu]nsupported|not implemented",
)
"""What TensorFlow's runtime says when a program cannot run on this machine, as opposed to when it fails."""


def classify(error: Exception) -> Ending:
    """(status, reason) for what TensorFlow or a model raised."""
    import tensorflow as tf

    reason = f"{type(error).__name__}: {telling_line(str(error))}"
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return "out_of_memory", reason
    refused = isinstance(error, tf.errors.OpError) and any(re.search(m, str(error)) for m in UNSUPPORTED_MESSAGES)
    if refused or isinstance(error, tf.errors.UnimplementedError):
        return "unsupported", reason
    return plain_ending(error)[0], reason


def telling_line(message: str) -> str:
    """The first line that says something: Keras puts which layer was called before what went wrong."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message)
    lines = [line.strip() for line in plain.splitlines() if line.strip()] or [""]
    if lines[0].startswith("Exception encountered when calling") and len(lines) > 1:
        return f"{lines[0].removesuffix('.')}: {lines[1]}"
    if lines[0].startswith("Graph execution error") and len(lines) > 1:
        # Keras puts where the op was made between this line and what went wrong.
        said = [line for line in lines[1:] if not line.startswith(("[[", "File ", "Detected at node", "Stack trace"))]
        return said[-1] if said else lines[0]
    if lines[0].startswith("No OpKernel was registered"):
        # The node's attributes come in no fixed order; what matters is which devices have the kernel.
        devices = next((line for line in lines if line.startswith("Registered devices")), "")
        kernels = ", ".join(dict.fromkeys(re.findall(r"^device='(\w+)'", "\n".join(lines), re.MULTILINE)))
        return f"{lines[0].partition(' used by')[0]} ({devices}; kernels for: {kernels or 'none'})"
    return lines[0]
