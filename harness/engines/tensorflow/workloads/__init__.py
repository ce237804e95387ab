"""Models to train. One file a model, with one `WORKLOAD`; `keras:NAME` of keras.applications; or a user's own."""

from collections.abc import Mapping
from dataclasses import replace

from harness.engines.tensorflow.workloads.applications import APPLICATIONS, PREFIX, application, unknown
from harness.engines.tensorflow.workloads.base import Vocabulary, Workload
from harness.engines.tensorflow.workloads.loss import LossOfSeveral, check_targets, loss_for, loss_of, makes_its_loss
from harness.engines.tensorflow.workloads.optimizers import OPTIMIZERS, built_text, optimizer_of, optimizer_text
from harness.engines.tensorflow.workloads.own import own_workload
from harness.engines.tensorflow.workloads.shapes import inputs_for, shapes_of
from harness.engines.tensorflow.workloads.targets import classes_of
from harness.errors import UsageError, not_one_of
from harness.registry import registered
from harness.spec import calls
from harness.spec.axes import is_own_code
from harness.spec.catalogue import ModelTraits

__all__ = [
    "APPLICATIONS",
    "OPTIMIZERS",
    "LossOfSeveral",
    "Vocabulary",
    "Workload",
    "built_text",
    "check_targets",
    "classes_of",
    "inputs_for",
    "load_workload",
    "loss_for",
    "loss_of",
    "makes_its_loss",
    "model_text",
    "model_traits",
    "optimizer_of",
    "optimizer_text",
    "shapes_of",
    "unknown",
    "workloads",
]


def workloads() -> Mapping[str, Workload]:
    """The registered models by name, without importing TensorFlow."""
    return registered(__name__, "WORKLOAD")


def load_workload(name: str) -> Workload:
    """The model called `name` or `keras:NAME`, some with sizes (`transformer(layers=4)`), or a user's own at
    `package.module:function` (which imports that module).

    Raises UsageError, one line that names the key `model`, when there is no such thing.
    """
    known = workloads()
    if name in known:
        return known[name]
    if is_own_code(name):
        return own_workload(name)
    if calls.name_of(name) != name:
        return _of_sizes(name)
    if fault := unknown(name):
        raise UsageError(fault)
    if name.startswith(PREFIX):
        return application(name)
    raise not_one_of("model", name, [*known, f"{PREFIX}NAME", "package.module:function"], APPLICATIONS)


def model_text(name: str) -> str:
    """The one spelling of a model with sizes, any other name as it is; UsageError where it has no such sizes. Those of
    a user's own, which is not imported, only its function knows."""
    if is_own_code(name):
        return calls.own_text("model", name)
    return name if calls.name_of(name) == name else _of_sizes(name).name


def model_traits(name: str) -> ModelTraits:
    """What a matrix must know of a model that there is; of a user's own, which is not imported, nothing."""
    return ModelTraits() if is_own_code(name) else load_workload(name).traits


def _of_sizes(text: str) -> Workload:
    """The registered model that `text` gives sizes to."""
    name = calls.name_of(text)
    known = load_workload(name)
    given = calls.parameters_of("model", text, known.sizes)
    if not given or known.of_sizes is None:
        return known
    try:
        made = known.of_sizes(**{**known.sizes, **given})
    except UsageError as error:
        raise UsageError(f"model: given {text!r}: {error}") from None
    return replace(made, name=calls.text_of(name, given))
