"""What a turn costs is worked out of which windows followed a trial's own, and of nothing else."""

import math

import numpy as np
import pytest
from scipy import stats

from harness.analysis import summarise
from harness.analysis.validation.turns import turn_costs
from harness.record.trial import Plant, TrialRecord
from harness.report.words.exactness import ranking_note
from tests.comparisons import MIRRORED
from tests.synthetic import make_run

WINDOWS = 40


def trials(longer: float, count: int = 12, after: bool = True, seed: int = 7) -> list[TrialRecord]:
    """Trials whose windows drift, and take `longer` after another trial's."""
    _, [template] = make_run([MIRRORED], blocks=1, faults=False, windows=WINDOWS)
    assert template.windows is not None
    random, found = np.random.default_rng(seed), []
    for _ in range(count):
        own = sorted(random.choice(np.arange(1, WINDOWS), WINDOWS // 3, replace=False).tolist())
        logs = random.normal(0, 0.005, WINDOWS) + random.normal(0, 0.1) + np.linspace(0, 0.05, WINDOWS)
        logs[[index for index in range(WINDOWS) if index not in own]] += math.log1p(longer)
        changes = {
            "seconds": np.exp(logs).tolist(),
            "cpu_seconds": [0.1] * WINDOWS,
            "rounds": [*range(WINDOWS)],
            "measured_from": 2,
            "after_own": own if after else [],
        }
        found.append(template.model_copy(update={"windows": template.windows.model_copy(update=changes)}))
    return found


@pytest.mark.parametrize("longer", [0.03, 0.0, -0.02])
def test_the_cost_is_what_windows_after_anothers_take_longer(longer: float) -> None:
    [cost] = turn_costs(trials(longer))
    assert cost.cell == MIRRORED
    assert cost.trials == 12
    assert cost.low < longer < cost.high
    assert cost.high - cost.low < 0.02


def test_where_turns_cost_nothing_one_is_told_once_in_forty_times_and_by_intervals_a_fifth_shorter_more_often() -> None:
    costs = [cost for seed in range(800) for cost in turn_costs(trials(0.0, count=3, seed=seed))]
    told, by_shorter = (sum(cost.longer > times * (cost.longer - cost.low) for cost in costs) for times in (1, 0.8))
    assert told <= stats.binom.ppf(0.99, len(costs), 0.025) < by_shorter


def test_trials_that_do_not_say_what_a_window_followed_or_have_something_planted_tell_nothing() -> None:
    slow = [trial.model_copy(update={"plant": Plant(kind="input_stall", share=0.1)}) for trial in trials(0.03, count=4)]
    assert turn_costs(trials(0.03, after=False)) == []
    assert turn_costs(slow) == []
    assert turn_costs(trials(0.03, count=1)) == []


@pytest.mark.parametrize("longer", [0.03, -0.02])
def test_the_cost_over_all_trials_of_a_run_is_in_its_summary_and_beside_its_throughputs(longer: float) -> None:
    manifest, _ = make_run([MIRRORED], faults=False)
    for after in (True, False):
        summary = summarise(manifest, trials(longer, after=after))
        note = ranking_note(summary.workloads[0], summary.noise)
        if not after:
            assert summary.noise.turn is None
            assert "costs a throughput this run does not tell: too few windows came after one of the same trial" in note
            continue
        found = summary.noise.turn
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low < 1 + longer < found.high
        cost, unknown = "Taking turns costs a throughput, and no ratio", "costs a throughput this run does not tell"
        assert ((cost in note), (unknown in note)) == ((True, False) if longer > 0 else (False, True))
        assert "a window after another trial's took " in note
