"""How a decision is reached: what settings make sense, and when it is looked at."""

import math

import pytest
from pydantic import ValidationError

from harness.analysis.estimates.verdict import Margins
from harness.errors import UsageError
from harness.looks import looks_within
from harness.record.manifest import PlanRecord
from harness.run.kinds.decision import AbSettings, most_blocks
from harness.run.turns.steps import COST_S
from tests.comparisons import validation


@pytest.mark.parametrize(
    ("changes", "says_"),
    [
        ({"looks": (1,)}, "looks: given 1, expected rising numbers of blocks"),
        ({"looks": (8, 5)}, "looks: given 8,5, expected rising"),
        ({"looks": (5, 5)}, "looks: given 5,5, expected rising"),
        ({"looks": ()}, "looks: given , expected rising"),
        ({"time_s": math.nan}, "time: given nan"),
        ({"time_s": math.inf}, "time: given inf"),
        ({"time_s": 0}, "time: given 0"),
    ],
)
def test_settings_that_no_plan_can_follow_are_bad_usage(changes: dict[str, float], says_: str) -> None:
    with pytest.raises(UsageError) as caught:
        AbSettings(Margins(), **changes)  # type: ignore[arg-type]
    assert says_ in str(caught.value)


@pytest.mark.parametrize(
    ("most", "after"),
    [(12, (5, 8, 12)), (18, (5, 8, 12, 18)), (24, (5, 7, 11, 16, 24)), (8, (5, 8)), (6, (6,)), (2, (2,))],
)
def test_looks_come_at_half_as_many_blocks_again_and_none_before_five(most: int, after: tuple[int, ...]) -> None:
    assert looks_within(most) == after


def test_twelve_blocks_are_the_most_only_where_the_machine_is_known_to_be_quiet() -> None:
    assert most_blocks(validation(paired=0.010)) == 12
    assert most_blocks(validation(paired=0.011)) == 18
    assert most_blocks(None) == 18


def test_a_new_plan_seals_what_a_window_costs_and_an_earlier_one_keeps_its_seal() -> None:
    looks = AbSettings(Margins(), (5,)).planned()
    assert looks.window_cost_s == COST_S
    earlier = looks.model_copy(update={"window_cost_s": None})
    told, untold = (PlanRecord.sealed(1, 1, [[["a", "b"]]], looks=one) for one in (looks, earlier))
    assert told.sha256 != untold.sha256
    as_kept = untold.model_dump()
    del as_kept["looks"]["window_cost_s"]
    assert PlanRecord.model_validate(as_kept) == untold
    as_kept["looks"]["window_cost_s"] = COST_S
    with pytest.raises(ValidationError, match="does not seal this plan"):
        PlanRecord.model_validate(as_kept)
