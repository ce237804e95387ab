"""δ and ε: what was asked for, the defaults, and the noise floor of this machine."""

import pytest

from harness.analysis.comparison import choose_margins, compare_runs, parse_share
from harness.analysis.comparison.remarks import on_validation
from harness.analysis.estimates.verdict import Margins
from harness.errors import UsageError
from tests.comparisons import pair_of_runs, validation
from tests.synthetic import make_cell

MARGINS = Margins()
OPS = [make_cell(), *(make_cell("mirrored", 2, op=op) for op in ("hierarchical_copy", "auto", "nccl"))]


def test_delta_is_the_default_or_the_noise_floor_if_that_is_larger() -> None:
    assert choose_margins(None, unpaired=True) == Margins()
    quiet = choose_margins(validation(paired=0.004), unpaired=False)
    assert (quiet.delta, quiet.source) == (0.01, "the defaults")
    paired = choose_margins(validation(paired=0.014), unpaired=False)
    assert (paired.delta, paired.epsilon) == (0.014, 0.03)
    assert "the noise floor that validate measured on this machine (run validation-run)" in paired.source
    apart = choose_margins(validation(unpaired=0.05), unpaired=True)
    assert (apart.delta, apart.epsilon) == (0.05, 0.05)
    assert "at different times" in apart.source
    assert "epsilon is raised to delta" in apart.source
    given_ones = choose_margins(validation(), unpaired=True, delta=0.02, epsilon=0.04)
    assert given_ones == Margins(0.02, 0.04, "the command line")
    with pytest.raises(UsageError, match=r"--epsilon: given 0\.03, but delta is the noise floor"):
        choose_margins(validation(unpaired=0.05), unpaired=True, epsilon=0.03)


def test_a_floor_that_no_difference_could_pass_is_said_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"is 118%: validate it again while it is idle, or give --delta"):
        choose_margins(validation(paired=1.18), unpaired=False)
    assert choose_margins(validation(paired=1.18), unpaired=False, delta=0.5).delta == 0.5


def test_a_delta_below_the_noise_floor_is_remarked() -> None:
    found = validation(unpaired=0.05)
    margins = choose_margins(found, unpaired=True, delta=0.01)
    said = " ".join(compare_runs(*pair_of_runs(), margins, validation=found).remarks)
    assert "below the noise floor of 5 %" in said
    [large] = on_validation(validation(unpaired=1.5), Margins(0.0125), unpaired=True)
    assert "Delta, 1.25 %, is below the noise floor of 150 %" in large
    unknown = compare_runs(*pair_of_runs(), Margins(), validation=validation(unpaired=None))
    assert "measured no noise floor for sides measured at different times" in " ".join(unknown.remarks)


@pytest.mark.parametrize(
    ("text", "share"), [("0.01", 0.01), ("1%", 0.01), (" 2.5 % ", 0.025), ("0", 0.0), ("1e-3", 0.001)]
)
def test_a_share_is_a_number_or_a_percentage(text: str, share: float) -> None:
    assert parse_share("--delta", text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "one", "1", "100%", "-0.01", "nan", "inf", "%", "1%%"])
def test_what_is_no_share_is_bad_usage_that_names_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--delta: given"):
        parse_share("--delta", text)
