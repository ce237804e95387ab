"""Optimizers by name, and a compiled model's own."""

import inspect
from typing import Any

import pytest

from harness.engines._keras.optimizers import KERAS
from harness.engines.tensorflow.workloads import OPTIMIZERS, built_text, optimizer_of, optimizer_text
from harness.errors import UsageError


@pytest.fixture
def model(tf: Any) -> Any:  # noqa: ARG001 - sets TensorFlow up
    import keras

    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])


@pytest.mark.parametrize(("name", "slots"), [("adam", 2), ("sgd", 0), ("momentum", 1)])
def test_each_name_gives_the_slots_it_promises(model: Any, name: str, slots: int) -> None:
    optimizer = optimizer_of(model, name)
    optimizer.build(model.trainable_variables)
    step_count_and_rate = 2
    assert len(optimizer.variables) - step_count_and_rate == slots * len(model.trainable_variables)
    assert name in OPTIMIZERS


def test_an_unknown_name_is_a_usage_error(model: Any) -> None:
    with pytest.raises(UsageError, match=r"^optimizer: 'adamm' is not one of adam, sgd, .*; did you mean 'adam"):
        optimizer_of(model, "adamm")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_without_parameters_each_is_what_keras_makes_of_its_class(model: Any, name: str) -> None:
    import keras

    made = optimizer_of(model, name)
    other = {"sgd": 0.01, "momentum": 0.01, "adadelta": 1.0}.get(name, 1e-3)
    more = {"momentum": 0.9} if name == "momentum" else {}
    assert built_text(made) == built_text(type(made)(other, **more))
    assert optimizer_text(name) == name
    assert isinstance(made, keras.optimizers.Optimizer)


@pytest.mark.parametrize(
    ("text", "built"),
    [
        (
            "adam(clipnorm=1,beta_1=.5)",
            "Adam(learning_rate=0.001, clipnorm=1, beta_1=0.5, beta_2=0.999, epsilon=1e-07)",
        ),
        ("sgd(learning_rate=1e-1, weight_decay=.5)", "SGD(learning_rate=0.1, weight_decay=0.5)"),
        ("momentum(momentum=0.5)", "SGD(learning_rate=0.01, momentum=0.5)"),
        ("sgd(gradient_accumulation_steps=4)", "SGD(learning_rate=0.01, gradient_accumulation_steps=4)"),
        ("sgd(ema_momentum=0.9)", "SGD(learning_rate=0.01, use_ema=True, ema_momentum=0.9)"),
        (
            "sgd(decay_steps=9)",
            "SGD(learning_rate=CosineDecay(initial_learning_rate=0.01, decay_steps=9, alpha=0.1))",
        ),
        (
            "sgd(warmup_steps=3,decay_steps=9)",
            "SGD(learning_rate=CosineDecay(initial_learning_rate=0.001, decay_steps=9, alpha=0.1, warmup_target=0.01, "
            "warmup_steps=3))",
        ),
        ("adam(beta_1=0)", "Adam(learning_rate=0.001, beta_1=0, beta_2=0.999, epsilon=1e-07)"),
        (
            "adamw(weight_decay=0)",
            "AdamW(learning_rate=0.001, weight_decay=0, beta_1=0.9, beta_2=0.999, epsilon=1e-07)",
        ),
        ("momentum(nesterov=True)", "SGD(learning_rate=0.01, momentum=0.9, nesterov=True)"),
        (
            "adam(epsilon=1e-8,amsgrad=true)",
            "Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-08, amsgrad=True)",
        ),
    ],
)
def test_what_stands_in_parentheses_is_what_keras_is_given(model: Any, text: str, built: str) -> None:
    assert built_text(optimizer_of(model, text)) == built


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_takes_0_for_any_decimal_parameter_but_those_that_keras_does_not(model: Any, name: str) -> None:
    known = KERAS[name]
    decimals = [key for key, value in known.defaults.items() if isinstance(value, float) and value]
    refused = {"learning_rate", "beta_1"} if name == "lion" else {"learning_rate"}
    assert {key for key in decimals if key not in known.from_zero} == refused & {*decimals}
    for key in known.from_zero & {*decimals}:
        made = optimizer_of(model, f"{name}({key}=0)")
        made.build(model.trainable_variables)
        assert not made.get_config()[key]


