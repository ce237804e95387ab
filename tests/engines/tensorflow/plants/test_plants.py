"""What is planted is done, before the step or in it, and changes no result."""

import contextlib
import functools
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.loops.custom import LOOP, LossInShares, make_step
from harness.engines.tensorflow.plants import Planted, check_loop, planted, planted_in_updates, plants
from harness.engines.tensorflow.plants._counted import CountedWork
from harness.engines.tensorflow.plants._timed import FIRST_PRODUCTS, TimedWork
from harness.engines.tensorflow.plants.device_work import CountedDeviceWork
from harness.engines.tensorflow.plants.slow_replica import CountedSlowReplica
from harness.engines.tensorflow.plants.slow_update import SlowUpdate
from harness.errors import Unsupported, UsageError
from harness.record.trial import Plant
from harness.run.kinds.validate import SLOW_DOWNS
from harness.trial.delay import PLACEBO
from tests.record.examples import cell

COUNTED = [CountedDeviceWork, CountedSlowReplica, SlowUpdate]
"""What accelerators get, here on processors; `plant.each` plants it everywhere."""
FIFTH = Plant(kind="whatever", share=0.2)
PLAIN = "none"
Trained = Callable[[Any, int], tuple["Training", list[np.ndarray[Any, Any]]]]


def devices(n: int) -> list[str]:
    return [f"/device:CPU:{i}" for i in range(n)]


class Training:
    """A small model on n replicas, trained by the custom loop's own step with `plant` in it."""

    def __init__(self, tf: Any, n: int, plant: Planted) -> None:
        import keras

        keras.utils.set_random_seed(1)
        self.strategy = tf.distribute.MirroredStrategy(devices(n)) if n > 1 else tf.distribute.get_strategy()
        with self.strategy.scope():
            self.model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3)])
            self.optimizer = keras.optimizers.Adam(0.01)
            self.optimizer.build(self.model.trainable_variables)
        self.cell = types.SimpleNamespace(global_batch_size=8, replicas_in_sync=n, micro_batches=1, xla=False)
        self.step = make_step(self, plant)  # type: ignore[arg-type]
        x, y = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8), np.arange(8, dtype=np.int32) % 3
        dataset = tf.data.Dataset.from_tensors((x, y)).repeat()
        self.batches = iter(self.strategy.experimental_distribute_dataset(dataset) if n > 1 else dataset)

    def loss(self, y: Any, predicted: Any) -> Any:
        import keras

        return keras.losses.sparse_categorical_crossentropy(y, predicted, from_logits=True)

    def placement(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def train(self, steps: int) -> list[np.ndarray[Any, Any]]:
        """Losses and weights after so many steps."""
        losses = [LossInShares(self, self.step(*next(self.batches))).own() for _ in range(steps)]  # type: ignore[arg-type]
        return [np.array(losses), *(variable.numpy() for variable in self.model.variables)]

    def nodes(self) -> list[Any]:
        """The nodes of the traced step and of the functions it calls."""
        definition = self.step.get_concrete_function(*next(self.batches)).graph.as_graph_def()
        return [*definition.node, *(node for function in definition.library.function for node in function.node_def)]


@pytest.fixture(scope="module")
def trained(tf: Any) -> Trained:
    """A training with a plant of a kind on so many replicas, each made once, and what its first four steps gave."""

    def plant(kind: Any, n: int) -> Planted:
        if isinstance(kind, str):
            return Planted() if kind == PLAIN else planted(Plant(kind=kind, share=0.05), devices(n))
        return kind(FIFTH, devices(n))  # type: ignore[no-any-return]

    @functools.cache
    def made(kind: Any, n: int) -> tuple[Training, list[np.ndarray[Any, Any]]]:
        training = Training(tf, n, plant(kind, n))
        return training, training.train(4)

    return made


def test_the_kinds_are_those_that_a_validation_plants() -> None:
    of_causes = {"host_delay", "slow_pull", "slow_push", "slow_update", "slow_worker", "worker_delay"}
    assert set(plants()) == {*SLOW_DOWNS, *of_causes}
    assert all(kind.summary for kind in plants().values())


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("device_work", 1),
        ("device_work", 2),
        ("input_stall", 1),
        ("input_stall", 2),
        ("slow_replica", 2),
        *((kind, 2) for kind in COUNTED),
    ],
)
def test_no_loss_and_no_weight_changes_in_a_single_bit(trained: Trained, kind: Any, n: int) -> None:
    for expected, got in zip(trained(PLAIN, n)[1], trained(kind, n)[1], strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("kind", "on"), [(CountedDeviceWork, {0, 1}), (CountedSlowReplica, {0}), (SlowUpdate, {0, 1})])
