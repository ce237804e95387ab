"""`keras:NAME`: models of keras.applications by name."""

import inspect
import math
from typing import Any

import pytest

from harness.engines.tensorflow.workloads import load_workload, model_text, unknown
from harness.engines.tensorflow.workloads.applications import SIDES
from harness.errors import UsageError
from harness.run.request import asked_matrix
from harness.spec.axes import is_own_code
from harness.spec.sweep import sweep_from

PUBLISHED = {
    "Xception": 22_910_480,
    "VGG16": 138_357_544,
    "ResNet50": 25_636_712,
    "ResNet50V2": 25_613_800,
    "InceptionV3": 23_851_784,
    "InceptionResNetV2": 55_873_736,
    "MobileNet": 4_253_864,
    "MobileNetV2": 3_538_984,
    "DenseNet121": 8_062_504,
    "NASNetMobile": 5_326_716,
    "EfficientNetB0": 5_330_571,
}
"""Parameters with 1,000 classes, of a model of each family, as the table of https://keras.io/api/applications had them
until it rounded them to 0.1 million."""
LARGER = {
    "VGG19": 143_667_240,
    "ResNet101": 44_707_176,
    "ResNet152": 60_419_944,
    "ResNet101V2": 44_675_560,
    "ResNet152V2": 60_380_648,
    "DenseNet169": 14_307_880,
    "DenseNet201": 20_242_984,
    "EfficientNetB1": 7_856_239,
    "EfficientNetB2": 9_177_569,
    "EfficientNetB3": 12_320_535,
    "EfficientNetB4": 19_466_823,
    "EfficientNetB5": 30_562_527,
    "EfficientNetB6": 43_265_143,
    "EfficientNetB7": 66_658_687,
    "NASNetLarge": 88_949_818,
}
"""Others of these families in that table."""
TRAINED = {"ConvNeXtTiny": 28_589_128, "MobileNetV3Large": 5_483_032, "MobileNetV3Small": 2_542_856}
"""Of families that table has not, or never had but rounded: those that are trained, as torchvision publishes them
(`num_params` on https://pytorch.org/vision/stable/models.html)."""
LARGER_TRAINED = {"ConvNeXtSmall": 50_223_688, "ConvNeXtBase": 88_591_464, "ConvNeXtLarge": 197_767_336}
ROUNDED = {"EfficientNetV2B0": "7.2"}
"""Millions, where nobody published more: Keras' table as it is today."""
LARGER_ROUNDED = {
    "EfficientNetV2B1": "8.2",
    "EfficientNetV2B2": "10.2",
    "EfficientNetV2B3": "14.5",
    "EfficientNetV2S": "21.6",
    "EfficientNetV2M": "54.4",
    "EfficientNetV2L": "119.0",
    "ConvNeXtXLarge": "350",  # of the paper, arXiv 2201.03545; the table, which cuts off what is over, has 350.1
}
DEEP = [*LARGER, *LARGER_TRAINED, *LARGER_ROUNDED]


def test_every_model_that_keras_has_is_known_by_its_name(tf: Any) -> None:  # noqa: ARG001
    import keras

    assert set(SIDES) == {name for name, found in vars(keras.applications).items() if inspect.isfunction(found)}


def test_a_published_count_of_every_model_is_tested() -> None:
    assert {*PUBLISHED, *TRAINED, *ROUNDED, *DEEP} == {*SIDES}


@pytest.mark.parametrize(
    "name", [*PUBLISHED, *TRAINED, *ROUNDED, *(pytest.param(name, marks=pytest.mark.slow) for name in DEEP)]
)
def test_it_has_as_many_parameters_as_are_published(tf: Any, name: str) -> None:
    workload = load_workload(f"keras:{name}")
    assert workload.input_shape is not None
    with tf.Graph().as_default():  # draws no weights
        model = workload.build(workload.input_shape, 1000)
    if millions := (ROUNDED | LARGER_ROUNDED).get(name):
        _, _, decimals = millions.partition(".")
        assert f"{model.count_params() / 1e6:.{len(decimals)}f}" == millions
    elif trained := (TRAINED | LARGER_TRAINED).get(name):
        assert sum(math.prod(weight.shape) for weight in model.trainable_weights) == trained
    else:
        assert model.count_params() == (PUBLISHED | LARGER)[name]


def test_it_gives_float32_logits_under_mixed_precision(tf: Any) -> None:
    import keras

    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = load_workload("keras:MobileNet").build((32, 32, 3), 7)
        logits = model(tf.zeros((2, 32, 32, 3)), training=True)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert (logits.shape, logits.dtype) == ((2, 7), tf.float32)
    assert abs(float(tf.reduce_sum(logits[0])) - 1) > 0.5, "a softmax would add up to 1"


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    assert (
        unknown("keras:ResNet50")
        is unknown("keras:ResNet50(side=64)")
        is unknown("mlp")
        is unknown("my.models:net")
        is None
    )
    says = r"^model: 'keras:Resnet50': keras\.applications has no 'Resnet50'; did you mean 'ResNet50'\?$"
    with pytest.raises(UsageError, match=says):
        load_workload("keras:Resnet50")


@pytest.mark.parametrize("name", ["resnet50", "RESNET50", "ResNet50"])
@pytest.mark.parametrize(
    ("work", "engines"),
    [
        ("training", ["tensorflow"]),
        ("training", ["torch", "tensorflow"]),
        ("collective", ["tensorflow"]),
        ("pipeline", ["tensorflow"]),
    ],
)
def test_a_name_of_keras_without_its_prefix_in_whatever_case_is_answered_with_the_whole_one(
    name: str, work: str, engines: list[str]
) -> None:
    says = r"'\S+' is not one of .*keras:NAME, package\.module:function{}; did you mean 'keras:ResNet50'\?$"
    whose = "" if engines == ["tensorflow"] else rf" \(engine {', '.join(engines)}\)"
    with pytest.raises(UsageError, match=says.format(whose)):
        asked_matrix(sweep_from({"work": work, "model": [name], "engine": engines}))
    for wanted in (name, f"{name}(side=64)"):
        with pytest.raises(UsageError, match=says.format("")):
            load_workload(wanted)


def test_images_may_be_of_another_size_behind_the_name(tf: Any) -> None:  # noqa: ARG001
    published, small = load_workload("keras:MobileNetV2"), load_workload("keras:MobileNetV2(side=32)")
    assert small.name == "keras:MobileNetV2(side=32)"
    assert (published.input_shape, small.input_shape) == ((224, 224, 3), (32, 32, 3))
    assert load_workload("keras:MobileNetV2(side=224)") is not small
    assert model_text("keras:MobileNetV2( side = 224 )") == "keras:MobileNetV2"
    counts = {of.build(of.input_shape or (), 10).count_params() for of in (published, small)}
    assert len(counts) == 1, "its weights are those of the published size"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keras:InceptionV3(side=74)", "InceptionV3 takes no images smaller than side=75"),
        ("keras:VGG16(side=31)", "VGG16 takes no images smaller than side=32"),
        ("keras:VGG16(height=64)", "'keras:VGG16' has no parameter 'height', expected some of side=224"),
        ("keras:Resnet50(side=64)", "keras.applications has no 'Resnet50'; did you mean 'ResNet50'?"),
    ],
)
def test_a_size_that_it_cannot_have_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_workload(text)
    assert str(refused.value).startswith("model: ")
    assert said in str(refused.value)


def test_it_is_no_code_of_the_users_own() -> None:
    assert not is_own_code("keras:ResNet50")
    assert not is_own_code("keras:ResNet50(side=64)")
