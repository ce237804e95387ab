"""What a device can do at most: matrix products, memory, copies; and what goes from process to process. Each is a small
kernel that is run again and again."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from harness.engines.tensorflow.devices import device_kinds
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.reference.arithmetic import float32_on
from harness.environment import usable_cores
from harness.errors import Unsupported
from harness.protocol.channel import Channel
from harness.protocol.messages import Outcome, Request
from harness.record.limits import LimitKind, ProcessLimit
from harness.trial.process_link import ProcessLink
from harness.trial.stream import BYTES_AN_ELEMENT, LARGEST, StreamAdd, elements_here

TYPES = ("float32", "bfloat16", "float16", "float64")
FIRST_SIZE, LARGEST_SIZE = 256, 8192
"""Rows of the square matrices: the size is doubled as long as a product fits the time."""
GROWTH = 8
"""A product of matrices twice as large takes so many times longer."""
LEAST_REPETITIONS = 3
LEAST_S = 0.005
"""A repetition lasts about so long at least, so that waiting for an accelerator is a small part of it."""
COPY_BYTES = 2**28
LINK_BYTES = 2**26
"""Of the largest message that collectives are measured with."""


def _nothing() -> None:
    """All is done, and nothing was started."""


@dataclass(frozen=True)
class Kernel:
    """Something that a device does `times` times in a row, and `amount` of it each time, in FLOP or bytes."""

    quantity: LimitKind
    type: str
    size: int
    amount: float
    call: Callable[[], object]
    finish: Callable[[], None]
    """Returns when all that was called is done."""
    times: int = 1
    close: Callable[[], None] = _nothing
    """Ends what it has started."""
    arithmetic: str = ""
    """As `Limit` has it."""

    def seconds(self) -> float:
        """What one repetition takes."""
        start = time.perf_counter()
        for _ in range(self.times):
            self.call()
        self.finish()
        return time.perf_counter() - start

    def warm(self) -> "Kernel":
        """The kernel as often in a row as `LEAST_S` takes, once it has run: the first run chooses how to compute."""
        self.seconds()
        return replace(self, times=max(1, math.ceil(LEAST_S / self.seconds())))


Build = Callable[[], Kernel]


def run_limits(request: Request, _: Channel) -> Outcome:
    """What the cell's devices come to, each kernel for about `window_s` seconds.

    One device: products by type, memory and, of an accelerator, copies from and to the host. Two: the copy from one
    to the other.
    """
    try:
        devices = device_kinds()[request.cell.shape.device].set_up(request)
    except Unsupported as error:
        return Outcome(status="unsupported", reason=str(error))
    builds = _builds(devices.names, request.intra_op_threads, request.window_s)
    return Outcome(status="ok", limits=list(measured(builds, request.window_s)))


def _builds(names: Sequence[str], threads: int, seconds: float) -> dict[tuple[LimitKind, str], Build]:
    """How to build each kernel, by quantity and type of number."""
    first = names[0]
    if len(names) > 1:
        return {("device_to_device", "bytes"): functools.partial(_copy, "device_to_device", first, names[1])}
    builds: dict[tuple[LimitKind, str], Build] = {
        ("products", number): functools.partial(products, first, number, seconds) for number in TYPES
    }
    if "CPU" in first:
        builds |= {("memory", "float64"): functools.partial(_memory_here, threads)}
        return builds | ({("between_processes", "bytes"): _to_another_process} if threads == usable_cores() else {})
    return builds | {
        ("memory", "float64"): functools.partial(_memory_on, first),
        ("host_to_device", "bytes"): functools.partial(_copy, "host_to_device", "/device:CPU:0", first),
        ("device_to_host", "bytes"): functools.partial(_copy, "device_to_host", first, "/device:CPU:0"),
    }


def measured(builds: dict[tuple[LimitKind, str], Build], seconds: float) -> Iterator[ProcessLimit]:
    """What each kernel comes to, or why it cannot be built. Kernels take turns, a repetition each."""
    kernels = []
    for (quantity, number), build in builds.items():
        try:
            kernels.append(build())
        except Exception as error:  # noqa: BLE001  the reason is what is asked for
            yield ProcessLimit(quantity=quantity, type=number, reason=classify(error)[1])
    for kernel, taken in zip(kernels, repetitions(kernels, seconds), strict=True):
        yield ProcessLimit(
            quantity=kernel.quantity,
            type=kernel.type,
            arithmetic=kernel.arithmetic,
            rate=kernel.times * kernel.amount / min(taken),
            size=kernel.size,
            repetitions=len(taken),
        )
        kernel.close()


def repetitions(kernels: Sequence[Kernel], seconds: float) -> list[list[float]]:
    """Seconds of each repetition of each kernel, one of each in turn, until each has had `seconds` and
    `LEAST_REPETITIONS`."""
    taken: list[list[float]] = [[] for _ in kernels]
    for number in itertools.count():
        due = [
            (kernel, times)
            for kernel, times in zip(kernels, taken, strict=True)
            if number < LEAST_REPETITIONS or math.fsum(times) < seconds
        ]
        if not due:
            return taken
        for kernel, times in due:
            times.append(kernel.seconds())
    raise AssertionError("counting has no end")


def products(device: str, number: str, seconds: float) -> Kernel:
    """The product of two square matrices, as large as `seconds` let it be: 2·n³ operations, n³ of them additions."""
    size = FIRST_SIZE
    kernel = _product(device, number, size)
    kernel.seconds()
    while size < LARGEST_SIZE and GROWTH * kernel.seconds() <= seconds:
        size *= 2
        kernel = _product(device, number, size)
        kernel.seconds()
    return kernel.warm()


def _product(device: str, number: str, size: int) -> Kernel:
    import tensorflow as tf

    with tf.device(device):
        left, right = (tf.cast(tf.random.stateless_normal([size, size], [size, seed]), number) for seed in (1, 2))

    def call() -> object:
        with tf.device(device):
            return tf.matmul(left, right)

    arithmetic = float32_on([device]) if number == "float32" and "GPU" in device else ""
    return Kernel("products", number, size, 2.0 * size**3, call, _finish(device), arithmetic=arithmetic)


def _memory_here(threads: int) -> Kernel:
    add = StreamAdd(max(1, threads), elements_here())
    return Kernel("memory", "float64", add.elements, BYTES_AN_ELEMENT * add.elements, add, _finish("CPU")).warm()


def _to_another_process() -> Kernel:
    """Of two processes each has a core of its own where there are two."""
    link = ProcessLink(LINK_BYTES)
    return Kernel("between_processes", "bytes", LINK_BYTES, LINK_BYTES, link, _nothing, close=link.close).warm()


def _memory_on(device: str) -> Kernel:
    """The same on an accelerator, whose result is another array each time."""
    import tensorflow as tf

    with tf.device(device):
        b, c = tf.ones([LARGEST], tf.float64), tf.ones([LARGEST], tf.float64)

    def call() -> object:
        with tf.device(device):
            return b + c

    return Kernel("memory", "float64", LARGEST, BYTES_AN_ELEMENT * LARGEST, call, _finish(device)).warm()


def _copy(quantity: LimitKind, source: str, target: str) -> Kernel:
    """A tensor of COPY_BYTES from one device to the other, as a step copies; each byte counts once.

    Within a function: outside of one TensorFlow keeps what it has copied, and hands it out again. The target takes one
    byte of what came, since a function that only hands a tensor on copies nothing.
    """
    import tensorflow as tf

    with tf.device(source):
        tensor = tf.zeros([COPY_BYTES], tf.uint8)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def call() -> object:
        with tf.device(target):
            return tensor[:1]

    finish = _finish(target if "CPU" in source else source)
    return Kernel(quantity, "bytes", COPY_BYTES, COPY_BYTES, call, finish).warm()


def _finish(device: str) -> Callable[[], None]:
    """What waits for an accelerator; a processor has done what it was told when the call returns."""
    import tensorflow as tf

    return _nothing if "CPU" in device else tf.test.experimental.sync_devices
