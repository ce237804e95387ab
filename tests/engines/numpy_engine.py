"""An engine of the tests' own: least squares by momentum, a thread a replica, in NumPy alone.

It goes through everything that a sweep is (zygote, gate, turns, record, report) in seconds and imports no framework:
a trial that finds TensorFlow in its process crashes. To use it, lay `FLAGS` under the flags of `python -m harness
sweep`, or `SPEC` under the keys of a Sweep, from the root of the repository or with that on PYTHONPATH:

    subprocess.run([sys.executable, "-m", "harness", "sweep", *flags(replicas="1,2", results=str(tmp_path))])

A trial's model says how it ends. `line` goes well. `loses_a_gradient` leaves one replica's gradient out of the sum, so
the gate finds a `wrong_result`; `loses_it_late` does so once the gate has been passed, and `leaves_out_a_loss` reports
the other replicas' loss only. `dies` is a `crashed` and `hangs` a `timeout`, both once the gate has been passed.
"""

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.errors import Unsupported
from harness.protocol.channel import Channel
from harness.protocol.engine import GATE_UPDATES, Ending, KnownStep, Pace, Task
from harness.protocol.messages import Outcome, Request
from harness.protocol.state import Reference, VariableState
from harness.record.trial import CALL, Executed, Resources
from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits, DeviceTraits, StrategyTraits
from harness.trial.collectives import CollectiveTrial
from harness.trial.delay import Delay
from harness.trial.ending import plain_ending
from harness.trial.judgement import sight_of
from harness.trial.same_work.collectives import SameSending
from harness.trial.same_work.trainer import of_this_process
from harness.trial.sums import judge_sums, known_values

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SPEC: dict[str, Any] = {
    "engine": f"{__name__}:NumpyEngine",
    "device": ["core"],
    "strategy": ["none", "threads"],
    "replicas": [1, 2],
    "model": ["line"],
    "data": ["noise"],
    "optimizer": ["momentum"],
    "loop": ["plain"],
    "batch_size": [32],
    "trials": 2,
    "windows": 5,
    "max_warmup": 2,
    "window": 0.005,
    "timeout": 5.0,
}
FEATURES = 64
BATCHES, LATE = 4, 2
"""How many batches are trained on, and how many others late updates are proved with."""
RATE, MOMENTUM = 0.05, 0.9
FAULT_AFTER = GATE_UPDATES + 1
"""The update in which `dies` and `hangs` do what they are called, and the last one that `loses_it_late` does well."""
MODELS = {
    "line": "least squares",
    "loses_a_gradient": "the last replica's gradient is missing",
    "loses_it_late": "the same, once the gate has been passed",
    "loses_thirds": "the same, in every third update",
    "loses_fourths": "the same, in every fourth",
    "leaves_out_a_loss": "the last replica's part of the loss is not reported",
    "dies": "is ended by a signal",
    "hangs": "takes a step that never ends",
}


def flags(*without: str, **more: str) -> list[str]:
    """`SPEC` as flags of the command line, but for the keys in `without`, and with `more` laid over it."""
    kept = {key: value for key, value in SPEC.items() if key not in without}
    given = {key: ",".join(map(str, value)) if isinstance(value, list) else value for key, value in kept.items()}
    return [text for key, value in {**given, **more}.items() for text in (f"--{key.replace('_', '-')}", str(value))]


