"""Known buffers through collectives: what is right passes, and each planted fault is found at every size."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from harness.spec.collective import COLLECTIVES, CollectiveCell, CollectiveName
from harness.trial.collectives import WARM_CALLS, WARM_S, KnownBuffers, fill, judged, untimed_calls
from harness.trial.sums import MOST_ELEMENTS

SIZES = (24, 24 * 2**10)
COUNTS = (2, 3, 4, 12)


def known(collective: CollectiveName, n: int = 3, size: int = SIZES[0]) -> KnownBuffers:
    """The buffers of a cell."""
    return KnownBuffers.of(
        CollectiveCell(collective=collective, size=size * n, strategy="mirrored", replicas=n, device="virtual-cpu")
    )


def right(of: KnownBuffers) -> list[np.ndarray[Any, Any]]:
    """What each replica receives of a collective that is right."""
    sent = of.sent()
    added = sum(sent[1:], sent[0])
    if of.collective == "reduce_scatter":
        return np.split(added, len(sent))
    whole = {"all_reduce": added, "all_gather": np.concatenate(sent), "broadcast": sent[0]}
    return [whole[of.collective].copy() for _ in sent]


def changed(of: KnownBuffers, change: Callable[[np.ndarray[Any, Any]], Any]) -> str | None:
    """What is said where the last replica received something else."""
    received = right(of)
    received[-1] = np.asarray(change(received[-1]), np.float32)
    return of.judge(received)


every = pytest.mark.parametrize("collective", COLLECTIVES)


@every
@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("size", SIZES)
def test_what_is_right_passes_and_so_do_the_other_buffers(collective: CollectiveName, n: int, size: int) -> None:
    of = known(collective, n, size)
    assert of.judge(right(of)) is None
    assert of.others().judge(right(of.others())) is None


@every
@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_a_narrower_type_on_the_way_is_found_in_the_smallest_buffer(
    collective: CollectiveName, n: int, narrow: Any
) -> None:
    of = known(collective, n, 4)
    assert of.judge([copy.astype(narrow).astype(np.float32) for copy in right(of)]) is not None


@every
def test_one_wrong_element_of_one_replica_is_found(collective: CollectiveName) -> None:
    of = known(collective)
    assert "replica 2" in (changed(of, lambda copy: np.concatenate([copy[:-1], copy[-1:] + 1])) or "")


@every
def test_a_result_that_was_kept_from_other_buffers_is_wrong_in_every_element(collective: CollectiveName) -> None:
    of = known(collective)
    assert of.others().judge(right(of)) is not None
    assert not (np.concatenate(right(of)) == np.concatenate(right(of.others()))).any()


@every
def test_a_result_of_another_shape_is_wrong(collective: CollectiveName) -> None:
    of = known(collective)
    assert changed(of, lambda copy: copy[:-1]) is not None


def test_a_sum_without_the_last_replica_names_it() -> None:
    of = known("all_reduce")
    assert "the value of replica 2 is missing" in (of.judge([of.sent()[0] + of.sent()[1]] * 3) or "")


def test_a_process_makes_what_its_own_replicas_send_and_no_more() -> None:
    of = known("all_reduce", 4)
    filled: list[Any] = []
    fill(SimpleNamespace(first=1, cell=SimpleNamespace(replicas=2), fill=filled.extend), of)  # type: ignore[arg-type]
    assert np.array_equal(filled, of.sent()[1:3])
    assert len(of.sent(1, 2)) == 2


def test_shares_that_are_gathered_in_another_order_are_wrong() -> None:
    of = known("all_gather")
    found = of.judge([np.concatenate(of.sent()[::-1])] * 3)
    assert found is not None
    assert found.startswith("of what replica 0 received, 12 of 18 elements differ; the first, number 0 from 0, is")


def test_a_broadcast_from_another_replica_is_wrong() -> None:
    of = known("broadcast")
    assert of.judge([of.sent()[1]] * 3) is not None


def test_no_buffer_is_cut_however_large() -> None:
    of = known("broadcast", 2, 2 * MOST_ELEMENTS + 4)
    assert of.pattern.size == MOST_ELEMENTS + 2


@every
def test_what_one_process_of_several_received_is_judged_by_its_own_replicas_numbers(collective: CollectiveName) -> None:
    of = known(collective)
    theirs = right(of)[1:]
    assert of.judge(theirs, first=1) is None
    theirs[-1] = np.append(theirs[-1][:-1], theirs[-1][-1:] + 1)
    assert "replica 2" in (of.judge(theirs, first=1) or "")


def test_shares_that_went_to_other_replicas_are_wrong() -> None:
    of = known("reduce_scatter")
    first, second, third = right(of)
    found = of.judge([first, third, second])
    assert found is not None
    assert "as replica 1 received it" in found


def test_a_replica_that_received_nothing_is_missed() -> None:
    nothing: Any = SimpleNamespace(cell=SimpleNamespace(replicas=3), first=0, arrays=lambda received: received)
    assert judged(nothing, known("all_reduce"), []) == "0 replicas received something, expected 3"


def test_a_few_calls_between_workers_are_not_timed_fewer_of_long_ones_and_none_within_a_process() -> None:
    alone = CollectiveCell(collective="all_reduce", size=4, strategy="mirrored", replicas=2, device="virtual-cpu")
    between = alone.model_copy(update={"strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1})
    taken = {seconds: untimed_calls(between, seconds) for seconds in (0.0, 1e-4, 0.02, 0.15, 0.4, 0.6, 5.4)}
    assert taken == {0.0: 0, 1e-4: WARM_CALLS, 0.02: WARM_CALLS, 0.15: 3, 0.4: 1, 0.6: 0, 5.4: 0}
    assert all(seconds * calls <= WARM_S for seconds, calls in taken.items())
    assert untimed_calls(alone, 1e-4) == 0
