"""Known values through the path that gradients take: right sums pass, planted faults do not."""

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow.reduction import check_reduction
from harness.engines.tensorflow.trainer import TensorFlowTrainer


def mirrored(tf: Any, n: int, op: Any) -> Any:
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)], cross_device_ops=op)


@pytest.mark.parametrize("n", range(1, 9))
def test_reduction_to_one_device_sums_rightly_at_every_count(tf: Any, n: int) -> None:
    assert check_reduction(mirrored(tf, n, tf.distribute.ReductionToOneDevice())) is None


@pytest.mark.parametrize("packs", [0, 1, 3])
@pytest.mark.parametrize("n", [2, 4, 6, 8])
def test_hierarchical_copy_sums_rightly_at_even_counts(tf: Any, n: int, packs: int) -> None:
    assert check_reduction(mirrored(tf, n, tf.distribute.HierarchicalCopyAllReduce(packs))) is None


@pytest.mark.parametrize("n", [3, 5, 7])
def test_hierarchical_copy_loses_a_replica_at_odd_counts(tf: Any, n: int) -> None:
    """A defect of TensorFlow 2.21: its two groups have n // 2 members each, so one replica is in neither."""
    evidence = check_reduction(mirrored(tf, n, tf.distribute.HierarchicalCopyAllReduce(1)))
    assert evidence is not None
    assert "is missing" in evidence


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("dropped_op", "the value of replica 1 is missing"),
        ("dropped_in_one_tensor_op", "tensor 4 of 4"),
        ("doubled_op", "the value of replica 1 is counted twice"),
        ("mean_op", "that is the mean, not the sum"),
        ("never_updated_op", "as replica {last} received it"),
        ("nan_op", "got nan"),
    ],
)
def test_a_planted_fault_in_the_reduction_is_named(tf: Any, fault: str, says: str, n: int) -> None:
    planted = importlib.import_module("tests.planted")
    evidence = check_reduction(mirrored(tf, n, getattr(planted, fault)()))
    assert evidence is not None
    assert says.format(last=n - 1) in evidence


def test_a_sum_that_was_rounded_to_bfloat16_on_the_way_does_not_pass_with_three_replicas(tf: Any) -> None:
    planted = importlib.import_module("tests.planted")

    class RoundedSum(planted.Faulty):  # type: ignore[misc, name-defined]
        def after(self, replica: int, position: int, value: Any, n: int) -> Any:
            return tf.cast(tf.cast(value, tf.bfloat16), tf.float32)

    assert check_reduction(mirrored(tf, 3, RoundedSum())) is not None


def test_a_weight_of_whole_numbers_has_no_gradient_to_be_summed(tf: Any) -> None:  # noqa: ARG001
    import keras

    class Counting(keras.layers.Layer):  # type: ignore[misc]
        def build(self, _: Any) -> None:
            self.count = self.add_weight((2,), dtype="int32", initializer="zeros")

        def call(self, x: Any) -> Any:
            return x

    sent: list[Any] = []
    trainer: Any = object.__new__(TensorFlowTrainer)
    model = keras.Sequential([keras.Input((4,)), Counting(), keras.layers.Dense(3)])
    trainer._training = SimpleNamespace(model=model, strategy=None)
    trainer._strategy = SimpleNamespace(check_reduction=lambda _, tensors: sent.extend(tensors))
    trainer.check_reduction()
    assert sent == [((4, 3), "float32"), ((3,), "float32")]