class LeastSquares:
    """One cell: every replica has its own copy of weights and velocity, and all apply the sum of their gradients."""

    least_steps = 1
    ahead = 0
    staleness: dict[int, int] | None = None
    labels = ""
    alone: Callable[[], None] | None = None
    resting: Callable[[], AbstractContextManager[object]] = nullcontext

    def __init__(self, request: Request) -> None:
        import numpy as np

        if "tensorflow" in sys.modules:
            raise RuntimeError("TensorFlow is imported in a trial of an engine that has no use for it")
        if request.plant is not None and request.plant.kind != "input_stall":
            raise Unsupported(f"plant: this engine stalls its input and plants nothing else ('{request.plant.kind}')")
        self._cell = request.cell
        self._delay = Delay(0.0 if request.plant is None else request.plant.share, time.sleep)
        self._threads = ThreadPoolExecutor(self._cell.replicas)
        generator = np.random.default_rng(request.seed)
        shape = (BATCHES + LATE, self._cell.global_batch_size, FEATURES)
        self._x = generator.normal(size=shape).astype(np.float32)
        self._y = (self._x @ generator.normal(size=FEATURES)).astype(np.float32)
        self._y[BATCHES:] += 1  # lies on no line, so that there is a gradient when the line is found
        start = generator.normal(size=FEATURES).astype(np.float32)
        self._weights = [start.copy() for _ in range(self._cell.replicas)]
        self._velocity = [np.zeros_like(start) for _ in range(self._cell.replicas)]
        self._updates = 0
        self._in_turn = itertools.cycle(range(BATCHES, BATCHES + LATE))

    @property
    def resources(self) -> Resources:
        """A thread a replica; they share cores where there are fewer of these."""
        cores = len(os.sched_getaffinity(0))
        names = [f"thread:{replica}" for replica in range(self._cell.replicas)]
        return Resources(logical_devices=names, physical_devices=cores, shared=len(names) > cores)

    def check_reduction(self) -> str | None:
        """Known values through the sum that gradients take."""
        weights, patterns = known_values(self._cell.replicas)
        sums = [self._summed([weight * pattern for weight in weights]) for pattern in patterns]
        return judge_sums([[total] * self._cell.replicas for total in sums], patterns, weights)

    def state(self) -> list[VariableState]:
        """Weights and velocity of every replica."""
        return [
            VariableState("weights", "weight", tuple(copy.copy() for copy in self._weights)),
            VariableState("velocity", "slot:velocity", tuple(copy.copy() for copy in self._velocity)),
        ]

    def updates(self) -> int:
        """Updates so far."""
        return self._updates

    def due(self, steps: int) -> tuple[int, dict[str, str]]:
        """One a step."""
        return steps, {}

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        """The same updates on whole batches, in double precision."""
        return self._reference(initial, range(GATE_UPDATES))

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        """The same one by one."""
        return [self._reference(before, [batch]) for batch, before in enumerate(befores)]

    def one_more(self) -> KnownStep:
        """On a batch that is not trained on."""
        self._late = next(self._in_turn)
        return KnownStep(self._step(self._late), same_program=True)

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        """The same on the whole of it."""
        return self._reference(before, [self._late])

    def _reference(self, initial: Sequence[VariableState], batches: Sequence[int]) -> Reference:
        import numpy as np

        weights, velocity = (variable.copies[0].astype(np.float64) for variable in initial)
        states, losses = [], []
        for x, y in ((self._x[batch], self._y[batch]) for batch in batches):
            error, before = x @ weights - y, (weights, velocity)
            weights, velocity = _moved(*before, x.T @ error / len(x))
            states.append([weights, velocity])
            losses.append(float(error @ error) / len(x))
        right = Reference(
            states, [[0.0, 0.0]] * len(states), [np.ones(FEATURES, dtype=bool)], losses, [0.0] * len(states)
        )
        kept = slice(-self._cell.replica_batch_size) if self._cell.replicas > 1 else slice(None)
        wrong = {
            "doubled": 2 * x.T @ error,
            "missing": x[kept].T @ error[kept],
            "averaged": x.T @ error / self._cell.replicas,
        }
        if self._cell.replicas == 1:
            wrong = {"doubled": wrong["doubled"]}
        faulty = {fault: _moved(*before, gradient / len(x)) for fault, gradient in wrong.items()}
        return replace(right, sight=sight_of(faulty.items(), initial, right))

    def run(self, pace: Pace) -> None:
        """Batch after batch, over and over."""
        while steps := pace.begin():
            self._delay.window_begins()
            for _ in range(steps):
                loss = self._step(self._updates % BATCHES)
            self._delay.window_ends(self.synchronise)
            pace.end(loss)

    def synchronise(self) -> None:
        """Every step waits for its threads."""

    def agree(self, value: float) -> float:
        """There is one process."""
        return value

    def executed(self) -> Executed:
        """A sum of as many gradients as there are replicas."""
        return Executed(operations={"sum": self._cell.replicas}, fingerprint=self._cell.cell_id)

    def tracer(self, leads: bool) -> None:
        """It has no profiler."""

    def check_input(self) -> dict[str, str | None]:
        """Its batches stay where they are."""
        return {}

    def forget_peak(self) -> None:
        """It has no accelerator."""

    def peak_device_memory_bytes(self) -> int | None:
        """It has no accelerator."""
        return None

    def _step(self, batch: int) -> float:
        if self._updates == FAULT_AFTER:
            self._go_wrong()
        size = self._cell.replica_batch_size

        def of_replica(replica: int) -> "tuple[Array, float]":
            share = slice(replica * size, (replica + 1) * size)
            x, error = self._x[batch, share], self._x[batch, share] @ self._weights[replica] - self._y[batch, share]
            return x.T @ error / self._cell.global_batch_size, float(error @ error) / self._cell.global_batch_size

        gradients, losses = zip(*self._threads.map(of_replica, range(self._cell.replicas)), strict=True)
        total = self._summed(gradients[:-1] if self._loses else gradients)
        for weights, velocity in zip(self._weights, self._velocity, strict=True):
            velocity *= MOMENTUM
            velocity -= RATE * total
            weights += velocity
        self._updates += 1
        return sum(losses[:-1] if self._cell.model == "leaves_out_a_loss" else losses)

    @property
    def _loses(self) -> bool:
        period = {"loses_it_late": 1, "loses_thirds": 3, "loses_fourths": 4}.get(self._cell.model)
        late = period is not None and self._updates > FAULT_AFTER and self._updates % period == 0
        return late or self._cell.model == "loses_a_gradient"

    def _summed(self, values: "Sequence[Array]") -> "Array":
        import numpy as np

        return np.sum(values, axis=0, dtype=np.float32) if values else np.zeros(FEATURES, dtype=np.float32)

    def _go_wrong(self) -> None:
        if self._cell.model == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        while self._cell.model == "hangs":
            time.sleep(60)


