"""Shares of a global batch that compute one after the other and meet where replicas exchange something.

Replicas exchange more than gradients: synchronised batch normalisation adds up its sums forward and their gradients
backward, a layer may all-reduce what it likes, and an untrained variable may be declared to take the mean of what the
replicas assign. So each share has a thread, of which one runs at a time, and a replica context of the reference's own,
whose all-reduce waits until every share has come to it. There is no tf.distribute strategy in it: MirroredStrategy's
threads take turns in the same way, and what one replica's layers had added to the loss before they waited is lost.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from harness.engines.tensorflow.reference.replica_context import Combine, averaged, replica_context, summed
from harness.errors import Unprovable

if TYPE_CHECKING:
    from harness.protocol.state import Array


class _GivenUp(BaseException):
    """Ends the thread of a share whose result nobody waits for any more."""


class _Share(threading.Thread):
    """One share's computation; it runs only while `go_on` has not returned."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._compute = compute
        self._turn, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._got: Any = None
        self._given_up = False
        self.brought: tuple[Any, Combine] | None = None
        self.result: Any = None
        self.error: Exception | None = None
        self.start()

    def go_on(self, got: Any) -> None:
        """Let it run, with what it got of the last meeting, until it comes to the next or to its end."""
        self._got, self.brought = got, None
        self._turn.release()
        self._stopped.acquire()
        if self.error is not None:
            raise self.error

    def give_up(self) -> None:
        """Let the thread end."""
        self._given_up = True
        self._turn.release()
        self.join()

    def run(self) -> None:
        with contextlib.suppress(_GivenUp):
            self._wait()
            try:
                self.result = self._compute()
            except Exception as error:  # noqa: BLE001  it is raised where the share was told to go on
                self.error = error
            self._stopped.release()

    def meet(self, value: Any, combine: Combine) -> Any:
        """What `combine` makes of the values of all shares."""
        self.brought = (value, combine)
        self._stopped.release()
        self._wait()
        return self._got

    def _wait(self) -> None:
        self._turn.acquire()
        if self._given_up:
            raise _GivenUp


class Lockstep:
    """Runs the shares of a model whose untrained `variables` are each share's own, and, within a run, those that
    `passing` gives."""

    def __init__(self, variables: Sequence[Any], passing: Callable[[], Sequence[Any]] = tuple) -> None:
        self._variables = self._of_share = variables
        self._passing = passing
        self._running: _Share | None = None
        self._met: list[Any] = []
        """What each meeting of the last run gave."""
        self._given: Iterator[Any] | None = None
        """That, where a share runs again."""
        self.traced_apart = False
        """Whether a share was being traced when it came to what one program cannot do for all."""
        self.refused = ""
        """Why a share cannot do what its replica does: Keras raises something of its own for what a layer raised."""

    def run(
        self, compute: Callable[[int], Any], own: "Sequence[list[Array]]", layers: Sequence[Any] = ()
    ) -> "list[tuple[Any, list[Array]]]":
        """Of each share what `compute(i)` returns and the untrained variables afterwards, which start as `own[i]`.

        What its Keras `layers` add to the loss is each share's own, too. Raises Unprovable where the shares do not all
        come to the same meetings.
        """
        if len(own) == 1:
            self._put(own[0])
            return [(compute(0), self._state())]
        self._met = []
        passing = self._passing()
        self._of_share = [*self._variables, *passing]
        begun = [variable.numpy() for variable in passing]
        shares = [_Share(self._as_replica(compute, i, len(own))) for i in range(len(own))]
        try:
            states = self._in_turns(shares, [[*values, *begun] for values in own], layers)
        finally:
            self._running, self._of_share = None, self._variables
            for share in shares:
                share.give_up()
        kept = len(self._variables)
        return [(share.result, state[:kept]) for share, state in zip(shares, states, strict=True)]

    def _in_turns(
        self, shares: list[_Share], states: "list[list[Array]]", layers: Sequence[Any]
    ) -> "list[list[Array]]":
        got: Any = None
        added = [_added(layers) for _ in shares]
        while True:
            for i, share in enumerate(shares):
                self._put(states[i])
                _add(layers, added[i])
                self._running = share
                share.go_on(got)
                states[i], added[i] = self._state(), _added(layers)
            met = [share.brought for share in shares if share.brought]
            if not met:
                return states
            if len(met) < len(shares):
                raise Unprovable("not every share of the batch exchanges the same things with the others")
            got = met[0][1]([value for value, _ in met])
            self._met.append(got)

    def again(self, compute: Callable[[int], Any], index: int, own: "Sequence[list[Array]]") -> Any:
        """What `compute(index)` returns where a share runs again by itself, given what it got when all ran. It may be
        traced: its program has that in it."""
        self._put(own[index])
        self._given = iter(self._met)
        try:
            return self._as_replica(compute, index, len(own))()
        finally:
            self._given = None

    def meet(self, value: Any, combine: Combine) -> Any:
        """In the thread of a share: what `combine` makes of the values of all."""
        if self._given is not None:
            return next(self._given)
        if self._running is None:
            return combine([value])
        self.not_traced("what the shares of a batch exchange cannot be compiled with each of them")
        return self._running.meet(value, combine)

    def not_traced(self, why: str) -> None:
        """Raises Unprovable where a share is being traced: its program is to be that of the others too."""
        import tensorflow as tf

        if tf.inside_function() and self._given is None:
            self.traced_apart = True
            raise Unprovable(why)

    def refuse(self, why: str) -> NoReturn:
        """In the thread of a share: raises Unprovable, and `refused` is the reason."""
        self.refused = why
        raise Unprovable(why)

    def _put(self, values: "Sequence[Array]") -> None:
        for variable, value in zip(self._of_share, values, strict=True):
            variable.value.assign(value)

    def _state(self) -> "list[Array]":
        return [variable.numpy() for variable in self._of_share]

    def _as_replica(self, compute: Callable[[int], Any], index: int, count: int) -> Callable[[], Any]:
        """`compute(index)` on the caller's device, as one of `count` replicas."""
        import tensorflow as tf

        device = tf.zeros(()).device
        context = replica_context(self, index, count)

        def run() -> Any:
            with tf.device(device), context:
                return compute(index)

        return run

    @contextlib.contextmanager
    def aggregated(self) -> Iterator[None]:
        """While entered, what is assigned to a variable is aggregated over the shares as it was declared."""
        combines = {"mean": averaged, "sum": summed, "only_first_replica": lambda values: values[0]}
        changed = [v for v in self._variables if v.aggregation in combines and v.synchronization != "on_read"]
        for variable in changed:
            variable._direct_assign = self._assigning(variable, combines[variable.aggregation])
        try:
            yield
        finally:
            for variable in changed:
                del variable._direct_assign

    def _assigning(self, variable: Any, combine: Combine) -> Callable[[Any], None]:
        import tensorflow as tf

        def assign(value: Any) -> None:
            stored = variable._value  # what `value` gives inside a layer may be a copy of lower precision
            stored.assign(self.meet(tf.cast(value, stored.dtype), combine))

        return assign


def _added(layers: Sequence[Any]) -> list[tuple[list[Any], set[int]]]:
    """What each layer has added to the loss, which Keras keeps in Python, where every call of the model clears it."""
    return [([*layer._losses], {*layer._loss_ids}) for layer in layers]


def _add(layers: Sequence[Any], added: list[tuple[list[Any], set[int]]]) -> None:
    """The same, set."""
    for layer, (losses, ids) in zip(layers, added, strict=True):
        layer._losses[:] = losses
        layer._loss_ids.clear()
        layer._loss_ids.update(ids)