def test_the_traced_step_holds_counted_work_on_the_replicas_that_do_it(
    trained: Trained, kind: Any, on: set[int]
) -> None:
    training, _ = trained(kind, 2)
    loops = [node for node in training.nodes() if node.op in ("While", "StatelessWhile")]
    assert {int(node.device.rpartition(":")[2] or 0) for node in loops} == on
    assert len(loops) == len(on)


@pytest.mark.parametrize("kind", ["device_work", "input_stall", "slow_replica"])
def test_on_processors_the_traced_step_is_the_one_without_it(trained: Trained, kind: str) -> None:
    with_it, without = ([node.op for node in trained(of, 2)[0].nodes()] for of in (kind, PLAIN))
    assert with_it == without


def busy_s() -> dict[str, float]:
    """Seconds that each of this process's threads has computed, or could have, had others not had the processors."""
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            computed, queued, _ = (thread / "schedstat").read_text().split()
            found[thread.name] = (int(computed) + int(queued)) / 1e9
    return found


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize("n", [1, 2])
def test_timed_work_keeps_its_devices_busy_for_as_long_as_it_is_asked(n: int) -> None:
    work = TimedWork(devices(n))
    begun, busy_since, done = time.perf_counter(), busy_s(), work.done
    for _ in range(4):
        work(0.05)
    took = time.perf_counter() - begun
    assert took >= 0.2
    busy = sum(seconds - busy_since.get(thread, 0) for thread, seconds in busy_s().items())
    assert busy > 0.5 * 0.2, "it waits instead of working"
    assert work.done > done


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize("kind", ["device_work", "slow_replica"])
def test_what_is_done_once_is_done_before_the_first_window_which_has_its_work(kind: str) -> None:
    plant = planted(Plant(kind=kind, share=0), devices(2))  # the placebo, traced anew
    work = plant._spend  # type: ignore[attr-defined]
    before = work.done
    assert before >= FIRST_PRODUCTS, "the first product finds no kernel"
    for _ in range(2):
        plant.window_begins()
        plant.window_ends(lambda: time.sleep(0.1))  # the steps
    assert work.done > before
    assert work._work.experimental_get_tracing_count() == 1, "tracing is owed by the windows that follow"


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize("share", [0.03, 0.1])
def test_a_step_is_longer_by_the_share_than_with_the_placebo(share: float) -> None:
    def taken(kind: str, share: float) -> float:
        return 1 + planted(Plant(kind=kind, share=share), devices(2))._share  # type: ignore[attr-defined, no-any-return]

    for kind in ("device_work", "slow_replica"):
        assert taken(kind, share) / taken(kind, 0) == pytest.approx(1 + share)
        assert taken(kind, 0) == pytest.approx(1 + PLACEBO)
    assert (taken("input_stall", share), taken("input_stall", 0)) == (1 + share, 1)


@pytest.mark.usefixtures("tf")
def test_device_work_is_on_all_devices_and_a_slow_replica_on_the_first() -> None:
    spending = {
        kind: planted(Plant(kind=kind, share=0.05), devices(2))._spend  # type: ignore[attr-defined]
        for kind in ("device_work", "slow_replica")
    }
    assert {kind: len(work.devices) for kind, work in spending.items()} == {"device_work": 2, "slow_replica": 1}


