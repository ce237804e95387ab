"""Kernels do what they count, take turns, and one that the device lacks has a reason."""

from typing import Any

import pytest

from harness.engines.tensorflow.limits import (
    FIRST_SIZE,
    GROWTH,
    LEAST_REPETITIONS,
    TYPES,
    Kernel,
    _copy,
    _memory_on,
    _to_another_process,
    measured,
    products,
    repetitions,
)
from harness.trial.process_link import ProcessLink

SHORT = 1e-6


class Clock:
    """A kernel that takes the seconds it is told, by the clock of the module."""

    def __init__(self) -> None:
        self.now = 0.0
        self.diary: list[str] = []

    def kernel(self, name: str, seconds: float, size: int = 1) -> Kernel:
        def call() -> None:
            self.now += seconds
            self.diary.append(name)

        return Kernel("products", name, size, 100.0, call, lambda: None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("harness.engines.tensorflow.limits.time.perf_counter", lambda: made.now)
    return made


def test_kernels_take_turns_until_each_has_had_its_time_and_its_repetitions(clock: Clock) -> None:
    taken = repetitions([clock.kernel("quick", 0.25), clock.kernel("slow", 1.0)], seconds=1.0)
    assert [len(times) for times in taken] == [4, LEAST_REPETITIONS]
    assert clock.diary == ["quick", "slow"] * LEAST_REPETITIONS + ["quick"]


def test_the_rate_is_that_of_the_shortest_repetition(clock: Clock) -> None:
    uneven = iter((2.0, 0.5, 1.0))

    def call() -> None:
        clock.now += next(uneven)

    build = {("products", "float32"): lambda: Kernel("products", "float32", 7, 100.0, call, lambda: None)}
    [found] = measured(build, seconds=SHORT)
    assert (found.rate, found.size, found.repetitions) == (200.0, 7, 3)


def test_a_short_kernel_is_run_several_times_in_a_row(clock: Clock) -> None:
    warm = clock.kernel("short", 0.002).warm()
    assert warm.times == 3
    assert warm.seconds() == pytest.approx(0.006)


def test_a_product_grows_while_the_next_size_fits_the_time(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def product(_: str, number: str, size: int) -> Kernel:
        return clock.kernel(number, 1e-3 * (size / FIRST_SIZE) ** 3, size)

    monkeypatch.setattr("harness.engines.tensorflow.limits._product", product)
    assert products("CPU", "float32", seconds=1e-3 * GROWTH).size == 2 * FIRST_SIZE
    assert products("CPU", "float32", seconds=1e-3).size == FIRST_SIZE


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize("number", TYPES)
def test_a_product_is_that_of_two_square_matrices_of_its_type(number: str) -> None:
    kernel = products("CPU:0", number, SHORT)
    product = kernel.call()
    assert (product.dtype.name, product.shape) == (number, (FIRST_SIZE, FIRST_SIZE))  # type: ignore[attr-defined]
    assert kernel.amount == 2 * FIRST_SIZE**3


@pytest.mark.usefixtures("tf")
def test_a_product_of_float32_on_a_card_says_what_that_is_computed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engines.tensorflow.limits.float32_on", lambda _: "tf32")
    told = {(device, of): products(device, of, SHORT).arithmetic for device in ("CPU:0", "GPU:0") for of in TYPES[:2]}
    assert {placed for placed, arithmetic in told.items() if arithmetic == "tf32"} == {("GPU:0", "float32")}
    [found] = measured({("products", "float32"): lambda: products("GPU:0", "float32", SHORT)}, SHORT)
    assert found.arithmetic == "tf32"


@pytest.mark.usefixtures("tf")
def test_memory_of_an_accelerator_is_an_addition_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engines.tensorflow.limits.LARGEST", 10)
    kernel = _memory_on("CPU:0")
    assert kernel.call().numpy().tolist() == [2.0] * 10  # type: ignore[attr-defined]
    assert kernel.amount == 240


def test_a_copy_is_made_anew_each_time_by_a_function_that_takes_a_byte_of_it_on_the_other_device(
    tf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engines.tensorflow.limits.COPY_BYTES", 1000)
    kernel = _copy("device_to_device", "CPU:0", "CPU:1")
    assert (int(tf.size(kernel.call())), kernel.amount) == (1, 1000)
    [program] = kernel.call._list_all_concrete_functions()  # type: ignore[attr-defined]
    assert [tensor.shape for tensor in program.captured_inputs] == [[1000]]
    assert {op.device[-5:] for op in program.graph.get_operations() if op.type == "StridedSlice"} == {"CPU:1"}


def test_what_goes_to_another_process_is_counted_when_it_has_all_and_the_process_ends_with_the_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.engines.tensorflow.limits.LINK_BYTES", 3 * 2**20 + 1)
    made: list[Kernel] = []

    def build() -> Kernel:
        made.append(_to_another_process())
        return made[0]

    [found] = measured({("between_processes", "bytes"): build}, SHORT)
    assert found.size == made[0].amount == 3 * 2**20 + 1
    assert found.rate is not None
    assert made[0].call._peer.poll() == 0  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="Bad file descriptor"):
        made[0].call()


def test_a_process_that_has_ended_is_an_error_and_no_rate() -> None:
    link = ProcessLink(1000)
    link()
    link._peer.kill()
    link._peer.wait()
    with pytest.raises(OSError, match=r"ended|Broken pipe|reset"):
        link()
    link.close()


def test_what_a_device_cannot_do_has_its_reason_and_the_rest_is_measured(tf: Any) -> None:
    def refuses() -> Kernel:
        with tf.device("CPU:0"):
            tf.raw_ops.NcclAllReduce(input=[1.0], reduction="sum", num_devices=1, shared_name="")
        raise AssertionError("there is such a kernel")

    build = {
        ("memory", "float64"): refuses,
        ("products", "float32"): lambda: products("CPU:0", "float32", SHORT),
    }
    none, some = measured(build, SHORT)  # type: ignore[arg-type]
    assert none.rate is None
    assert none.reason
    assert some.rate
