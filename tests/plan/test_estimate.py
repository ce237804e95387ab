"""How long a sweep will take, roughly."""

import pytest

from harness.plan import estimate
from harness.plan.estimate import IMPORT_S
from harness.spec import Sweep
from tests.record.examples import cell


def test_every_trial_of_every_cell_is_paid_for() -> None:
    one = estimate(Sweep(trials=1), [cell()])
    many = estimate(Sweep(trials=3), [cell(), cell(replicas=3)])
    assert (one.trials, many.trials) == (1, 6)
    assert many.seconds - IMPORT_S > 5 * (one.seconds - IMPORT_S)


def test_windows_and_replicas_cost_time() -> None:
    short = estimate(Sweep(windows=5, window=0.1), [cell()]).seconds
    assert estimate(Sweep(windows=50, window=0.1), [cell()]).seconds > short + 10 * 4.5 * 0.1
    assert estimate(Sweep(windows=5, window=1.1), [cell()]).seconds > short + 5 * 1.0
    assert estimate(Sweep(windows=5, window=0.1), [cell(replicas=8)]).seconds > short


def test_where_trials_import_tensorflow_each_of_them_is_paid_for() -> None:
    sweep, cells = Sweep(trials=3), [cell(), cell(replicas=3)]
    once, each = (estimate(sweep, cells, in_trials).seconds for in_trials in (False, True))
    assert each - once == pytest.approx(5 * IMPORT_S)


def test_a_sweep_without_cells_costs_the_import() -> None:
    assert estimate(Sweep(), []).seconds == IMPORT_S


def test_a_larger_model_costs_more_to_build_and_to_prove_whatever_its_sizes() -> None:
    small, large, sized = (
        estimate(Sweep(trials=1), [cell(model=model)]).seconds
        for model in ("mnist_cnn", "transformer", "transformer(layers=3)")
    )
    assert small < large == sized
