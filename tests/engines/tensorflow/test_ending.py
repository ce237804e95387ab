"""How a trial that raised has ended: the status and the reason that people read."""

from typing import Any

import pytest

from harness.engines.tensorflow.ending import classify, telling_line


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


@pytest.mark.usefixtures("tf")
def test_a_models_own_complaint_is_a_crash_even_when_it_says_unsupported() -> None:
    assert classify(ValueError("unsupported shape"))[0] == "crashed"


def test_keras_wrapping_does_not_hide_what_went_wrong() -> None:
    message = "Exception encountered when calling Dense.call().\n\n\x1b[1mMatrix size-incompatible\x1b[0m\n\nArguments"
    assert telling_line(message) == "Exception encountered when calling Dense.call(): Matrix size-incompatible"


def test_keras_graph_error_is_not_the_reason_but_what_follows_is() -> None:
    message = (
        "Graph execution error:\n\nDetected at node x defined at (most recent call last):\n"
        '  File "a.py", line 1, in f\n\n\nTrying to access resource r located in device CPU:1 from device CPU:0\n'
        "\t [[{{node x}}]] [Op:__inference_f_1]"
    )
    assert telling_line(message) == "Trying to access resource r located in device CPU:1 from device CPU:0"
