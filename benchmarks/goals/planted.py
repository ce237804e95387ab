"""Planted slow-downs are real: a bare loop, with nothing of the harness' clock or turns, slows by what is stated.

Promise: the stated share lies in the 95 % interval of what the loop lost against the placebo, as a validation
compares, and a line through all shares of a kind has a slope within a tenth of 1. What the placebo itself costs is
printed too. `planted.py SECONDS [PERCENT...]`: seconds a strategy, shares.
"""

import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import interval, table

from harness.engines.tensorflow.plants import Planted, planted
from harness.record.trial import Plant

SHARES = (0.03, 0.05, 0.10, 0.40)
"""A validation plants no 40 %; in a loop as noisy as this it is what tells the slope."""
KINDS = {"none": ("device_work", "input_stall"), "mirrored": ("device_work", "input_stall", "slow_replica")}
REPLICAS = {"none": 1, "mirrored": 2}
BATCH_SIZE = 32
WINDOW_S = 0.03
SECONDS = 80.0
PLACEBOS = 2
"""Loops with a kind's placebo; what is planted is compared with their mean."""
SLOPE_MARGIN = 0.1

Arm = tuple[str, float, int]
"""(kind, share, which of several alike); the kind is "nothing" where nothing is planted, not even a placebo."""
NOTHING: Arm = ("nothing", 0.0, 0)


def main() -> None:
    """Measure and print."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else str(SECONDS)
    for strategy in KINDS:
        command = [sys.executable, str(Path(__file__)), "--bare", strategy, seconds, *sys.argv[2:]]
        subprocess.run(command, check=True, env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"})


def bare(strategy_name: str, seconds: float, shares: Sequence[float]) -> None:
    """One strategy: every plant and no plant, a short window each in random order, round after round."""
    devices = set_up(REPLICAS[strategy_name])
    loop = BareLoop(strategy_name, devices)
    arms: dict[Arm, Callable[[int], float]] = {NOTHING: loop.arm(Planted())}
    for kind in KINDS[strategy_name]:
        for share, number in [*((0.0, i) for i in range(PLACEBOS)), *((share, 0) for share in shares)]:
            arms[kind, share, number] = loop.arm(planted(Plant(kind=kind, share=share), devices))
    steps = max(1, round(WINDOW_S / min(arms[NOTHING](10) / 10 for _ in range(3))))
    taken: dict[Arm, list[float]] = {name: [] for name in arms}
    order, end = random.Random(1), time.monotonic() + seconds
    while time.monotonic() < end:
        for name in order.sample(list(arms), len(arms)):
            taken[name].append(arms[name](steps))
    report(f"{strategy_name} × {REPLICAS[strategy_name]}, batch {BATCH_SIZE}", steps, taken)


def set_up(replicas: int) -> list[str]:
    """A logical device a replica, and the thread pools that a sweep would give it."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2 * replicas)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    return [device.name for device in tf.config.list_logical_devices("CPU")]


class BareLoop:
    """The loop of `bare_script.py`, with the two places where a slow-down is planted."""

    def __init__(self, strategy_name: str, devices: Sequence[str]) -> None:
        import keras
        import tensorflow as tf

        keras.utils.set_random_seed(1)
        self.replicas = len(devices)
        mirrored = strategy_name == "mirrored"
        self.strategy = tf.distribute.MirroredStrategy(devices) if mirrored else tf.distribute.get_strategy()
        with self.strategy.scope():
            self.model = keras.Sequential(
                [
                    keras.Input((28, 28, 1)),
                    keras.layers.Conv2D(32, 3, activation="relu"),
                    keras.layers.MaxPooling2D(),
                    keras.layers.Conv2D(64, 3, activation="relu"),
                    keras.layers.MaxPooling2D(),
                    keras.layers.Flatten(),
                    keras.layers.Dense(64, activation="relu"),
                    keras.layers.Dense(10),
                ]
            )
            self.optimizer = keras.optimizers.Adam(1e-3)
            self.optimizer.build(self.model.trainable_variables)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.step = self.traced()
        self.batch = tuple(self.placed(values, devices) for values in images(self.replicas))

    def placed(self, values: Any, devices: Sequence[str]) -> Any:
        """Each replica's part of a batch on its device, as `validate` has it: an input pipeline would need a core."""
        import tensorflow as tf

        def part(context: Any) -> Any:
            replica = context.replica_id_in_sync_group
            with tf.device(devices[replica]):
                return tf.constant(values[replica * BATCH_SIZE : (replica + 1) * BATCH_SIZE])

        return self.strategy.experimental_distribute_values_from_function(part)

    def arm(self, plant: Planted) -> Callable[[int], float]:
        """A function that runs so many steps with `plant` in them and returns what they took, in seconds."""
        finish = self.model.trainable_variables[-1].numpy

        def run(steps: int) -> float:
            start = time.perf_counter()
            plant.window_begins()
            for _ in range(steps):
                self.step(*self.batch)
            plant.window_ends(finish)
            finish()
            return time.perf_counter() - start

        run(10)
        return run

    def traced(self) -> Any:
        """The training step as a tf.function, one for all arms: on processors nothing is planted in the program."""
        import tensorflow as tf

        def replica_step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self.loss(y, self.model(x, training=True)) / self.replicas
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
            return loss

        @tf.function(autograph=False)
        def step(x: Any, y: Any) -> Any:
            return self.strategy.run(replica_step, args=(x, y))

        return step


