"""What feeds a model: the pipeline of its training without a strategy, its examples and the order that they have."""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from harness.engines.tensorflow.data import DataInfo, Source
from harness.engines.tensorflow.data.own_batches import OwnBatches
from harness.engines.tensorflow.data.pipeline import (
    CACHE_BYTES,
    ahead_on_device,
    batches_ahead,
    bytes_each,
    endless_examples,
    options_of,
    order_of_examples,
    pipeline,
    plain_pass,
    read_from,
)
from harness.engines.tensorflow.data.stages import stages_of
from harness.engines.tensorflow.data_for_model import as_given, taken_by, workload_for
from harness.engines.tensorflow.devices import Devices, device_kinds
from harness.engines.tensorflow.sharded import source_of
from harness.engines.tensorflow.structures import Shapes, parts_of
from harness.engines.tensorflow.workloads import Vocabulary
from harness.errors import Unprovable, Unsupported
from harness.protocol.messages import Request
from harness.spec.axes import NO_MODEL
from harness.spec.pipeline import PipelineCell
from harness.spec.work import Cell
from harness.trial.array_cache import cached_arrays
from harness.trial.passes import KnownPass, digest_of, digests_of
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.protocol.state import Array

PASS_S = 1.0
"""Seconds of a pass that an instrument may take: so long it waits for a cache to be filled, and longer no window is."""
MOST_EXAMPLES = 100_000
"""Of a pass that is followed; and it has at most `CACHE_BYTES`."""
READ_AT_ONCE = 32
_SHUFFLE = re.compile(r"Shuffle\((\d+)\)")


