"""How a decision is reached: what settings make sense, and what the second stage is planned for."""

import math

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.errors import UsageError
from harness.run.kinds.decision import AbSettings


@pytest.mark.parametrize(
    ("changes", "says_"),
    [
        ({"pilot_blocks": 1}, "pilot_blocks: given 1, expected at least 2"),
        ({"pilot_blocks": 8, "max_blocks": 4}, "max_blocks: given 4, expected at least pilot_blocks, 8"),
        ({"half_width": math.nan}, "half_width: given nan"),
        ({"half_width": 0.0}, "half_width: given 0.0"),
        ({"half_width": 1.0}, "half_width: given 1.0"),
        ({"time_s": math.nan}, "time: given nan"),
        ({"time_s": math.inf}, "time: given inf"),
        ({"time_s": 0}, "time: given 0"),
    ],
)
def test_settings_that_no_plan_can_follow_are_bad_usage(changes: dict[str, float], says_: str) -> None:
    with pytest.raises(UsageError) as caught:
        AbSettings(Margins(), **changes)  # type: ignore[arg-type]
    assert says_ in str(caught.value)


def test_the_half_width_that_is_planned_for_leaves_room_for_both_answers() -> None:
    margins = Margins(0.01, 0.03)
    assert AbSettings(margins).target == pytest.approx((math.log(1.03) - math.log(1.01)) / 2)
    assert AbSettings(margins, half_width=0.004).target == 0.004


def test_margins_without_room_between_them_still_give_a_plan_with_an_end() -> None:
    assert AbSettings(Margins(0.03, 0.03)).target == pytest.approx(math.log(1.03) / 2)
    assert AbSettings(Margins(0.0, 0.0001)).target == 0.001
