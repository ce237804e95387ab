"""The reference does on one device what the strategy promises: two updates under MirroredStrategy and by it agree."""

from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.loops.custom import LossInShares, make_step
from harness.engines.tensorflow.reference.lockstep import Lockstep
from harness.engines.tensorflow.reference.update import SingleDevice
from harness.engines.tensorflow.server_state import FusedOptimizer
from harness.engines.tensorflow.state import capture
from harness.errors import Unprovable
from tests.engines.tensorflow.referenced import BATCHES, check, placed, training


@pytest.mark.parametrize("traced", [False, True])
def test_sparse_gradients_stay_sparse_so_that_adam_squares_each_of_an_index(tf: Any, traced: bool) -> None:
    import keras

    def layers() -> list[Any]:
        few = keras.layers.Lambda(lambda x: tf.cast(x * 4, tf.int32))
        return [few, keras.layers.Embedding(4, 5), keras.layers.Flatten()]

    _, shares = check(training(tf, layers, 2, kind="Adam"), traced=traced)
    assert isinstance(shares[0].gradients[0], tf.IndexedSlices)


@pytest.mark.parametrize(("n", "traced"), [(2, True), (3, False)])
def test_synchronised_batch_normalisation_sees_the_whole_batch_and_all_else_its_share(
    tf: Any, n: int, traced: bool
) -> None:
    import keras

    def layers() -> list[Any]:
        normal = keras.layers.BatchNormalization
        parts = [normal(synchronized=True), keras.layers.Dropout(0.4, seed=3), normal(synchronized=True)]
        return [keras.layers.Dense(8, "tanh"), *parts, keras.layers.Dense(8, "tanh"), normal()]

    check(training(tf, layers, n, momentum=0.9), traced=traced)


def adding_before_they_meet() -> list[Any]:
    """Layers that add to the loss on a replica before it waits for the others, of which each example has as much."""
    import keras

    synchronised = keras.layers.BatchNormalization(synchronized=True)
    return [keras.layers.Dense(8, "tanh", activity_regularizer="l2"), synchronised]


def test_what_a_share_adds_to_the_loss_before_it_meets_the_others_is_its_own(tf: Any) -> None:
    found = []
    for count in (1, 3):
        of = training(tf, adding_before_they_meet, count)
        device = SingleDevice(of)
        shares = device.shares(BATCHES[0], device.start([s.copies[0] for s in capture(of.model, of.optimizer)]))
        found.append([sum(float(share.loss) for share in shares), *device.apply(shares)])
    for whole, together in zip(*found, strict=True):
        np.testing.assert_allclose(together, whole, rtol=1e-4, atol=1e-6)


def test_mirrored_replicas_that_meet_add_what_the_last_one_has_to_the_loss_and_that_is_found(tf: Any) -> None:
    """A defect of Keras 3.15: a layer keeps what replicas add in one list, which each replica's call clears."""
    with pytest.raises(AssertionError):
        check(training(tf, adding_before_they_meet, 2))
    check(training(tf, adding_before_they_meet, 1))