def test_what_is_counted_carries_a_fraction_over(tf: Any) -> None:
    work = CountedWork(devices(1)[0], rate=2.25)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        return work.then(x, after=[x])

    for _ in range(8):
        step(tf.zeros([3]))
    assert work.done == 18


def test_more_counted_work_takes_more_processor_time_so_nothing_optimised_it_away(tf: Any) -> None:
    plant = CountedSlowReplica(FIFTH, devices(2))
    training = Training(tf, 2, plant)
    training.train(2)
    taken = []
    for rate in (0.0, 20_000.0):
        plant.work.set_rate(rate)
        start = time.process_time()
        training.train(2)
        taken.append(time.process_time() - start)
    assert taken[1] > 3 * taken[0]
    assert plant.work.done >= 40_000


def needs(operation: Any) -> set[str]:
    """Names of the ops that must have run before `operation`, by an edge of the graph and not by luck."""
    found: set[str] = set()
    ahead = [operation]
    while ahead:
        current = ahead.pop()
        for before in [*(tensor.op for tensor in current.inputs), *current.control_inputs]:
            if before.name not in found:
                found.add(before.name)
                ahead.append(before)
    return found


def test_counted_work_begins_when_all_is_there_and_the_step_goes_on_when_it_is_done(tf: Any) -> None:
    work = CountedWork(devices(1)[0])

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        return tf.tan(work.then(tf.sin(x), after=[tf.cos(x)]))

    graph = step.get_concrete_function(tf.zeros([3])).graph
    of_type = {op.type: op for op in graph.get_operations()}
    loop = of_type.get("While") or of_type["StatelessWhile"]
    assert of_type["Cos"].name in needs(loop)
    assert {loop.name, of_type["Sin"].name} <= needs(of_type["Tan"])


def test_a_slow_replica_that_is_counted_is_slow_after_the_replicas_have_met(trained: Trained) -> None:
    training, _ = trained(CountedSlowReplica, 2)
    graph = training.step.get_concrete_function(*next(training.batches)).graph
    [loop] = [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]
    before = {graph.get_operation_by_name(name).type for name in needs(loop)}
    assert "CollectiveReduceV2" in before
    assert "AssignSubVariableOp" in before


def test_what_is_said_for_each_step_is_planted_in_each_and_needs_no_calibration(tf: Any) -> None:
    plant = planted(Plant(kind="device_work", share=0.0, each=30.0), devices(2))
    assert isinstance(plant, CountedDeviceWork)
    plant.calibrate(lambda: pytest.fail("a step was tried"), lambda _, compute: compute())
    before = plant.work[1].done
    Training(tf, 2, plant).train(4)
    assert plant.work[1].done - before == 120


@pytest.mark.parametrize(("kind", "of_input"), [("input_stall", True), ("host_delay", False)])
def test_a_delay_for_each_step_is_spent_at_the_end_of_the_window_however_long_it_was(kind: str, of_input: bool) -> None:
    plant = planted(Plant(kind=kind, share=0.0, each=0.002), devices(1))
    assert plant.of_input == of_input
    begun, told = time.perf_counter(), list[float]()
    for _ in range(5):
        plant.window_begins()
        for _ in range(4):
            plant.before_step()
        plant.window_ends(lambda: told.append(time.perf_counter()))
    assert time.perf_counter() - begun >= 5 * 4 * 0.002
    assert len(told) == 5


