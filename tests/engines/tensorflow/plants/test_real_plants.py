"""Trials with something planted, in processes of their own: the gate passes, and the step is slower."""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record.trial import Plant, TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.process.zygote import Zygote
from harness.run.request import request_for
from harness.run.turns.live import Ended, LiveTrial, Slot
from harness.spec import Cell, Sweep, expand
from harness.trial.engines import catalogue_of

pytestmark = pytest.mark.slow
Ran = Callable[[str | None], TrialRecord]


@pytest.fixture(scope="module")
def ran(shared_zygote: Zygote) -> Ran:
    """The record of a trial with a plant of a kind, or with none: it is run once, however many look at it."""

    @functools.cache
    def record(kind: str | None) -> TrialRecord:
        return trial_of(shared_zygote, kind and Plant(kind=kind, share=0.5))

    return record


def trial_of(shared_zygote: Zygote, plant: Plant | None, **keys: object) -> TrialRecord:
    """A trial of a few windows of the one cell that `keys` name."""
    values = {"strategy": "mirrored", "replicas": 2, "model": "mlp", "data": "synthetic", "batch_size": 256}
    values |= {"optimizer": "sgd"} | keys
    sweep = Sweep(window=0.02, **{key: [value] for key, value in values.items()})  # type: ignore[arg-type]
    matrix = expand(sweep, catalogue_of())
    cell: Cell = next(cell for cell in matrix.cells if cell.cell_id not in matrix.added_base)
    request = request_for(cell, sweep, Path(), plant)
    trial = LiveTrial(cell, Slot("planted", 0, "b0", 0, 1, "none"), shared_zygote, request, 120.0, Interrupts())
    trial.start()
    with contextlib.suppress(Ended):
        trial.set_up()
        for number in range(3):
            trial.take_turn(number)
        trial.measure_from(0)
        trial.finish()
    return trial.record()


@pytest.mark.parametrize("kind", ["device_work", "input_stall", "slow_replica"])
def test_the_gate_passes_with_it_and_the_record_says_what_was_planted(ran: Ran, kind: str) -> None:
    record = ran(kind)
    assert record.status == "ok", record.reason
    assert record.plant == Plant(kind=kind, share=0.5)
    assert record.checks.complete
    assert record.checks.updates_applied == record.checks.updates_scheduled
    assert record.executed.packs == 1
    assert record.executed.fingerprint


def test_on_processors_the_program_is_the_one_without_it(ran: Ran) -> None:
    planted = {ran(kind).executed.fingerprint for kind in ("device_work", "input_stall")}
    assert planted == {ran(None).executed.fingerprint}


@pytest.mark.parametrize(
    ("kind", "keys", "says"),
    [
        ("device_work", {"loop": "fit"}, "can be planted in the custom loop only, and this is loop 'fit'"),
        ("slow_replica", {"strategy": "one_device", "replicas": 1}, "makes others wait, and this cell has one replica"),
    ],
)
def test_where_it_cannot_be_planted_the_trial_is_unsupported_and_says_why(
    shared_zygote: Zygote, kind: str, keys: dict[str, object], says: str
) -> None:
    record = trial_of(shared_zygote, Plant(kind=kind, share=0.0001), **keys)
    assert record.status == "unsupported"
    assert says in (record.reason or "")