NOT_GIVEN = {
    *("name", "kwargs", "use_ema", "ema_overwrite_frequency", "loss_scale_factor"),
    *("learning_rate_power", "muon_a", "muon_b", "muon_c", "exclude_layers"),  # below 0, or no numbers
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_parameter_that_keras_optimizers_have_may_be_given(tf: Any, name: str) -> None:  # noqa: ARG001
    import keras

    others = {"momentum", "nesterov"} if name == "sgd" else set()  # of which "momentum" is
    known = KERAS[name]
    takes = set(inspect.signature(getattr(keras.optimizers, known.kind)).parameters)
    assert set(known.defaults) - {"decay_steps", "warmup_steps"} == takes - NOT_GIVEN - others


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("warmup_steps=4", {0: 0.02, 2: 0.11, 4: 0.2, 5: 0.2, 1000: 0.2}),
        ("warmup_steps=4,decay_steps=8", {0: 0.02, 2: 0.11, 4: 0.2, 8: 0.11, 12: 0.02, 1000: 0.02}),
        ("decay_steps=8", {0: 0.2, 4: 0.11, 8: 0.02, 1000: 0.02}),
    ],
)
def test_a_rate_is_warmed_up_from_a_tenth_and_falls_to_a_tenth(
    model: Any, schedule: str, rates: dict[int, float]
) -> None:
    made = optimizer_of(model, f"adamw(learning_rate=0.2,{schedule})")
    for step, rate in rates.items():
        made.iterations.assign(step)
        assert float(made.learning_rate) == pytest.approx(rate, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("adam(learning_rate=0.001)", "adam"),
        ("adam( clipnorm = 1 )", "adam(clipnorm=1.0)"),
        ("adam(clipnorm=1,learning_rate=1E-2)", "adam(learning_rate=0.01,clipnorm=1.0)"),
        ("adamw(weight_decay=.0040)", "adamw"),
        ("adamw(weight_decay=0,beta_1=0)", "adamw(weight_decay=0.0,beta_1=0.0)"),
        ("momentum(momentum=0)", "momentum(momentum=0.0)"),
        ("adamw(warmup_steps=0,epsilon=1e-7,amsgrad=False)", "adamw"),
        ("adamw(amsgrad=True,epsilon=1e-8)", "adamw(epsilon=1e-08,amsgrad=true)"),
    ],
)
def test_equal_parameters_have_one_spelling(text: str, spelt: str) -> None:
    assert optimizer_text(text) == optimizer_text(spelt) == spelt


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("adam(rate=1)", "'adam' has no parameter 'rate', expected some of learning_rate=0.001, weight_decay=0.0, "),
        ("sgd(momentum=0.9)", ", warmup_steps=0; 'momentum' has it"),
        ("adam(learning_rate=0)", "learning_rate: given '0', expected a number above 0 to 16777216"),
        ("lion(beta_1=0)", "beta_1: given '0', expected a number above 0 to 16777216"),
        ("adam(beta_1=-1)", "beta_1: given '-1', expected a number from 0 to 16777216"),
        ("adam(learning_rate=-1)", "learning_rate: given '-1', expected a number above 0"),
        ("adam(learning_rate=nan)", "learning_rate: given 'nan', expected a number above 0"),
        ("adam(learning_rate=.)", "learning_rate: given '.', expected a number above 0"),
        ("adam(clipnorm=1e99)", "clipnorm: given '1e99', expected a number from 0 to 16777216"),
        ("adam(gradient_accumulation_steps=0)", "expected a whole number from 1 to 16777216"),
        ("adam(gradient_accumulation_steps=1.5)", "given '1.5', expected a whole number from 1 to 16777216"),
        ("adam(decay_steps=-1)", "given '-1', expected a whole number from 0 to 16777216"),
        ("adam(amsgrad=1)", "amsgrad: given '1', expected true or false"),
        ("adam(clipnorm=1,clipvalue=1)", "clipnorm and clipvalue together, expected one of them"),
        ("adamm(clipnorm=1)", "'adamm' is not one of adam, sgd, "),
    ],
)
def test_what_an_optimizer_does_not_take_is_bad_usage_in_one_line(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        optimizer_text(text)
    assert str(raised.value).startswith("optimizer: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_compiled_model_brings_its_own_fresh(model: Any) -> None:
    import keras

    schedule = keras.optimizers.schedules.CosineDecay(0.25, decay_steps=10)
    model.compile(optimizer=keras.optimizers.AdamW(schedule, weight_decay=0.5), loss="mse")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.iterations.assign(7)
    fresh = optimizer_of(model, "sgd")
    assert fresh is not model.optimizer
    assert isinstance(fresh, keras.optimizers.AdamW)
    assert (float(fresh.learning_rate), fresh.weight_decay, int(fresh.iterations)) == (0.25, 0.5, 0)


def test_loss_scaling_is_left_to_the_caller(model: Any) -> None:
    import keras

    model.compile(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.RMSprop(0.5)), loss="mse")
    fresh = optimizer_of(model, "sgd")
    assert isinstance(fresh, keras.optimizers.RMSprop)
    assert float(fresh.learning_rate) == 0.5


def test_a_schedule_of_the_users_own_need_not_be_registered(model: Any) -> None:
    import keras

    class Falling(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        def __call__(self, step: Any) -> Any:
            return 0.5 / (1.0 + keras.ops.cast(step, "float32"))

        def get_config(self) -> dict[str, Any]:
            return {}

    model.compile(optimizer=keras.optimizers.SGD(Falling()), loss="mse")
    assert float(optimizer_of(model, "adam").learning_rate) == 0.5


@pytest.mark.parametrize("by", ["variable", "name"])
def test_what_a_compiled_optimizer_excludes_from_weight_decay_stays_as_it_is(model: Any, by: str) -> None:
    import keras

    kernel, bias = model.trainable_variables
    own = keras.optimizers.AdamW(0.5, weight_decay=0.5)
    own.exclude_from_weight_decay(**{"var_list": [bias]} if by == "variable" else {"var_names": ["bias"]})
    model.compile(optimizer=own, loss="mse")
    bias.assign([1.0, 1.0, 1.0])
    before = kernel.numpy()
    fresh = optimizer_of(model, "sgd")
    fresh.build(model.trainable_variables)
    fresh.apply([keras.ops.zeros_like(kernel), keras.ops.zeros_like(bias)])
    assert bias.numpy().tolist() == [1.0, 1.0, 1.0]
    assert kernel.numpy() == pytest.approx(before * 0.75)


def falling() -> float:
    """A learning rate."""
    return 0.25


@pytest.mark.filterwarnings("ignore:The object being serialized includes a `lambda`")
@pytest.mark.parametrize(("rate", "name"), [(lambda: 0.25, "<lambda>"), (falling, "falling")])
def test_a_learning_rate_may_be_a_function(model: Any, rate: Any, name: str) -> None:
    import keras

    model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse")
    fresh = optimizer_of(model, "adam")
    assert fresh._learning_rate is rate
    assert float(fresh.learning_rate) == 0.25
    assert built_text(fresh) == f"SGD(learning_rate={name})"