@dataclass
class Feed:
    """What feeds a model, as its training without a strategy builds it."""

    request: Request
    cell: PipelineCell
    devices: Devices
    source: Source
    info: DataInfo
    input_shape: Shapes
    classes: int
    vocabulary: Vocabulary | None
    stages: list[str] = field(default_factory=list)
    """Of the pipeline, once it was built."""
    _cut_off: "tf.data.Dataset | None" = None

    def dataset(self) -> "tf.data.Dataset":
        """Endless batches, each on the device before it is asked for. Of a pipeline that is cut, of each so many
        examples the last: all are made, and none is copied into a batch, whose cost comes after the cut."""
        size = self.cell.batch_size
        if self.cell.cut:
            return self.examples().shard(size, size - 1)
        made = pipeline(
            self.source,
            self._data_dir,
            self.input_shape,
            self.classes,
            size,
            self.request.seed,
            cell=self.cell.axes,
            vocabulary=self.vocabulary,
            scratch=self.request.scratch,
        )
        handed_over = ahead_on_device(made, self.devices.names[0], self.cell.axes.device_prefetch)
        self.stages[:] = stages_of(handed_over)
        return handed_over

    def examples(self) -> "tf.data.Dataset":
        """What comes out where the pipeline is cut, one by one and without end."""
        if self._cut_off is None:
            made = endless_examples(
                self.source,
                self._data_dir,
                self.input_shape,
                self.classes,
                self.request.seed,
                (0, 1),
                self.cell.axes,
                self.vocabulary,
                self.request.scratch,
                self.cell.cut,
            )
            self.stages[:] = stages_of(made)
            self._cut_off = made.with_options(options_of(self.info))
        return self._cut_off

    @property
    def ahead(self) -> int:
        """Batches that may wait before a step asks for one."""
        return batches_ahead(self.source, self.cell.axes, self.input_shape, self.stages, self.cell.batch_size)

    @cached_property
    def like(self) -> "dict[str, Array]":
        """An example of zeros, of the shapes and types that a training reads. Asked once: each batch is held against
        it, and TensorFlow traces a pipeline to tell."""
        import numpy as np

        specs = parts_of(self._plain().element_spec)
        shapes = {name: tuple(spec.shape) for name, spec in specs.items()}
        if not isinstance(self.input_shape, Mapping):  # which says more than the spec of pictures that differ in size
            shapes["inputs"] = self.input_shape
        return {name: np.zeros(shapes[name], spec.dtype.as_numpy_dtype) for name, spec in specs.items()}

    def least_steps(self, in_pass: int | None) -> int:
        """Where a pass, of so many examples, has to end before the next is begun, so that all of it is shuffled at its
        beginning, or because a tf.data service is asked for each, a window has one at least."""
        if in_pass is None or (self.info.examples is not None and not self.cell.data_service):
            return 1
        return math.ceil(in_pass / self.cell.batch_size)

    @property
    def in_cache(self) -> int:
        """Examples that are to be drawn until each comes from a cache; none without one."""
        cached = any(stage.startswith("Cache") for stage in self.stages)
        return (self.info.examples or 0) if cached else 0

    def counted(self) -> int:
        """Examples of a pass: of data that do not tell they are read. Unsupported where that takes longer than
        `PASS_S`, since windows would be as long."""
        if self.info.examples is not None:
            return self.info.examples
        if isinstance(self.source, OwnBatches):
            made = self.source.batches(self.cell.batch_size)
        else:
            made = self._plain().batch(READ_AT_ONCE)
        count, until = 0, time.monotonic() + PASS_S
        for found in made.as_numpy_iterator():
            count += len(next(iter(parts_of(found).values())))
            if time.monotonic() > until:
                raise Unsupported(
                    f"'{self.source.name}' does not say how many examples it has, so a window would be a whole pass, "
                    f"which takes more than {PASS_S:g} s: sweep --work pipeline measures it"
                )
        return count

    def order(self, count: int) -> list[int]:
        """The numbers of the first pass's examples as they are read, in the order in which the seed has them, or the
        source."""
        if self.cell.cut not in ("", "shuffle") or isinstance(self.source, OwnBatches):
            return list(range(count))
        buffer = next(int(found[1]) for stage in self.stages if (found := _SHUFFLE.fullmatch(stage)))
        numbers = order_of_examples(self.info, count, buffer, self.request.seed).take(count).batch(count)
        return [int(number) for number in next(iter(numbers)).numpy()]

    def known(self) -> KnownPass:
        """The examples of a pass, read from the source; Unprovable where they are too many, or others each time.

        A registered source has the same ones each time, and is read once a sweep.
        """
        import numpy as np

        if self.info.examples is not None:
            self._must_not_be_more_than(self.info.examples)
        if isinstance(self.source, OwnBatches):
            return self._known_of_batches(self.source)
        if self.source.gives == "own":
            first, second = self._read(), self._read()
            return KnownPass.of_two(self.source.name, first, second)
        raw = self.cell.cut == "source"
        stored = self.cell.data_files if raw else None
        fitted = (self.input_shape, self.vocabulary, self.source.pixels)
        key = repr((self.cell.data, stored, self.request.data_dir, *fitted, raw)).encode()
        arrays = cached_arrays(
            self.request.scratch,
            "pass",
            key,
            lambda: {"digests": np.array(self._read(), np.uint64)},
            self.request.others_limit_s,
        )
        return KnownPass(arrays["digests"].tolist())

    def _known_of_batches(self, source: OwnBatches) -> KnownPass:
        """The examples of the batches that the user's own function makes: the same in a second pass, and in the order
        that its first pass has each time."""
        made = source.batches(self.cell.batch_size)
        first, second = self._digests(made), self._digests(made)
        again = self._digests(source.batches(self.cell.batch_size))
        known = KnownPass.of_two(source.name, first, second)
        return replace(known, order_unknown=KnownPass.of_two(source.name, first, again).order_unknown)

    def side_by_side(self) -> KnownPass:
        """The examples of a pass in the order in which files that are read side by side give them."""
        return KnownPass(self._read(self.cell.interleave))

    def _read(self, files: int = 0) -> list[int]:
        at_once = 1 if self.cell.cut == "source" else READ_AT_ONCE  # pictures may differ in size
        return self._digests(self._plain(files).batch(at_once))

    def _digests(self, batches: "tf.data.Dataset") -> list[int]:
        digests: list[int] = []
        raw = self.cell.cut == "source"
        for found in batches.as_numpy_iterator():
            parts = parts_of(found).values()
            digests += [digest_of([part[0] for part in parts])] if raw else digests_of(*parts)
            self._must_not_be_more_than(len(digests))
            sign_of_life()
        return digests

    def _must_not_be_more_than(self, examples: int) -> None:
        if examples > self._most:
            raise Unprovable(
                f"a pass of '{self.source.name}' is longer than the {self._most:,} examples that are followed"
            )

    @cached_property
    def _most(self) -> int:
        """Examples of a pass that is followed. Asked once: TensorFlow traces a pipeline to tell how large they are."""
        known = plain_pass(self.source, self._data_dir, self.input_shape, self.vocabulary)
        return min(MOST_EXAMPLES, CACHE_BYTES // bytes_each(known))

    def _plain(self, files: int = 0) -> "tf.data.Dataset":
        """What a pass should have, where the pipeline is cut if it is: of examples that were written into files those
        of their source, so that what was lost or changed in writing shows."""
        if self.cell.cut == "source":
            return read_from(self.source, self._data_dir, self.input_shape, files)
        source = self.source if files else self.source.origin
        return plain_pass(source, self._data_dir, self.input_shape, self.vocabulary, files)

    @property
    def _data_dir(self) -> Path:
        return Path(self.request.data_dir)


def feed_of(request: Request) -> Feed:
    """The feed of the cell of `request`; raises Unsupported or HarnessError with the reason."""
    cell = pipeline_of(request.cell)
    devices = device_kinds()[cell.device].set_up(request)
    source = source_of(cell, Path(request.data_dir))
    if cell.model == NO_MODEL:
        info = source.info(Path(request.data_dir))
        return Feed(request, cell, devices, source, info, as_given(source, info), 0, None)
    workload, info = workload_for(cell.model, source, Path(request.data_dir))
    model = workload.build(workload.input_shape or (), info.outputs)
    if workload.input_shape is None:
        source = source.for_model(model)
    return Feed(request, cell, devices, source, info, *taken_by(model, workload, source, info))


def pipeline_of(cell: Cell) -> PipelineCell:
    """The cell as that of a pipeline; TypeError for other work."""
    if isinstance(cell, PipelineCell):
        return cell
    raise TypeError(f"cell {cell.cell_id} ({cell.label}) is no input pipeline")