def slept(kind: str, worker: int, windows: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Seconds that a worker of two is asked to sleep before each step of each window."""
    asked: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        asked.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    plant, found = planted(Plant(kind=kind, share=0.0, each=1.0), devices(1), worker, 2), []
    for _ in range(windows):
        plant.window_begins()
        found.append([])
        for _ in range(steps):
            asked.clear()
            plant.before_step()
            found[-1].append(sum(asked))
    return found


@pytest.mark.parametrize("steps", [2, 3, 4, 7])
def test_workers_sleep_by_turns_and_each_as_long_in_a_window_as_if_all_slept_alike(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (slept("slow_worker", worker, 3, steps, monkeypatch) for worker in (0, 1))
    alike = slept("worker_delay", 0, 3, steps, monkeypatch)
    for own, other, all_of_them in zip(first[1:], second[1:], alike[1:], strict=True):
        assert sum(own) == sum(other) == sum(all_of_them) == steps
        apart = [(a, b) for a, b in zip(own, other, strict=True) if a != b]
        assert len(apart) == steps - steps % 2
        assert {sum(pair) for pair in apart} == {2.0}


def test_a_worker_by_itself_sleeps_before_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(time, "perf_counter", lambda: sum(asked))
    monkeypatch.setattr(time, "sleep", asked.append)
    plant = planted(Plant(kind="slow_worker", share=0.0, each=1.0), devices(1))
    for _ in range(3):
        plant.before_step()
    assert asked == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("kind", "hook"), [("slow_pull", "after_pull"), ("slow_push", "before_push")])
def test_what_is_exchanged_with_servers_comes_later_and_is_not_changed(tf: Any, kind: str, hook: str) -> None:
    plant = planted_in_updates(Plant(kind=kind, share=0.0, each=0.05), "parameter_server")

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def update(x: Any, rows: Any) -> Any:
        sparse = tf.IndexedSlices(rows, tf.constant([0, 2]), tf.constant([3, 2]))
        held = getattr(plant, hook)([x, None, sparse])
        assert held[1] is None
        return held[0], held[2]

    x, rows = tf.random.normal([5]), tf.ones([2, 2])
    update(x, rows)
    begun = time.perf_counter()
    first, dense = update(x, rows)
    assert time.perf_counter() - begun >= 0.05
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(dense, [[1, 1], [0, 0], [1, 1]])


@pytest.mark.usefixtures("tf")
def test_a_counted_product_alone_has_a_cost() -> None:
    assert 0 < CountedWork(devices(1)[0]).cost_s() < 0.1


@pytest.mark.usefixtures("tf")
def test_what_cannot_be_planted_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"plant: 'device_wrok' is not one of .*; did you mean 'device_work'"):
        planted(Plant(kind="device_wrok", share=0.05), devices(1))
    with pytest.raises(Unsupported, match="'slow_replica' makes others wait, and this cell has one replica"):
        planted(Plant(kind="slow_replica", share=0.05), devices(1))
    with pytest.raises(Unsupported, match="on processors and GPUs, not on /device:TPU:0"):
        planted(Plant(kind="device_work", share=0.05), ["/device:TPU:0"])
    with pytest.raises(Unsupported, match="'slow_pull' is in what parameter servers send and get, and here are none"):
        planted(Plant(kind="slow_pull", share=0.0, each=0.01), devices(1))
    for kind in ("slow_worker", "slow_push"):
        with pytest.raises(Unsupported, match=f"'{kind}' is seconds of each .*, and no share of it"):
            plants()[kind].build(Plant(kind=kind, share=0.05), devices(1))


@pytest.mark.parametrize(("strategy", "keys"), [("parameter_server", {"ps": 1}), ("dtensor", {"mesh": "batch:2"})])
def test_strategies_that_have_no_place_for_one_say_so(strategy: str, keys: dict[str, Any]) -> None:
    training: Any = types.SimpleNamespace(
        request=types.SimpleNamespace(plant=Plant(kind="device_work", share=0.05)),
        cell=cell(strategy=strategy, **keys),
    )
    with pytest.raises(Unsupported, match=f"'{strategy}' has no place for a planted slow-down: validate another"):
        LOOP.build(training)


def test_only_the_custom_loop_takes_a_plant() -> None:
    plant = Plant(kind="device_work", share=0.05)
    check_loop(plant, "custom")
    check_loop(None, "fit")
    with pytest.raises(
        Unsupported, match="'device_work' can be planted in the custom loop only, and this is loop 'fit'"
    ):
        check_loop(plant, "fit")
