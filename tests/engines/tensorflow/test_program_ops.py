"""What names in a traced program tell: products of the forward pass, and changes that the optimizer makes."""

from collections import Counter
from typing import Any

from harness.engines.tensorflow.program_ops import holds_of
from harness.spec.cell import trained
from harness.trial.instruments import Holds
from tests.synthetic import make_cell

SHAPE = (8, 8, 1)


def held(tf: Any, forward: Any, weights: list[Any], optimizer: Any, name: str = "") -> Holds:
    """What a step holds that makes an update by the optimizer."""

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(forward(x) ** 2)
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    program = tf.function(step, autograph=False).get_concrete_function(tf.TensorSpec((4, *SHAPE), tf.float32))
    return holds_of(program, trained(make_cell()), {name or optimizer.name})


def parts() -> tuple[Any, Any]:
    """A model with a convolution, statistics and a product, and Adam for it."""
    import keras

    layers = [keras.layers.Conv2D(4, 3), keras.layers.BatchNormalization(), keras.layers.Flatten()]
    model = keras.Sequential([keras.Input(SHAPE), *layers, keras.layers.Dense(10)])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    return model, optimizer


def test_the_forward_pass_and_the_optimizers_changes_are_told_from_the_rest(tf: Any) -> None:
    model, optimizer = parts()
    found = held(tf, lambda x: model(x, training=True), model.trainable_variables, optimizer)
    assert found.forward == Counter({"Conv2D": 1, "MatMul": 1})
    assert found.updates == 3 * 6, "two slots and the weight of six variables"
    assert found.changes == found.updates + 3, "a mean, a variance and the step counter"


def test_what_is_computed_again_or_in_a_loop_has_names_that_tell_nothing(tf: Any) -> None:
    model, optimizer = parts()
    again = tf.recompute_grad(lambda x: model(x, training=False))
    nested = tf.function(lambda x: model(x, training=False), autograph=False)

    def loop(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, model(x)), (0, tf.zeros((4, 10))))[1]

    for forward in (again, nested, loop):
        assert held(tf, forward, model.trainable_variables, optimizer).forward is None


def test_without_the_optimizers_name_its_changes_are_anybodys(tf: Any) -> None:
    model, optimizer = parts()
    assert held(tf, model, model.trainable_variables, optimizer, name="other").updates == 0