def images(replicas: int) -> tuple[Any, Any]:
    """A batch of random pictures and their classes."""
    import numpy as np

    generator, size = np.random.default_rng(1), BATCH_SIZE * replicas
    return generator.random((size, 28, 28, 1), dtype=np.float32), generator.integers(0, 10, size, dtype=np.int32)


def report(title: str, steps: int, taken: dict[Arm, list[float]]) -> None:
    """Print every placebo against the bare loop, and every plant against its placebo, paired by round."""
    nothing = taken[NOTHING]
    print(f"{title}: {len(nothing)} rounds, a window is {steps} steps, {1e3 * sum(nothing) / len(nothing):.0f} ms")
    rows = [("planted", "stated", "lost", "95 % interval", "sd of a pair", "stated share inside")]
    told = []
    for kind in dict.fromkeys(kind for kind, _, _ in taken if kind != NOTHING[0]):
        placebo = _mean_of([taken[kind, 0.0, number] for number in range(PLACEBOS)])
        lost = {share: _logs(seconds, placebo) for (name, share, _), seconds in taken.items() if name == kind and share}
        rows.append((f"{kind}, placebo", "", *_lost(_logs(placebo, nothing))[:3], ""))
        for share, logs in lost.items():
            percent, spread, deviation, (low, high) = _lost(logs)
            inside = low <= math.log1p(share) <= high
            rows.append((kind, f"{share:.0%}", percent, spread, deviation, "yes" if inside else "NO"))
        told.append(f"{kind}: lost ÷ stated, all shares together: {_slope(lost)}")
    table(rows)
    print("\n".join(told), end="\n\n", flush=True)


def _mean_of(several: Sequence[Sequence[float]]) -> list[float]:
    """The geometric mean, round by round."""
    return [math.exp(sum(map(math.log, times)) / len(times)) for times in zip(*several, strict=True)]


def _logs(seconds: Sequence[float], others: Sequence[float]) -> list[float]:
    return [math.log(a / b) for a, b in zip(seconds, others, strict=True)]


def _lost(logs: Sequence[float]) -> tuple[str, str, str, tuple[float, float]]:
    """What was lost, its interval and the scatter of a pair in words; the interval's ends as logs."""
    mean, low, high, deviation = interval(logs)
    spread = f"[{math.expm1(low):.2%}, {math.expm1(high):.2%}]"
    return f"{math.expm1(mean):.2%}", spread, f"{deviation:.1%}", (low, high)


def _slope(lost: Mapping[float, Sequence[float]]) -> str:
    """The slope of the log loss against the log of 1 + share, through the origin, over rounds."""
    weight = sum(math.log1p(share) ** 2 for share in lost)
    rounds = zip(*([math.log1p(share) * log for log in logs] for share, logs in lost.items()), strict=True)
    mean, low, high, _ = interval([sum(of) / weight for of in rounds])
    return f"{mean:.2f} [{low:.2f}, {high:.2f}], {_to_a_tenth(low - 1, high - 1)}"


def _to_a_tenth(low: float, high: float) -> str:
    """Whether the interval of how far the slope is off says that it is within the margin, or beyond it."""
    if low >= -SLOPE_MARGIN and high <= SLOPE_MARGIN:
        return "within a tenth"
    if low > SLOPE_MARGIN or high < -SLOPE_MARGIN:
        return "MORE THAN A TENTH OFF"
    return "too noisy to say whether within a tenth: run it longer, or on a quieter machine"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        bare(sys.argv[2], float(sys.argv[3]), [float(p) / 100 for p in sys.argv[4:]] or SHARES)
    else:
        main()
