"""How a trial that raised has ended: the status and the reason that people read."""

import types
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.ending import classify, telling_line
from harness.engines.tensorflow.loops.custom import make_step
from harness.engines.tensorflow.workloads import loss_of


def test_a_missing_kernel_is_unsupported_and_says_where_there_is_one(tf: Any) -> None:
    message = (
        "No OpKernel was registered to support Op 'NcclAllReduce' used by {{node x}} with these attrs: [T=DT_FLOAT]\n"
        "Registered devices: [CPU]\nRegistered kernels:\n  device='GPU'\n\n\t [[x]]"
    )
    status, reason = classify(tf.errors.InvalidArgumentError(None, None, message))
    assert status == "unsupported"
    assert reason == (
        "InvalidArgumentError: No OpKernel was registered to support Op 'NcclAllReduce' "
        "(Registered devices: [CPU]; kernels for: GPU)"
    )


def test_running_out_of_memory_has_a_status_of_its_own(tf: Any) -> None:
    assert classify(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"))[0] == "out_of_memory"
    assert classify(MemoryError("cannot allocate"))[0] == "out_of_memory"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("InternalError", "CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory"),
        ("InternalError", "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY; total memory: 1"),
        ("InternalError", "failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED"),
        ("InternalError", "Failed to create cuBLAS handle: the resource allocation failed"),
        ("UnknownError", "Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED\n\t [[{{node conv}}]]"),
        ("InternalError", "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        (
            "InternalError",
            "NCCL: unhandled cuda error (run with NCCL_DEBUG=INFO for details). Last error:\n"
            "Cuda failure 2 'out of memory' [Op:CollectiveReduceV2]",
        ),
        ("UnknownError", "NCCL: unhandled cuda error. Last error: Failed to CUDA calloc async 512 bytes"),
    ],
)
def test_libraries_that_get_no_memory_end_so_whatever_kind_of_error_it_comes_as(
    tf: Any, kind: str, message: str
) -> None:
    status, reason = classify(getattr(tf.errors, kind)(None, None, message))
    assert status == "out_of_memory"
    assert reason.startswith(f"{kind}: {message.splitlines()[0]}")


@pytest.mark.parametrize(
    "message",
    [
        "Blas GEMM launch failed : a.shape=(4, 4), b.shape=(4, 4)",
        "failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED",
        "NCCL: unhandled system error (run with NCCL_DEBUG=INFO for details)",
    ],
)
def test_libraries_that_fail_and_do_not_speak_of_memory_are_a_crash(tf: Any, message: str) -> None:
    assert classify(tf.errors.InternalError(None, None, message))[0] == "crashed"


@pytest.mark.usefixtures("tf")
def test_a_models_own_words_about_memory_are_a_crash() -> None:
    assert classify(ValueError("my cache is out of memory"))[0] == "crashed"


@pytest.mark.usefixtures("tf")
def test_a_models_own_complaint_is_a_crash_even_when_it_says_unsupported() -> None:
    assert classify(ValueError("unsupported shape"))[0] == "crashed"


def rows(error: Exception) -> Any:
    yield 1.0
    raise error


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("error", [ValueError("codec x is not supported"), NotImplementedError("no codec x")])
def test_an_example_that_cannot_be_read_is_a_crash_even_when_its_reader_says_unsupported(
    tf: Any, error: Exception, traced: bool
) -> None:
    data = tf.data.Dataset.from_generator(lambda: rows(error), output_signature=tf.TensorSpec((), tf.float32))
    examples = iter(data.batch(2))
    read = tf.function(lambda: next(examples)) if traced else lambda: next(examples)
    with pytest.raises(tf.errors.OpError) as raised:
        read()
    status, reason = classify(raised.value)
    assert status == "crashed"
    assert "codec x" in reason


def test_an_op_without_a_kernel_that_got_its_batch_from_an_iterator_is_unsupported(tf: Any) -> None:
    for message in (
        "grouped convolutions are not supported\n\t [[{{node conv}}]]\n\t [[IteratorGetNext/_4]]",
        "Detected unsupported operations when trying to compile graph on XLA_CPU_JIT: IteratorGetNext",
    ):
        assert classify(tf.errors.InvalidArgumentError(None, None, message))[0] == "unsupported"


def raised_under(strategy: Any, **options: Any) -> tuple[str, str]:
    """How a step ends of batch normalisation and a layer of float64, under a strategy on two devices."""
    import keras

    with strategy.scope():
        layers = [] if options.pop("plain", False) else [keras.layers.BatchNormalization()]
        kinds = ["float64", "float32"] if options.pop("mixed", False) else ["float32"]
        layers += [keras.layers.Dense(3, dtype=kind) for kind in kinds]
        model = keras.Sequential([keras.Input((4,)), *layers])
        optimizer = keras.optimizers.SGD(0.1, **options)
        optimizer.build(model.trainable_variables)
    cell = types.SimpleNamespace(global_batch_size=8, replicas_per_update=2, micro_batches=1, xla=False)
    training = types.SimpleNamespace(
        strategy=strategy, model=model, optimizer=optimizer, cell=cell, loss=loss_of(model), placement=nullcontext
    )
    x, y = np.ones((4, 4), np.float32), np.zeros(4, np.int32)
    with pytest.raises(Exception) as raised:  # noqa: PT011  which one is what is tested
        make_step(training)(x, y)  # type: ignore[arg-type]
    return classify(raised.value)  # type: ignore[arg-type]


