"""A trial of an input pipeline by itself: the one that a training without a strategy reads, proved and timed.

A step draws one batch, to where the training's step would find it. Before the first window a whole pass is followed,
example by example: it is held against the source's examples, read once more by one plain map, and, where the order is
to repeat itself, against the order in which the same shuffling draws their numbers. A pass after the last window is
followed, too: an example that a timed step lost or doubled would have moved where passes begin.

As an instrument of `explain` it is no answer but a part of one: no pass is followed.
"""

import gc
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.feed import PASS_S, Feed, feed_of, pipeline_of
from harness.engines.tensorflow.memory import forget_peak, peak_device_memory_bytes
from harness.engines.tensorflow.plants import check_loop
from harness.engines.tensorflow.structures import Batch, parts_of
from harness.engines.tensorflow.trace import tracer_of
from harness.errors import Unprovable
from harness.record.trial import Executed
from harness.trial.attempt import Attempt
from harness.trial.clock import Clock
from harness.trial.passes import KnownPass, digest_of, digests_of, judge_batch
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    from harness.protocol.state import Array


class PipelineTrial(Attempt):
    """A trial of a `PipelineCell`."""

    def _measure(self) -> None:
        check_loop(self._request.plant, None)
        part = pipeline_of(self._request.cell).cut or self._request.instrument
        self._checks.gate = "instrument" if part else "pipeline"
        self._enter("build")
        feed = feed_of(self._request)
        self._outcome.resources = feed.devices.resources(self._request)
        with feed.source.reading():
            self._prove_and_time(feed)

    def _prove_and_time(self, feed: Feed) -> None:
        names = feed.devices.names
        self._enter("first_step")
        batches = Batches(feed)
        first = [] if feed.cell.cut else self._looked_at(feed, batches.next_arrays())
        self._enter("check")
        known = None if self._request.instrument else self._known(feed)
        in_pass = None if known is None else len(known.digests)
        if self._request.instrument:
            in_pass = feed.counted()
            batches.draw_pass(feed.in_cache)
        if known is not None:
            self._follow_first(feed, known, batches, first)
        self._outcome.executed = Executed(input=feed.stages)
        gc.enable()
        forget_peak(names)
        self._enter("warmup")
        tracer = tracer_of(self._request, leads=True)
        clock = Clock(
            self._channel,
            batches.synchronise,
            self._request.window_s,
            0,
            lambda _: None,
            least_steps=feed.least_steps(in_pass),
            tracer=tracer,
            ahead=lambda: feed.ahead,
            waits=True,
        )
        while steps := clock.begin():
            batches.draw(steps)
            clock.end(0.0)  # there is no loss
        self._outcome.trace = tracer.record if tracer else None
        self._enter("check")
        self._outcome.peak_device_memory_bytes = peak_device_memory_bytes(names)
        if known is not None and not feed.cell.cut:
            self._follow_last(known, batches)

    def _known(self, feed: Feed) -> KnownPass | None:
        """The source's examples; None where they cannot be known, which is written down."""
        try:
            return feed.known()
        except Unprovable as error:
            self._checks.detail |= dict.fromkeys(("examples", "late"), str(error))
            if feed.cell.deterministic:
                self._checks.detail["order"] = str(error)
            return None

    def _follow_first(self, feed: Feed, known: KnownPass, batches: "Batches", digests: list[int]) -> None:
        """Judge the first pass, of which the first batch has `digests`. Of a pipeline that is cut no step is taken
        before: another reader of the same examples has another order."""
        count = len(known.digests)
        if feed.cell.cut:
            digests = self._examples_of(feed, count)
        while len(digests) < count:
            digests += self._looked_at(feed, batches.next_arrays())
        digests = digests[:count]
        self._judge("examples", known.judge(digests))
        if feed.cell.deterministic and known.order_unknown:
            self._checks.detail["order"] = known.order_unknown
        elif feed.cell.deterministic:
            ordered = feed.side_by_side() if feed.cell.interleave > 1 else known
            self._judge("order", ordered.judge_order(digests, feed.order(count)))

    def _examples_of(self, feed: Feed, count: int) -> list[int]:
        """Those of a pass of a pipeline that is cut, of whose timed steps only the last example is seen."""
        digests = []
        for example in feed.examples().take(count).as_numpy_iterator():
            digests.append(digest_of(parts_of(example).values()))
            sign_of_life()
        return digests

    def _looked_at(self, feed: Feed, batch: "dict[str, Array]") -> list[int]:
        self._judge("batches", judge_batch(batch, feed.like, feed.cell.batch_size))
        return digests_of(*batch.values())

    def _follow_last(self, known: KnownPass, batches: "Batches") -> None:
        """Judge the next whole pass, from where it begins if every step before had each example in its place."""
        count = len(known.digests)
        left_of_pass = -batches.examples % count
        digests: list[int] = []
        while len(digests) < left_of_pass + count:
            digests += digests_of(*batches.next_arrays().values())
        self._judge("late", known.judge(digests[left_of_pass : left_of_pass + count]))


class Batches:
    """The pipeline's batches, one after the other."""

    def __init__(self, feed: Feed) -> None:
        self._dataset = feed.dataset()
        self._batches: Iterator[tuple[Any, Any]] | None = None
        self._size = feed.cell.batch_size
        self._accelerated = any("CPU" not in name for name in feed.devices.names)
        self._last: Batch | None = None
        self._drawn = 0

    @property
    def examples(self) -> int:
        """Drawn so far."""
        return self._drawn * self._size

    def draw(self, count: int) -> None:
        """So many batches, of which the last is kept. Each is a sign of life: a window may be a pass."""
        batches = self._batches = self._batches or iter(self._dataset)
        for _ in range(count):
            self._last = next(batches)
            sign_of_life()
        self._drawn += count

    def draw_pass(self, examples: int) -> None:
        """Batches of so many examples, or as many as there are within `PASS_S`."""
        until = time.monotonic() + PASS_S
        while self.examples < examples and time.monotonic() < until:
            self.draw(1)

    def next_arrays(self) -> "dict[str, Array]":
        """The parts of the next batch, on the host."""
        self.draw(1)
        assert self._last is not None
        return {name: part.numpy() for name, part in parts_of(self._last).items()}

    def synchronise(self) -> None:
        """Return once the last batch lies on its device."""
        import tensorflow as tf

        if self._accelerated:
            tf.test.experimental.sync_devices()
        if self._last is not None:
            for part in tf.nest.flatten(self._last):
                tf.reshape(part, [-1])[0].numpy()
