"""What it means when TensorFlow, Keras or a model raises."""

import re

from harness.protocol.engine import Ending
from harness.trial.ending import plain_ending

NO_KERNEL = re.compile(
    r"No OpKernel was registered to support Op '\w+'|Could not find (a valid )?device for node"
    "|Detected unsupported operations when trying to compile"
)
UNSUPPORTED = re.compile(r"[Nn]ot supported|[Uu]nsupported|not implemented")
"""What TensorFlow's runtime says when a program cannot run on this machine, as opposed to when it fails. Where it is
reading an example that failed, the second are the words of a decoder, or of a data function, about that example."""
OF_INPUT = re.compile("GetNext|__wrapped__(Decode|Reshape|EnsureShape)")
"""What the text of an error has that reading or decoding an example raised: how every iterator's op is called, and
those that decode outside one."""
HANDED_ON = re.compile(r"\[\[[^{}\]]*/_\d+\]\]")
"""How it names the output of another op that the one that failed, or one beside it, was waiting for."""
BESIDE_THE_POINT = (
    "[[",
    "File ",
    "Detected at node",
    "Stack trace",
    "The error could be",
    "Additional GRPC error",
    ":{",
)
"""How the lines of an error begin that do not say what went wrong."""
ABORTED = re.compile(r"Collective ops is aborted by: (.*)(?:\s+(RPC: \S+))?")
"""By what, and which call of another process it was, which follows on a line of its own."""

LIMITS = (
    (
        r"must specify an aggregation method to update a AggregatingVariable",
        "CentralStorageStrategy does not let a replica write a variable that declares no aggregation, which batch "
        "normalisation's statistics, the seeds of dropout and moving averages of weights do not",
    ),
    (
        r"`merge_call` called while defining a new graph or a tf.function",
        "the strategy cannot reduce over replicas inside a condition, where Keras puts accumulated gradients and "
        "averages that overwrite weights (gradient_accumulation_steps, ema_overwrite_frequency), nor inside what XLA "
        "compiles; --micro-batches adds gradients up within a step",
    ),
    (
        r"^Tensors in list passed to 'values' of 'ConcatV2' Op have types",  # a model's own would begin with its layer
        "the cross-device op packs gradients of different types into one tensor, which TensorFlow cannot; "
        "--bytes-per-pack 1 takes each by itself, as does, in one process, --cross-device-op reduction_to_one_device",
    ),
    (
        r"Value for attr 'T' of bfloat16 is not in the list of allowed values",
        "TensorFlow has no such operation for bfloat16, its collectives between workers among them, by which workers' "
        "variables begin alike; a dtype of mixed_bfloat16 keeps a layer's variables in float32",
    ),
    (
        r"Trying to access resource .* located in device .* from device",
        "XLA compiles the step of all replicas as one program, which reaches the variables of one device only; --loop "
        "custom compiles each replica's passes by themselves",
    ),
)
"""What TensorFlow says where a strategy cannot do what Keras or a model asks of it, and what that means."""


OUT_OF_MEMORY = re.compile(
    r"\b[Oo]ut of memory\b|OUT_OF_MEMORY|_ALLOC_FAILED|ALLOCATION_FAILED|resource allocation failed|CUDA [cm]alloc"
)
"""What cuBLAS, cuDNN, NCCL and the CUDA runtime say of memory that they did not get, which TensorFlow hands on as an
internal or unknown error."""


def classify(error: Exception) -> Ending:
    """(status, reason) for what TensorFlow or a model raised."""
    import tensorflow as tf

    reason = f"{type(error).__name__}: {telling_line(str(error))}"
    of_runtime = isinstance(error, tf.errors.OpError)
    if isinstance(error, tf.errors.ResourceExhaustedError) or (of_runtime and OUT_OF_MEMORY.search(str(error))):
        return "out_of_memory", reason
    if limit := _limit(str(error)):
        return "unsupported", limit
    if of_runtime and NO_KERNEL.search(str(error)):
        return "unsupported", reason
    refused = isinstance(error, tf.errors.UnimplementedError) or (of_runtime and UNSUPPORTED.search(str(error)))
    if refused and not OF_INPUT.search(HANDED_ON.sub("", str(error))):
        return "unsupported", reason
    return plain_ending(error)[0], reason


def _limit(message: str) -> str | None:
    """Which limit of TensorFlow's strategies a message is of, in words, and the layer that met it."""
    words = next((words for pattern, words in LIMITS if re.search(pattern, message)), None)
    layer = re.match(r"Exception encountered when calling (\w+)", message)
    return f"{words} (here {layer[1]})" if words and layer else words


def telling_line(message: str) -> str:
    """The first line that says something: Keras puts which layer was called before what went wrong."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message)
    lines = [line.strip() for line in plain.splitlines() if line.strip()] or [""]
    if lines[0].startswith("Exception encountered when calling") and len(lines) > 1:
        return f"{lines[0].removesuffix('.')}: {lines[1]}"
    if aborted := ABORTED.search(plain):
        return f"collectives were aborted by: {', '.join(filter(None, map(str.strip, aborted.groups(''))))}"
    if roots := [line for line in lines if line.startswith("(0) ")]:  # several replicas failed
        return roots[0].removeprefix("(0) ")
    if lines[0].startswith("Graph execution error") and len(lines) > 1:
        # Keras puts where the op was made between this line and what went wrong.
        said = [line for line in lines[1:] if not line.startswith(BESIDE_THE_POINT)]
        return said[-1] if said else lines[0]
    if lines[0].startswith("No OpKernel was registered"):
        # The node's attributes come in no fixed order; what matters is which devices have the kernel.
        devices = next((line for line in lines if line.startswith("Registered devices")), "")
        kernels = ", ".join(dict.fromkeys(re.findall(r"^device='(\w+)'", "\n".join(lines), re.MULTILINE)))
        return f"{lines[0].partition(' used by')[0]} ({devices}; kernels for: {kernels or 'none'})"
    return lines[0]
