"""The input pipeline: decode, fit examples to the model, cache, shuffle, repeat, batch, prefetch."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.cache import cached
from harness.engines.tensorflow.data.images import check_input_shape, fit
from harness.engines.tensorflow.data.own import OwnSource, first_as_given, of_one_shape, padded
from harness.engines.tensorflow.data.own_batches import OwnBatches
from harness.engines.tensorflow.data.service import HELD_BY_WORKER, through_service
from harness.engines.tensorflow.data.stages import held_by
from harness.engines.tensorflow.data.text import check_tokens, cut
from harness.engines.tensorflow.structures import Batch, OpenShapes, Shapes, arrays_in, fits, only
from harness.errors import HarnessError, UsageError
from harness.spec.axes import Axes
from harness.spec.inputs import UNCOUNTED
from harness.spec.pipeline import Cut
from harness.trial.examples import GATE_SEED, shifted
from harness.visible import plural

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from harness.engines.tensorflow.workloads.base import Vocabulary

CACHE_BYTES = 2**30
"""The most that preprocessed examples may take in memory: for the cache, else for the shuffle buffer."""

BLOCK = 256
BLOCK_BYTES = 2**25
"""How many examples, and at most how many bytes of them, are fitted in one operation."""

HOST = "/device:CPU:0"
"""Where an input pipeline makes its batches."""


def pipeline(
    source: Source,
    data_dir: Path,
    input_shape: Shapes,
    classes: int,
    global_batch: int,
    seed: int,
    shard: tuple[int, int] = (0, 1),
    cell: Axes | None = None,
    vocabulary: "Vocabulary | None" = None,
    scratch: str = "",
) -> "tf.data.Dataset":
    """Endless batches (x [G, *input_shape], y [G, ...]), the same ones for the same `seed`: of images numbers and int32
    classes, of text int32 tokens and classes or next tokens, of other examples as they are.

    A data set whose preprocessed examples fit CACHE_BYTES is cached in memory and shuffled whole, unless the cell asks
    for something else; what is cached is so before the first batch, so that no window pays for it. G may exceed the
    data set. For a source on the device it is one batch, repeated. With `shard` = (i, of) only every `of`-th example
    from the i-th on is read. `cell` is asked for the axes that are of the input; None is their defaults. `vocabulary`
    is the model's, where it takes whole numbers. A cache in a file lies in `scratch`. Batches that the user's own
    function makes are taken as they are, of `shard` as it says. Raises UsageError when model and data do not fit each
    other.
    """
    import tensorflow as tf

    if source.on_device:
        one = source.batch(input_shape, classes, global_batch, seed, vocabulary)
        return tf.data.Dataset.from_tensors(one).repeat()
    asked: Axes = cell or cast(Any, Axes).model_construct()  # all that is asked for here has a default
    if isinstance(source, OwnBatches):
        _checked(source, data_dir, input_shape, classes, vocabulary)
        batches = source.endless(global_batch, shard)
    else:
        examples = endless_examples(source, data_dir, input_shape, classes, seed, shard, asked, vocabulary, scratch)
        batches = _batched(source, examples, global_batch)
    if asked.prefetch:
        batches = batches.prefetch(asked.prefetch)
    return batches.with_options(options_of(source.info(data_dir)))


def endless_examples(
    source: Source,
    data_dir: Path,
    input_shape: Shapes,
    classes: int,
    seed: int,
    shard: tuple[int, int],
    asked: Axes,
    vocabulary: "Vocabulary | None",
    scratch: str,
    cut: Cut = "",
) -> "tf.data.Dataset":
    """The examples of `pipeline` before they are batched, pass after pass; of one that is `cut` behind a stage, what
    comes out there."""
    info = _checked(source, data_dir, input_shape, classes, vocabulary)
    index, of = shard
    read = read_from(source, data_dir, input_shape, asked.interleave, asked.deterministic)
    if cut == "source":
        return read.repeat()
    examples = _fitted(source, read.shard(of, index) if of > 1 else read, input_shape, vocabulary, asked)
    if asked.data_service:
        examples = through_service(examples.with_options(options_of(info)), asked.data_service)
    if cut == "decode":
        return examples.repeat()
    own = None if info.examples is None else max(1, info.examples // of)
    room = max(1, CACHE_BYTES // bytes_each(examples))
    buffer = min(asked.shuffle_buffer or own or UNCOUNTED, own or math.inf, room)
    if asked.cache != "auto" or (own or math.inf) <= room:
        examples = cached(examples, asked.cache, source.name, own, scratch, at_once=buffer != own or bool(cut))
    return examples.repeat() if cut == "cache" else _shuffled(examples, int(buffer), seed)


def batches_ahead(source: Source, cell: Axes, input_shape: Shapes, stages: Sequence[str], batch: float) -> int:
    """Batches, of so many examples, that may be ready before a step asks: those that wait, and what parallel calls hold
    of more.

    In `stages` without a cache `parallel_calls` of them, or as many as there are processors, hold an example each, or a
    block. Where `tf.distribute` shares the input, a global batch waits that is being cut, and a part of one.
    """
    if source.on_device:
        return 0
    if isinstance(source, OwnBatches):
        return held_by(stages) + 2 * max(1, cell.device_prefetch)
    servers = cell.data_service
    kept = any(stage.startswith("Cache") for stage in stages)
    calls = 0 if kept else cell.parallel_calls or len(os.sched_getaffinity(0))
    each = _block(input_shape) if "Unbatch" in stages else 1
    examples = calls * each if not servers else servers * (calls * each + HELD_BY_WORKER)
    if isinstance(source, OwnSource) and not servers:
        examples += held_by(stages[: _last_batch(stages)])
    waiting = cell.prefetch
    if cell.autoshard != "off":  # of its own files a worker makes global batches, each of which lasts it several steps
        waiting = (waiting + 1) * (cell.workers if cell.autoshard == "file" else 1) + 1
    return waiting + 2 * max(1, cell.device_prefetch) + math.ceil(examples / batch)


def _last_batch(stages: Sequence[str]) -> int | None:
    """Where examples become batches; None of a pipeline that is cut before."""
    found = [number for number, stage in enumerate(stages) if stage.startswith("Batch(")]
    return found[-1] if found else None


def ahead_on_device(dataset: "tf.data.Dataset", device: str, batches: int) -> "tf.data.Dataset":
    """`dataset` with so many batches ready on the host and as many on `device`, a processor or a GPU, as strategies
    have them; with 0 the host has one, and one more in the device's place (`fetching`). For a TPU, which TensorFlow's
    prefetching does not know, it stays as it is.

    On the host's own processor all lie in its memory and nothing is copied. A step whose arguments came by such a
    copy was seen to take the memory of its activations from the system anew each time, for twice its processor time.
    """
    import tensorflow as tf

    if "TPU" in device:
        return dataset
    if device.endswith(HOST) or not batches:
        return dataset.prefetch(2 * max(1, batches))
    return dataset.prefetch(batches).apply(tf.data.experimental.prefetch_to_device(device, buffer_size=batches))


def fetching(batches: int) -> "tf.distribute.InputOptions | None":
    """What has `tf.distribute` keep so many batches on each device, and as many on the host for it; with 0 one and one
    more, both on the host. None where that is its own choice."""
    import tensorflow as tf

    if batches == 1:
        return None
    return tf.distribute.InputOptions(
        experimental_fetch_to_device=batches > 0, experimental_per_replica_buffer_size=max(1, batches)
    )


def gate_batches(
    source: Source,
    data_dir: Path,
    input_shape: Shapes,
    classes: int,
    global_batch: int,
    count: int,
    vocabulary: "Vocabulary | None" = None,
) -> list[Batch]:
    """`count` distinct batches (x [G, *input_shape], y [G, ...]), the same ones every time, of the pipeline's types;
    of several inputs or targets each is such an array.

    They go through the pipeline's preprocessing and follow the source's order, each example once; when that is not
    enough, later passes use examples shifted, so that no two replicas and no two batches ever see the same. Of data of
    one's own nobody knows how they may be changed: UsageError where there is not enough. Only as many examples are read
    as are needed.
    """
    if source.on_device:
        return [source.batch(input_shape, classes, global_batch, GATE_SEED + k, vocabulary) for k in range(count)]
    info = _checked(source, data_dir, input_shape, classes, vocabulary)
    if isinstance(source, OwnBatches):
        with source.reading():
            return source.first(global_batch, count)
    needed = count * global_batch
    if source.gives == "own":
        with source.reading():
            first = first_as_given(plain_pass(source, data_dir, input_shape, vocabulary), needed)
        if (found := len(arrays_in(first)[0])) < needed:
            raise UsageError(
                f"data: '{source.name}' has {found} examples, expected at least {needed}, for {count} batches of "
                f"{global_batch} in which none comes twice: give more, or a smaller --batch-size"
            )
    else:
        known = needed if info.examples is None else min(needed, info.examples)
        with source.reading():
            few = _first(source, data_dir, only(input_shape), known, vocabulary)
        first = _shifted(source, data_dir, needed, *few)
    return [_cut_out(first, k, k + global_batch) for k in range(0, needed, global_batch)]


def _cut_out(batch: Batch, begin: int, end: int) -> Batch:
    """The examples from one number to another."""
    import tensorflow as tf

    part: Batch = tf.nest.map_structure(lambda values: values[begin:end], batch)
    return part


def _shifted(
    source: Source, data_dir: Path, needed: int, inputs: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]"
) -> Batch:
    """`needed` examples made of those there are: in each further pass the inputs are moved by one element more."""
    if not len(inputs):
        raise HarnessError(f"data: '{source.name}' has no examples under '{data_dir}'; delete it and run again")
    return shifted(needed, inputs, labels)


def _checked(
    source: Source, data_dir: Path, input_shape: Shapes, classes: int, vocabulary: "Vocabulary | None"
) -> DataInfo:
    """What the source gives; UsageError when the model cannot take it."""
    info = source.info(data_dir)
    if source.gives in ("own", "table", "categories"):
        if not _fits(info.shape, input_shape):
            raise UsageError(
                f"data: '{source.name}' gives inputs of the shape {info.shape} and the model takes {input_shape}, "
                f"{source.expected if isinstance(source, OwnBatches) else 'expected examples one by one'}, each of the "
                "model's shape"
            )
    elif vocabulary is None:
        check_input_shape(only(input_shape))
    if vocabulary is not None:
        check_tokens(source.name, info, only(input_shape), vocabulary)
    if classes and info.numbers not in (0, classes):
        raise UsageError(
            f"data: '{source.name}' gives targets of {plural(info.numbers, 'number')} and the model has "
            f"{plural(classes, 'output')}, expected as many"
        )
    labels = max(classes, 2)  # one output is a binary classifier
    if classes and info.classes > labels:
        raise UsageError(
            f"data: '{source.name}' has {info.classes} classes and the model {classes} outputs, "
            "expected at least one output a class"
        )
    return info


def _fits(given: OpenShapes, taken: Shapes) -> bool:
    """Whether a model can take what data give; a size that is None is brought to the model's (`own.padded`)."""
    if isinstance(given, Mapping) and isinstance(taken, Mapping):
        return given.keys() == taken.keys() and all(_fits(given[place], taken[place]) for place in given)
    if isinstance(given, Mapping) or isinstance(taken, Mapping):
        return False
    return fits(given, taken)


