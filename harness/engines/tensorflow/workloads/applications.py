"""`keras:NAME`: the image classifiers of `keras.applications`, of the published size, with random weights."""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.engines.tensorflow.workloads.base import Workload, sized
from harness.errors import UsageError, nearest
from harness.spec.calls import name_of

if TYPE_CHECKING:
    import keras

PREFIX = "keras:"
_OF_224 = (
    "ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge",
    "DenseNet121", "DenseNet169", "DenseNet201", "EfficientNetB0", "EfficientNetV2B0",
    "MobileNet", "MobileNetV2", "MobileNetV3Large", "MobileNetV3Small", "NASNetMobile",
    "ResNet50", "ResNet50V2", "ResNet101", "ResNet101V2", "ResNet152", "ResNet152V2", "VGG16", "VGG19",
)  # fmt: skip
_OF_OTHERS = {
    "EfficientNetB1": 240, "EfficientNetB2": 260, "EfficientNetB3": 300, "EfficientNetB4": 380, "EfficientNetB5": 456,
    "EfficientNetB6": 528, "EfficientNetB7": 600, "EfficientNetV2B1": 240, "EfficientNetV2B2": 260,
    "EfficientNetV2B3": 300, "EfficientNetV2S": 384, "EfficientNetV2M": 480, "EfficientNetV2L": 480,
    "InceptionResNetV2": 299, "InceptionV3": 299, "NASNetLarge": 331, "Xception": 299,
}  # fmt: skip
SIDES: Mapping[str, int] = MappingProxyType(dict(sorted({**dict.fromkeys(_OF_224, 224), **_OF_OTHERS}.items())))
"""Height and width of the images, by NAME."""
APPLICATIONS = tuple(f"{PREFIX}{name}" for name in SIDES)
"""`keras:NAME` of each."""
_SMALLEST = {"InceptionResNetV2": 75, "InceptionV3": 75, "Xception": 71}
"""What Keras refuses smaller images than; 32 for all others."""


def unknown(name: str) -> str | None:
    """Why there is no model `keras:NAME`, whatever its size; None where there is, and of any other name."""
    wanted = name_of(name).removeprefix(PREFIX)
    if not name.startswith(PREFIX) or wanted in SIDES:
        return None
    return f"model: '{name}': keras.applications has no '{wanted}'{nearest(wanted, SIDES)}"


def application(name: str) -> Workload:
    """The model `keras:NAME`, which there is; `keras:NAME(side=96)` is the same of smaller or larger images."""
    wanted = name.removeprefix(PREFIX)
    return sized(functools.partial(_of_side, wanted), side=SIDES[wanted])


def _of_side(wanted: str, side: int) -> Workload:
    """Of images of `side` by `side` pixels; UsageError where Keras takes none so small."""
    if side < (least := _SMALLEST.get(wanted, 32)):
        raise UsageError(f"{wanted} takes no images smaller than side={least}")

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        import keras

        made = getattr(keras.applications, wanted)(
            weights=None, input_shape=input_shape, classes=classes, classifier_activation=None
        )
        logits = keras.layers.Activation("linear", dtype="float32")(made.output)
        return keras.Model(made.input, logits, name=made.name)

    summary = f"{wanted} of keras.applications, {side}×{side}×3"
    return Workload(f"{PREFIX}{wanted}", summary, (side, side, 3), build)
