"""What a model and data must be for each other: shapes, classes, targets, weights."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from harness.engines.tensorflow.data import DataInfo, Source, data_gives, load_source
from harness.engines.tensorflow.data.own import OwnSource
from harness.engines.tensorflow.data.text import check_tokens
from harness.engines.tensorflow.data.tfds import KINDS, PREFIX, kind_by_code
from harness.engines.tensorflow.own_training import has_its_own
from harness.engines.tensorflow.structures import ALONE, OpenShapes, Shapes, called, has_targets, only
from harness.engines.tensorflow.workloads import (
    Vocabulary,
    Workload,
    inputs_for,
    load_workload,
    makes_its_loss,
    shapes_of,
)
from harness.errors import UsageError
from harness.record.tfrecords import FEATURES
from harness.spec.axes import is_own_code


def must_have_targets(model: Any, targets: Any, source: Source) -> None:
    """UsageError where there are none, and Keras' own step would want them."""
    if not (has_targets(targets) or has_its_own(model, "train_step")):
        raise UsageError(
            f"data: '{source.name}' gives examples that are no pairs, expected (input, target): only a model with its "
            "own train_step takes inputs alone"
        )


def must_have_weights(model: Any, name: str) -> None:
    """UsageError where there is nothing to train, and to reduce."""
    if not model.trainable_variables:
        raise UsageError(f"model: '{name}' has no weight that is trained, expected at least one")


def tokens_fault(model: str, data: str) -> str | None:
    """Why a model by name cannot take a `tfds:` set, or the tokens or categories of data of which a description says
    enough; None where it can, or where nobody knows before its trials. Imports no TensorFlow but as `kind_by_code`."""
    if is_own_code(model):
        return None
    workload = load_workload(model)
    if workload.input_shape is None:
        return None
    if data.startswith(PREFIX):
        kind = kind_by_code(data)
        return f"it takes {' or '.join(workload.takes)}, no {kind}" if kind and kind not in workload.takes else None
    if workload.vocabulary is None or (gives := data_gives(data)) not in ("text", "categories"):
        return None
    try:
        info = load_source(data).info(Path())
        if gives == "categories" and info.shape != workload.input_shape:
            return f"it takes {workload.input_shape[0]} categories of an example, and '{data}' has {info.shape}"
        check_tokens(data, info, workload.input_shape, workload.vocabulary)
    except UsageError as error:
        return str(error).removeprefix("model: ")
    return None


def workload_for(model: str, source: Source, data_dir: Path) -> tuple[Workload, DataInfo]:
    """The model by its name, as the data have it where that is not its own to choose: a table has its columns, and
    numbers are learnt by the mean squared error. And what the data are. UsageError where they do not say how many
    outputs a model by name must have."""
    workload, info = load_workload(model), source.info(data_dir)
    if workload.input_shape is not None and source.gives == "own":
        raise UsageError(
            f"data: '{source.name}' gives other examples than model '{model}' takes, expected a model of your own for "
            "them, --model package.module:function"
        )
    if workload.input_shape is not None and source.gives not in (*workload.takes, "anything"):
        takes = " or ".join(workload.takes)
        raise UsageError(
            f"data: '{source.name}' gives {KINDS.get(source.gives, source.gives)}, and model '{model}' takes {takes}"
        )
    tells_tokens = workload.vocabulary is not None and workload.vocabulary.next_token
    if workload.input_shape is not None and not (info.outputs or tells_tokens):
        remedy = f"add classes to its {FEATURES}" if info.labelled else "take one that tells the next token, as gpt"
        has = f"names no classes, and model '{model}' has an output for each"
        raise UsageError(f"data: '{source.name}' {has}: {remedy}")
    if source.gives != "table" or not workload.input_shape:
        return workload, info
    columns = tuple(size for size in only(info.shape) if size is not None)
    return replace(workload, input_shape=columns, build=_of_numbers(workload) if info.numbers else workload.build), info


def _of_numbers(workload: Workload) -> Callable[[tuple[int, ...], int], Any]:
    """How its model is built for targets that are numbers."""

    def build(input_shape: tuple[int, ...], outputs: int) -> Any:
        model = workload.build(input_shape, outputs)
        model.compile(optimizer=None, loss="mean_squared_error")  # the cell says by which optimizer
        return model

    return build


def as_given(source: Source, info: DataInfo) -> Shapes:
    """The shapes of inputs that are read for no model. UsageError where the data leave a size open, or are no examples
    one by one, which a model's shape would tell."""
    if isinstance(source, OwnSource) and source.in_batches:
        raise UsageError(
            f"data: '{source.name}' ends in batch(), expected examples one by one: batch() is the harness's; where "
            "each batch is one example, put a map() behind it"
        )
    for place, shape in (info.shape if isinstance(info.shape, Mapping) else {ALONE: info.shape}).items():
        if None in shape:
            raise UsageError(
                f"data: '{source.name}' gives {called('inputs', place)} of shape {shape}, expected a size that is "
                "known: name the model that they are made as large for, --model package.module:function"
            )
    return cast(Shapes, info.shape)


def taken_by(model: Any, workload: Workload, source: Source, info: DataInfo) -> tuple[Shapes, int, Vocabulary | None]:
    """What a built model takes of the source's examples: the shape of an input, how many classes, which tokens. 0
    classes are not known: of several outputs, of a number, and of a train_step that makes its own loss."""
    inputs, outputs = shapes_of(model)
    refuse_several(model, inputs, outputs, source)
    output, *others = list(outputs.values()) if isinstance(outputs, Mapping) else [outputs]
    vocabulary, shape = workload.vocabulary, info.shape
    if source.gives == "text" and vocabulary is None:  # a user's own model does not say what it takes
        vocabulary = Vocabulary(info.vocabulary, next_token=len(output) > 1)
        shape = tuple(size and size - vocabulary.next_token for size in only(shape))
    classes = 0 if others or makes_its_loss(model) else [0, *output][-1] or 0
    return inputs_for(model, inputs, shape), classes, vocabulary


def refuse_several(model: Any, inputs: OpenShapes, outputs: OpenShapes, source: Source) -> None:
    """UsageError where a model has several inputs or outputs, and the source is none that could give them; what its own
    train_step makes of outputs and one target is its own."""
    counts = [len(shapes) if isinstance(shapes, Mapping) else 1 for shapes in (inputs, outputs)]
    if source.gives != "own" and counts != [1, 1] and not (counts[0] == 1 and makes_its_loss(model)):
        raise UsageError(
            f"data: '{source.name}' gives one input and one target, and model '{model.name}' has {counts[0]} inputs "
            f"and {counts[1]} outputs; give data of your own, --data package.module:function"
        )