def _moved(weights: "Array", velocity: "Array", gradient: "Array") -> "tuple[Array, Array]":
    velocity = MOMENTUM * velocity - RATE * gradient
    return weights + velocity, velocity


class NumpySending(SameSending):
    """A collective between the buffers of one process; of a reduce-scatter it knows nothing."""

    title = "NumPy"

    def __init__(self, request: Request, engine: str) -> None:
        super().__init__(request)
        if self.cell.collective == "reduce_scatter":
            raise Unsupported("NumPy has no reduce-scatter")
        self.engine = engine  # type: ignore[misc]
        self._own: Sequence[Array] = ()

    @property
    def resources(self) -> Resources:
        return of_this_process(self._request, (1, 1))

    def fill(self, own: "Sequence[Array]") -> None:
        self._own = own

    def step(self) -> "Array":
        import numpy as np

        match self.cell.collective:
            case "all_reduce":
                return np.sum(self._own, axis=0)
            case "all_gather":
                return np.concatenate(self._own)
        return self._own[0].copy()

    def wait(self, received: "Array") -> None:
        """It is done."""

    def arrays(self, received: "Array") -> "Sequence[Array]":
        return [received] * self.cell.replicas

    def executed(self) -> Executed:
        cell = self.cell
        sums = {"packs": 1, "pack_bytes": [cell.size]} if cell.collective == "all_reduce" else {}
        return Executed(operations={cell.collective: 1}, fingerprint=cell.collective, unlike={CALL: "of NumPy"}, **sums)


def broken() -> None:
    """An engine that raises before it is one."""
    raise OSError("no such chip")


class NumpyEngine:
    """NumPy, one process a trial."""

    name = "numpy"
    title = "NumPy"
    clusters = None

    def catalogue(self) -> Catalogue:
        """One way to train, with and without threads."""
        return Catalogue(
            devices={"core": DeviceTraits("core", "the processor, as threads find it", on_processors=True)},
            strategies={
                "none": StrategyTraits("none", "one thread", max_replicas=1),
                "threads": StrategyTraits("threads", "a thread a replica", collectives=True),
            },
            cross_device_ops={"auto": CrossDeviceOpTraits("auto", "a sum")},
            models=MODELS,
            data={"noise": "random numbers and a line through them"},
            optimizers={"momentum": "gradient descent with momentum"},
            loops={"plain": "a loop in Python"},
        )

    def preload(self) -> dict[str, str]:
        """NumPy."""
        import numpy as np

        return {"numpy": np.__version__}

    def on_host(self, request: Request) -> Request:
        """Nothing is left open."""
        return request

    def classify(self, error: Exception) -> Ending:
        """NumPy has no exceptions of its own that mean more."""
        return plain_ending(error)

    def trainer(self, request: Request) -> LeastSquares:
        """The only one."""
        return LeastSquares(request)

    def tasks(self) -> Mapping[str, Task]:
        """Nothing besides trials, of collectives too."""
        return {"collective": self._collective}

    def _collective(self, request: Request, channel: Channel) -> Outcome:
        def build(request: Request) -> NumpySending:
            return NumpySending(request, self.name)

        return CollectiveTrial(request, channel, self.classify, build).run()


class NumpyAgain(NumpyEngine):
    """The same under another name."""

    name = "numpy_again"


class Nameless(NumpyEngine):
    """One without a name."""

    name: Any = None


class Unlicensed(NumpyEngine):
    """One whose catalogue raises."""

    def catalogue(self) -> Catalogue:
        raise ValueError("no licence")


class Uncatalogued(NumpyEngine):
    """One whose catalogue is none."""

    def catalogue(self) -> Any:
        return vars(super().catalogue())


class Baseless(NumpyEngine):
    """One with nothing that its strategies could be compared with."""

    def catalogue(self) -> Catalogue:
        found = super().catalogue()
        return replace(found, strategies={"threads": found.strategies["threads"]})


class Refusing(NumpyEngine):
    """One that refuses what nobody can ask for."""

    def catalogue(self) -> Catalogue:
        return replace(super().catalogue(), refuses={"windws": "it has none"})