@pytest.mark.parametrize(
    ("aggregation", "dtype"),
    [(name, "float32") for name in ("none", "mean", "sum", "only_first_replica")] + [("mean", "mixed_bfloat16")],
)
def test_an_untrained_variable_is_aggregated_as_it_was_declared(tf: Any, aggregation: str, dtype: str) -> None:
    import keras

    class Seen(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.mean = self.add_weight((8,), trainable=False, initializer="zeros", aggregation=aggregation)

        def call(self, x: Any) -> Any:
            self.mean.assign(0.5 * self.mean + tf.reduce_mean(x, axis=0))
            return x - self.mean

    of = training(tf, lambda: [Seen(dtype=dtype)], 3)
    state, _ = check(of, 1e-5 if dtype == "float32" else 1e-2)
    [mean] = [variable for variable in state if variable.kind == "statistic"]
    assert np.array_equal(mean.copies[0], mean.copies[2]) == (aggregation != "none")


def test_float8_layers_are_proved_on_one_replica_and_not_on_several_each_of_which_has_its_own_scales(tf: Any) -> None:
    import keras

    def layers() -> list[Any]:
        dense = keras.layers.Dense(8)
        dense.build((None, 8))
        dense.quantize("float8")
        return [dense]

    check(training(tf, layers, 1))
    with pytest.raises(Unprovable, match=r"^each replica overwrites '.*' with what its own share gives, as float8"):
        SingleDevice(training(tf, layers, 2))


def shrinking(aggregation: str = "none") -> Any:
    """A layer that assigns its trained weight each time it is called."""
    import keras

    class Shrinking(keras.layers.Layer):  # type: ignore[misc]
        def build(self, _: Any) -> None:
            self.scale = self.add_weight((8,), initializer="ones", aggregation=aggregation)

        def call(self, x: Any) -> Any:
            self.scale.assign(0.5 * self.scale)
            return x * self.scale

    return Shrinking()


@pytest.mark.parametrize(("n", "traced"), [(1, True), (2, True), (3, False)])
def test_a_trained_weight_that_a_layer_assigns_begins_alike_on_every_replica(tf: Any, n: int, traced: bool) -> None:
    import keras

    def spectral() -> list[Any]:
        return [keras.layers.SpectralNormalization(keras.layers.Dense(8))]

    for layers in (lambda: [shrinking()], spectral):
        check(training(tf, layers, n), traced=traced)


def test_a_trained_weight_that_a_layer_assigns_is_each_shares_own_where_they_are_programs(tf: Any) -> None:
    of = training(tf, lambda: [*exchanging(tf), shrinking()], 3)
    device, values = SingleDevice(of), [state.copies[0] for state in capture(of.model, of.optimizer)]
    shares = device.shares(BATCHES[0], device.start(values))
    summed = [sum(parts) for parts in zip(*([g.numpy() for g in share.gradients] for share in shares), strict=True)]
    for gradient, expected in zip(device.as_programs(values, BATCHES[0]), summed, strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


def test_a_trained_weight_that_replicas_aggregate_where_a_layer_assigns_it_is_unprovable(tf: Any) -> None:
    of = training(tf, lambda: [shrinking("mean")], 2)
    device = SingleDevice(of)
    own = device.start([state.copies[0] for state in capture(of.model, of.optimizer)])
    with pytest.raises(Unprovable, match=r"^a layer assigns '.*', a trained weight that replicas aggregate"):
        device.shares(BATCHES[0], own)


@pytest.mark.parametrize("traced", [False, True])
def test_a_layer_may_ask_which_replica_it_is_on(tf: Any, traced: bool) -> None:
    import keras

    class Apart(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            context = tf.distribute.get_replica_context()  # None where a model is built under a strategy
            return x if context is None else x * (1 + tf.cast(context.replica_id_in_sync_group, x.dtype))

    check(training(tf, lambda: [Apart()], 3), traced=traced)


def exchanging(tf: Any) -> list[Any]:
    """Layers of which each replica gets something of the others, or of its number."""
    import keras

    class Number(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            context = tf.distribute.get_replica_context()
            return x if context is None else x * (1 + tf.cast(context.replica_id_in_sync_group, x.dtype))

    class Seen(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.mean = self.add_weight((8,), trainable=False, initializer="zeros", aggregation="mean")

        def call(self, x: Any) -> Any:
            self.mean.assign(0.5 * self.mean + tf.reduce_mean(x, axis=0))
            return x - self.mean

    synchronised, dropout = keras.layers.BatchNormalization(synchronized=True), keras.layers.Dropout(0.4, seed=3)
    return [keras.layers.Dense(8, "tanh"), synchronised, dropout, Number(), Seen()]


def test_shares_that_exchange_something_are_programs_where_each_is_given_what_it_gets_of_the_others(tf: Any) -> None:
    of = training(tf, lambda: exchanging(tf), 3)
    device, values = SingleDevice(of, traced=True), [state.copies[0] for state in capture(of.model, of.optimizer)]
    shares = device.shares(BATCHES[0], device.start(values))
    assert not device.is_program
    summed = [sum(parts) for parts in zip(*([g.numpy() for g in share.gradients] for share in shares), strict=True)]
    for gradient, expected in zip(device.as_programs(values, BATCHES[0]), summed, strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("n", "traced"), [(2, False), (3, True)])
def test_whoever_asks_how_many_replicas_are_in_sync_hears_what_the_strategy_says(tf: Any, n: int, traced: bool) -> None:
    import keras

    def in_sync() -> int:
        return int(tf.distribute.get_strategy().num_replicas_in_sync)

    class Penalised(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            self.add_loss(0.3 * in_sync() * tf.reduce_mean(x**2))
            self.add_loss(keras.losses.MeanSquaredError()(tf.ones_like(x), x))  # which Keras divides by the number
            return x

    class Rate(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        def __call__(self, _: Any) -> Any:
            return 0.02 * in_sync()

        def get_config(self) -> dict[str, Any]:
            return {}

    def layers() -> list[Any]:
        return [keras.layers.Dense(4, activity_regularizer=keras.regularizers.L2(0.1 * in_sync())), Penalised()]

    check(training(tf, layers, n, rate=Rate), traced=traced)
    assert in_sync() == 1


def test_the_reference_has_no_strategy_however_many_replicas_it_speaks_of(tf: Any) -> None:
    import keras

    asked = []

    class Asking(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            asked.append((tf.distribute.has_strategy(), tf.distribute.get_strategy().num_replicas_in_sync))
            return x

    of = training(tf, lambda: [Asking()], 2)
    device = SingleDevice(of)
    own = device.start([state.copies[0] for state in capture(of.model, of.optimizer)])
    asked.clear()
    device.shares(BATCHES[0], own)
    assert asked == [(False, 2)] * 2


@pytest.mark.parametrize("traced", [False, True])
def test_a_share_has_no_replica_context_where_the_step_of_parameter_servers_has_none(tf: Any, traced: bool) -> None:
    import keras

    asked = []

    class Asking(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            asked.append(tf.distribute.get_replica_context() is None)
            return x

    of = training(tf, lambda: [Asking()], 1)
    state = [each.copies[0] for each in capture(of.model, of.optimizer)]
    for kernels in (False, True):
        of.cell.asynchronous = kernels
        of.optimizer = object.__new__(FusedOptimizer) if kernels else of.optimizer
        device = SingleDevice(of, traced)
        own = device.start(state)
        asked.clear()
        device.shares(BATCHES[0], own)
        assert asked == [kernels]


@pytest.mark.parametrize(("n", "traced", "axis"), [(2, True, 0), (3, False, -1)])
def test_what_a_layer_gathers_of_all_replicas_is_gathered_of_all_shares_and_so_is_its_gradient(
    tf: Any, n: int, traced: bool, axis: int
) -> None:
    import keras

    class Gathering(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            context = tf.distribute.get_replica_context()
            if context is None:  # a model is built under a strategy
                return x
            given = context.all_gather({"all": x, "squares": x**2}, axis=axis)
            weights = tf.cast(tf.range(tf.size(given["all"])), x.dtype)
            total = tf.reduce_sum(tf.reshape(given["all"] + given["squares"], [-1]) * weights) / 50.0
            return x * total

    check(training(tf, lambda: [keras.layers.Dense(4), Gathering()], n), traced=traced)


def test_what_only_a_strategy_can_do_leaves_the_reference_unprovable_with_the_reason(tf: Any) -> None:
    import keras

    class Merging(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            context = tf.distribute.get_replica_context()
            return x if context is None else context.merge_call(lambda _, value: value, args=(x,))

    class Sparse(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            context = tf.distribute.get_replica_context()
            if context is not None:
                context.all_reduce("sum", tf.IndexedSlices(x, tf.range(tf.shape(x)[0])))
            return x

    for layer, reason in ((Merging, "^a layer merges its replicas"), (Sparse, r"^a layer exchanges tf\.IndexedSlices")):
        of = training(tf, lambda layer=layer: [layer()], 2)  # type: ignore[misc]
        device = SingleDevice(of)
        own = device.start([state.copies[0] for state in capture(of.model, of.optimizer)])
        with pytest.raises(Unprovable, match=reason):
            device.shares(BATCHES[0], own)


def test_traced_shares_are_runs_of_one_program(tf: Any) -> None:
    import keras

    calls = []

    class Called(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            calls.append(tf.inside_function())
            return x

    of = training(tf, lambda: [Called()], 3)
    for traced, expected in ((True, [True]), (False, [False] * 6)):
        device = SingleDevice(of, traced)
        own = device.start([state.copies[0] for state in capture(of.model, of.optimizer)])
        calls.clear()
        for batch in BATCHES:
            device.shares(batch, own)
        assert calls == expected


@pytest.mark.parametrize("traced", [False, True])
def test_a_weight_without_a_gradient_stays_as_it_is(tf: Any, traced: bool) -> None:
    import keras

    class Unused(keras.layers.Layer):  # type: ignore[misc]
        def build(self, _: Any) -> None:
            self.unused = self.add_weight((2,))

        def call(self, x: Any) -> Any:
            return x

    _, shares = check(training(tf, lambda: [Unused()], 2, kind="Adam"), traced=traced)
    assert shares[0].gradients[0] is None


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_what_a_model_adds_to_the_loss_is_added_in_every_precision(tf: Any, precision: str) -> None:
    import keras

    keras.mixed_precision.set_global_policy(precision)
    try:
        dense = lambda: [keras.layers.Dense(4, kernel_regularizer="l2", activity_regularizer="l2")]  # noqa: E731
        of = training(tf, dense, 2, precision=precision)
        step, device = make_step(of), SingleDevice(of)
        own = device.start([state.copies[0] for state in capture(of.model, of.optimizer)])
        x, y = BATCHES[0]
        loss = LossInShares(of, step(*placed(of, x, y))).own()
        assert sum(float(share.loss) for share in device.shares((x, y), own)) == pytest.approx(loss, rel=1e-2)
    finally:
        keras.mixed_precision.set_global_policy("float32")


@pytest.mark.usefixtures("tf")
def test_shares_that_do_not_exchange_the_same_things_have_no_reference() -> None:
    lockstep = Lockstep([])
    with pytest.raises(Unprovable, match="not every share"):
        lockstep.run(lambda share: lockstep.meet(share, sum) if share else 0, [[], []])