def test_what_a_strategy_cannot_do_is_unsupported_and_says_what_and_why(tf: Any) -> None:
    devices = ["CPU:0", "CPU:1"]
    central = tf.distribute.experimental.CentralStorageStrategy(devices, "CPU:0")
    status, reason = raised_under(central)
    assert status == "unsupported"
    assert reason.startswith("CentralStorageStrategy does not let a replica write")
    assert reason.endswith("(here BatchNormalization)")
    mirrored = tf.distribute.MirroredStrategy(devices, tf.distribute.HierarchicalCopyAllReduce(1))
    accumulating, averaging = {"gradient_accumulation_steps": 2}, {"use_ema": True, "ema_overwrite_frequency": 1}
    for strategy, options in ((mirrored, accumulating), (central, accumulating), (mirrored, averaging)):
        status, reason = raised_under(strategy, plain=True, **options)
        assert (status, "inside a condition" in reason) == ("unsupported", True)
        assert "--micro-batches adds gradients up within a step" in reason
    status, reason = raised_under(mirrored, plain=True, mixed=True)
    assert (status, "reduction_to_one_device" in reason) == ("unsupported", True)
    assert "--bytes-per-pack 1 " in reason


@pytest.mark.usefixtures("tf")
def test_variables_that_no_collective_carries_are_unsupported_with_what_to_do() -> None:
    said = (
        "Value for attr 'T' of bfloat16 is not in the list of allowed values: bool, float, half, double, int32, int64"
    )
    status, reason = classify(ValueError(said))
    assert (status, "mixed_bfloat16" in reason) == ("unsupported", True)


def test_replicas_that_xla_compiles_as_one_program_are_unsupported(tf: Any) -> None:
    mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with mirrored.scope():
        held = tf.Variable(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        tf.function(lambda: mirrored.run(lambda: held + 1), jit_compile=True)()
    status, reason = classify(raised.value)
    assert (status, "--loop custom" in reason) == ("unsupported", True)


@pytest.mark.usefixtures("tf")
def test_a_models_own_tensors_of_different_types_are_its_own_fault() -> None:
    said = "Tensors in list passed to 'values' of 'ConcatV2' Op have types [float32, float64] that don't all match."
    assert classify(TypeError(f"Exception encountered when calling Join.call().\n\n{said}"))[0] == "crashed"


def test_keras_wrapping_does_not_hide_what_went_wrong() -> None:
    message = "Exception encountered when calling Dense.call().\n\n\x1b[1mMatrix size-incompatible\x1b[0m\n\nArguments"
    assert telling_line(message) == "Exception encountered when calling Dense.call(): Matrix size-incompatible"


def test_of_several_replicas_errors_the_first_is_the_reason() -> None:
    message = (
        "Graph execution error:\n\nDetected at node x defined at (most recent call last):\n"
        "2 root error(s) found.\n  (0) INVALID_ARGUMENT:  indices[0,0] = 38 is not in [0, 17)\n\t [[{{node x}}]]\n"
        "  (1) CANCELLED:  Function was cancelled\n0 successful operations.\n0 derived errors ignored. [Op:step_1171]"
    )
    assert telling_line(message) == "INVALID_ARGUMENT:  indices[0,0] = 38 is not in [0, 17)"


def test_keras_graph_error_is_not_the_reason_but_what_follows_is() -> None:
    message = (
        "Graph execution error:\n\nDetected at node x defined at (most recent call last):\n"
        '  File "a.py", line 1, in f\n\n\nTrying to access resource r located in device CPU:1 from device CPU:0\n'
        "\t [[{{node x}}]] [Op:__inference_f_1]"
    )
    assert telling_line(message) == "Trying to access resource r located in device CPU:1 from device CPU:0"


def test_of_collectives_that_were_aborted_the_reason_says_by_what() -> None:
    message = (
        "Graph execution error:\n\nDetected at node adam/CollectiveReduceV2 defined at (most recent call last):\n"
        '  File "a.py", line 1, in f\n\nCollective ops is aborted by: Deadline Exceeded\n\n'
        "RPC: /tensorflow.CoordinationService/Heartbeat\n"
        "The error could be from a previous operation. Restart your program to reset.\n"
        "\t [[{{node adam/CollectiveReduceV2}}]] [Op:__inference_step_70676]"
    )
    reason = "collectives were aborted by: Deadline Exceeded, RPC: /tensorflow.CoordinationService/Heartbeat"
    assert telling_line(message) == reason
    of_several = message.replace("Collective ops", "2 root error(s) found.\n  (0) INTERNAL:  Collective ops")
    assert telling_line(of_several) == reason
    assert telling_line("Collective ops is aborted by: a peer\nelse") == "collectives were aborted by: a peer"