def bytes_each(examples: "tf.data.Dataset") -> int:
    """What an example takes in memory, its inputs and its targets."""
    import tensorflow as tf

    specs = tf.nest.flatten(examples.element_spec)
    return max(1, sum(int(spec.dtype.size * spec.shape.num_elements()) for spec in specs))


def _fitting(
    source: Source, input_shape: Shapes, vocabulary: "Vocabulary | None"
) -> "Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]":
    """The function that makes of (input, target), or of many, what the model wants: an image as numbers [*input_shape]
    and its class as int32 [], text as tokens, of a row numbers as they are, of the user's own what is an image."""
    import tensorflow as tf

    made: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    if source.gives == "own":
        made = tf.autograph.experimental.do_not_convert(source.with_images)
        return made
    shape = only(input_shape)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def fit_both(x: "tf.Tensor", y: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        x = source.decoded(x) if source.encoded else x
        if vocabulary is not None:
            return cut(x, y, shape[0], vocabulary.next_token)
        x = fit(x, shape, source.pixels) if source.gives == "images" else x
        return x, y if source.gives == "table" and y.dtype.is_floating else tf.cast(y, tf.int32)

    made = fit_both
    return made


def _fitted(
    source: Source,
    examples: "tf.data.Dataset",
    input_shape: Shapes,
    vocabulary: "Vocabulary | None",
    asked: Axes,
) -> "tf.data.Dataset":
    """The examples as the model wants them, one by one; those of the user's own as they are, their images decoded."""
    import tensorflow as tf

    if source.gives == "own" and not source.holds_images:
        return examples
    fit_both = _fitting(source, input_shape, vocabulary)

    def mapped(these: "tf.data.Dataset") -> "tf.data.Dataset":
        calls, order = asked.parallel_calls or tf.data.AUTOTUNE, None if asked.deterministic else False
        return these.map(fit_both, num_parallel_calls=calls, deterministic=order)

    if source.holds_images or source.encoded or not examples.element_spec[0].shape.is_fully_defined():
        return mapped(examples)
    # One operation for many images costs less than one each: a third off the time to the first batch.
    return mapped(examples.batch(_block(input_shape))).unbatch()


def read_from(
    source: Source, data_dir: Path, input_shape: Shapes, files: int = 0, in_order: bool = True
) -> "tf.data.Dataset":
    """The source's examples, from so many files side by side where that is more than one; ragged ones of the user's own
    as long as the model takes them."""
    examples = source.read(data_dir, files, in_order)
    return padded(examples, input_shape, source.cut_by) if source.gives == "own" else examples


def plain_pass(
    source: Source, data_dir: Path, input_shape: Shapes, vocabulary: "Vocabulary | None", files: int = 0
) -> "tf.data.Dataset":
    """The examples as the model wants them, one by one in the source's order, made by nothing but one plain map; of
    several `files` read side by side in the order of that."""
    examples = read_from(source, data_dir, input_shape, files)
    as_wanted = source.gives == "own" and not source.holds_images
    return examples if as_wanted else examples.map(_fitting(source, input_shape, vocabulary))


def order_of_examples(info: DataInfo, count: int, buffer: int, seed: int) -> "tf.data.Dataset":
    """The numbers of a pass's examples in the order in which the pipeline draws them by a shuffle buffer of this size,
    pass after pass: its shuffling, of their numbers alone."""
    import tensorflow as tf

    return _shuffled(tf.data.Dataset.range(count), buffer, seed).with_options(options_of(info))


def _shuffled(examples: "tf.data.Dataset", buffer: int, seed: int) -> "tf.data.Dataset":
    """Passes without end, each whole, in an order of its own."""
    return examples.shuffle(buffer, seed=seed, reshuffle_each_iteration=True).repeat()


def _block(input_shape: Shapes) -> int:
    """Examples of one operation."""
    shapes = input_shape.values() if isinstance(input_shape, Mapping) else [input_shape]
    return max(1, min(BLOCK, BLOCK_BYTES // (4 * sum(map(math.prod, shapes)))))


def _batched(source: Source, examples: "tf.data.Dataset", size: int) -> "tf.data.Dataset":
    """Batches of `size` examples; those of the user's own are held to the shape that they say."""
    batches = examples.batch(size, drop_remainder=True)
    return of_one_shape(batches) if source.gives == "own" else batches


def options_of(info: DataInfo) -> "tf.data.Options":
    """What TensorFlow may change of the pipeline by itself: nothing that a timed window would notice."""
    import tensorflow as tf

    options = tf.data.Options()
    # The tuner would change the pipeline, and use the processor, while windows are timed.
    options.autotune.enabled = False
    if info.examples is None:  # fused, the two look for ever for an example in a pass that has none
        options.experimental_optimization.shuffle_and_repeat_fusion = False
    return options


def _first(
    source: Source, data_dir: Path, input_shape: tuple[int, ...], count: int, vocabulary: "Vocabulary | None"
) -> Batch:
    """The first `count` examples, preprocessed: without tracing a graph, which costs more than a few images."""
    import numpy as np
    import tensorflow as tf

    if not count:
        return np.empty((0, *input_shape), np.float32), np.empty(0, np.int32)
    few = source.examples(data_dir).take(count)
    fit_both = _fitting(source, input_shape, vocabulary)
    with tf.device("CPU:0"):
        if few.element_spec[0].shape.is_fully_defined() and not source.encoded:
            x, y = fit_both(*next(iter(few.batch(count))))
            return x.numpy(), y.numpy()
        pairs = [fit_both(*pair) for pair in few]
    return np.stack([x.numpy() for x, _ in pairs]), np.stack([y.numpy() for _, y in pairs])
