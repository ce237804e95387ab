"""A replica's batch in parts, one after the other: their gradients are added up for one reduction and one update."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.loops._micro_batches import accumulated
from harness.engines.tensorflow.loops.fit import FitLoop
from harness.engines.tensorflow.own_training import must_have_a_place
from harness.engines.tensorflow.reference.update import SingleDevice
from harness.engines.tensorflow.structures import Weighted
from harness.errors import Unprovable, Unsupported
from harness.run.process.zygote import Zygote
from tests.engines.sweeps import must_have_passed_the_whole_gate, must_know_its_sight
from tests.engines.tensorflow.referenced import check, training
from tests.record.examples import cell
from tests.run.process.clusters import measured

OWN, DATA = "tests.engines.tensorflow.own_micro_batches", "tests.engines.tensorflow.own_nested:tagged"
ALONE = {"strategy": "none", "replicas": 1, "batch_size": 12, "global_batch_size": 12}
MIRRORED = {"strategy": "mirrored", "replicas": 2, "batch_size": 12, "global_batch_size": 24}
OF_THREE = {**MIRRORED, "replicas": 3, "global_batch_size": 36}
WORKERS = {**MIRRORED, "strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1}
CENTRAL = {**MIRRORED, "strategy": "central_storage"}


class TestAddingUp:
    """Of a table that is looked up, a matrix, and a weight that the loss does not depend on."""

    @pytest.fixture
    def weights(self, tf: Any) -> list[Any]:
        generator = np.random.default_rng(1)
        return [tf.Variable(generator.standard_normal(shape, np.float32)) for shape in ((5, 3), (3, 2), (4,))]

    @pytest.fixture
    def gradients_of(self, tf: Any, weights: list[Any]) -> Any:
        def of_part(x: Any, y: Any) -> tuple[Any, list[Any]]:
            table, matrix, _ = weights
            with tf.GradientTape() as tape:
                found = tf.nn.embedding_lookup(table, x["rows"]) * x["scale"][:, None]
                loss = tf.reduce_sum(y.weights * tf.reduce_sum((found @ matrix - y.targets) ** 2, 1)) / 12
            return loss, tape.gradient(loss, weights)

        return of_part

    @pytest.fixture
    def batch(self, tf: Any) -> tuple[Any, Any]:
        generator = np.random.default_rng(2)
        x = {"rows": tf.constant(generator.integers(5, size=12)), "scale": tf.linspace(0.5, 2.0, 12)}
        return x, Weighted(tf.constant(generator.standard_normal((12, 2), np.float32)), tf.linspace(0.0, 1.0, 12))

    @pytest.mark.parametrize("parts", [2, 3, 12])
    def test_the_sum_over_parts_is_that_of_the_whole_and_sparse_gradients_stay_sparse(
        self, tf: Any, gradients_of: Any, batch: tuple[Any, Any], parts: int
    ) -> None:
        loss, (table, matrix, unused) = gradients_of(*batch)
        of_parts, (of_table, of_matrix, of_unused) = tf.function(accumulated(gradients_of, parts))(*batch)
        assert float(of_parts) == pytest.approx(float(loss), rel=1e-6)
        assert isinstance(of_table, tf.IndexedSlices)
        np.testing.assert_array_equal(of_table.indices, table.indices)
        np.testing.assert_allclose(of_table.values, table.values, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(of_matrix, matrix, rtol=1e-5, atol=1e-6)
        assert (unused, of_unused) == (None, None)

    def test_a_batch_in_one_part_is_what_it_was(self, gradients_of: Any) -> None:
        assert accumulated(gradients_of, 1) is gradients_of

    def test_a_part_begins_once_the_gradients_of_the_one_before_it_are_added_up(
        self, tf: Any, gradients_of: Any, batch: tuple[Any, Any]
    ) -> None:
        program = tf.function(accumulated(gradients_of, 3), autograph=False).get_concrete_function(*batch)
        looked_up = [op for op in program.graph.get_operations() if op.type == "ResourceGather"]
        products = [op for op in program.graph.get_operations() if op.type == "MatMul"]
        assert len(looked_up) == 3
        assert len(products) == 9, "two of which go backward"
        for number, first in enumerate(looked_up):
            assert sum(op in before(first) for op in products) == 3 * number


def before(operation: Any) -> set[Any]:
    """All ops that an op waits for."""
    ahead, seen = [operation], set()
    while ahead:
        of = ahead.pop()
        for other in (*(tensor.op for tensor in of.inputs), *of.control_inputs):
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return seen


@pytest.mark.parametrize(("n", "parts", "traced"), [(1, 3, True), (2, 3, False), (3, 2, True)])
def test_the_reference_takes_a_share_part_by_part_as_the_step_does(tf: Any, n: int, parts: int, traced: bool) -> None:
    """Each part has statistics of its own, draws anew, and meets its like on the other replicas."""
    import keras

    def layers() -> list[Any]:
        few = keras.layers.Lambda(lambda x: tf.cast(x * 4, tf.int32))
        normal = keras.layers.BatchNormalization(synchronized=n > 1, momentum=0.5)
        dense = keras.layers.Dense(8, use_bias=False, kernel_regularizer="l2")
        hidden = [dense, normal, keras.layers.Dropout(0.4, seed=3)]
        return [few, keras.layers.Embedding(4, 5), keras.layers.Flatten(), *hidden]

    _, shares = check(training(tf, layers, n, kind="Adam", clipnorm=0.5, micro_batches=parts), traced=traced)
    assert isinstance(shares[0].gradients[0], tf.IndexedSlices)


def test_what_keras_overwrites_with_its_gradient_must_not_be_added_up(tf: Any) -> None:
    import keras

    def layers() -> list[Any]:
        dense = keras.layers.Dense(8)
        dense.build((None, 8))
        dense.quantize("float8")
        return [dense]

    with pytest.raises(Unprovable, match=r"^micro_batches: Keras overwrites '.*' with its gradient, as float8"):
        SingleDevice(training(tf, layers, 1, micro_batches=2))


def test_a_step_that_keras_or_the_model_makes_takes_a_batch_whole() -> None:
    of = cell(**ALONE, micro_batches=2)
    request: Any = SimpleNamespace(training=of, member=None)
    with pytest.raises(
        Unsupported, match=r"^micro_batches: the model has its own train_step, .*; use --micro-batches 1"
    ):
        must_have_a_place(request, "train_step")
    must_have_a_place(request, "")
    fitted: Any = SimpleNamespace(request=request, cell=of.model_copy(update={"loop": "fit"}))
    with pytest.raises(Unsupported, match=r"^micro_batches: loop 'fit' .*; use --loop custom, or what Keras has, "):
        FitLoop(fitted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "keys"),
    [
        ("tagger", {**ALONE, "micro_batches": 2, "steps_per_execution": 3}),
        ("tagger", {**ALONE, "micro_batches": 3, "xla": True}),
        ("tagger", {**MIRRORED, "micro_batches": 2}),
        ("tagger", {**OF_THREE, "micro_batches": 2}),
        ("tagger", {**WORKERS, "micro_batches": 2}),
        ("plain_tagger", {**CENTRAL, "micro_batches": 2}),
        ("normalised_tagger", {**ALONE, "micro_batches": 2}),
        ("normalised_tagger", {**MIRRORED, "micro_batches": 4}),
        ("synchronised_tagger", {**MIRRORED, "micro_batches": 2, "precision": "mixed_float16"}),
    ],
)
def test_a_batch_in_parts_passes_the_whole_gate(shared_zygote: Zygote, model: str, keys: dict[str, Any]) -> None:
    record = measured(shared_zygote, windows=3, model=f"{OWN}:{model}", data=DATA, optimizer="adam(clipnorm=1)", **keys)
    must_have_passed_the_whole_gate(record)
    must_know_its_sight(record)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "keys"), [("tagger_without_a_part", MIRRORED), ("tagger_that_adds_for_each_part", ALONE)]
)
def test_a_part_that_is_left_out_and_a_regulariser_that_counts_for_each_are_wrong_results(
    shared_zygote: Zygote, model: str, keys: dict[str, Any]
) -> None:
    record = measured(
        shared_zygote, windows=3, model=f"{OWN}:{model}", data=DATA, optimizer="sgd", micro_batches=2, **keys
    )
    assert record.status == "wrong_result", record.reason
    assert record.checks.update is False
