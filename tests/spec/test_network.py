"""A network has one canonical spelling, and what is no network is refused in one line that says what would be."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.spec.network import (
    FASTEST_BITS_PER_S,
    SLOWEST_BITS_PER_S,
    Network,
    canonical,
    join_values,
    split_values,
)

RATES = st.none() | st.integers(SLOWEST_BITS_PER_S, FASTEST_BITS_PER_S)
DELAYS = st.integers(0, 10**6).map(lambda microseconds: microseconds / 10**6)
CONGESTIONS = st.sampled_from(["", "cubic", "bbr", "dctcp", "tcp-x_1"])
NETWORKS = st.builds(Network, RATES, DELAYS, CONGESTIONS)
VALUES = NETWORKS.map(lambda network: network.text) | st.just("")
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


@given(NETWORKS)
def test_the_canonical_text_of_a_network_is_read_as_that_network(network: Network) -> None:
    assert Network.parse(network.text) == network
    assert canonical(network.text) == network.text


@given(st.integers(1000, 10**9), st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), st.booleans())
def test_two_spellings_of_a_rate_are_the_same_network(kilobits: int, unit: str, other: str, upper: bool) -> None:
    bits = kilobits * 1000
    spellings = [f"rate={decimal(Fraction(bits, UNITS[name]))}{name}" for name in (unit, other)]
    if upper:
        spellings[1] = spellings[1].upper()
    assert len({canonical(spelling) for spelling in spellings}) == 1
    assert Network.parse(spellings[0]).rate == bits


def decimal(number: Fraction) -> str:
    """Exactly, which a multiple of 10⁻⁹ can be."""
    return f"{number.numerator * 10**9 // number.denominator // 10**9}.{int(number % 1 * 10**9):09d}"


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ("rate=1gbit,delay=0.5ms", "rate=1gbit,delay=0.5ms"),
        (" Delay = 500 us , rate=1000Mbit", "rate=1gbit,delay=0.5ms"),
        ("delay=1s", "delay=1000ms"),
        ("rate=.1gbit", "rate=100mbit"),
        ("rate=2500mbit", "rate=2.5gbit"),
        ("rate=1500.5kbit", "rate=1.5005mbit"),
        ("UNSHAPED", "unshaped"),
        ("congestion=Cubic,rate=1gbit", "rate=1gbit,congestion=cubic"),
        ("congestion=bbr", "congestion=bbr"),
    ],
)
def test_a_network_is_shown_in_its_canonical_spelling(spelling: str, text: str) -> None:
    assert Network.parse(spelling).text == text


def test_a_network_is_in_bits_and_seconds() -> None:
    assert Network.parse("rate=1gbit,delay=0.5ms") == Network(rate=10**9, delay=0.0005)
    assert Network.parse("unshaped") == Network(rate=None, delay=0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected none, unshaped, or rate=…, delay=… and congestion=…"),
        ("rate", "like rate=1gbit"),
        ("rate=", "like rate=1gbit"),
        ("rate=1000", "kbit, mbit or gbit"),
        ("rate=1gb", "kbit, mbit or gbit"),
        ("rate=0mbit", "from rate=1mbit to rate=1000gbit"),
        ("rate=-1gbit", "from rate=1mbit to rate=1000gbit"),
        ("rate=1e3mbit", "kbit, mbit or gbit"),
        ("rate=999kbit", "from rate=1mbit to rate=1000gbit"),
        ("rate=1001gbit", "from rate=1mbit to rate=1000gbit"),
        ("rate=1000.0001kbit,delay=1ms", "kbit, mbit or gbit"),
        ("rate=٣mbit", "kbit, mbit or gbit"),
        ("delay=0ms", "like delay=0.5ms"),
        ("delay=0.5us", "whole microseconds"),
        ("delay=1001ms", "up to delay=1s"),
        ("delay=1", "us, ms or s"),
        ("congestion=", "like congestion=cubic"),
        ("congestion=a b", "like congestion=cubic"),
        ("congestion=cubic,congestion=bbr", "'congestion' is there twice"),
        ("dely=1ms", "did you mean 'delay'?"),
        ("loss=1%", "expected none, unshaped, or rate=…, delay=… and congestion=…"),
        ("rate=1gbit,rate=2gbit", "'rate' is there twice"),
        ("rate=1gbit,unshaped", "expected none, unshaped, or rate=…, delay=… and congestion=…"),
        ("rate=1gbit,", "expected none, unshaped, or rate=…, delay=… and congestion=…"),
    ],
)
def test_what_is_no_network_is_refused_with_what_is_expected(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        Network.parse(text)
    assert str(refused.value).startswith(f"network: given {text!r}, ")
    assert expected in str(refused.value)


@given(st.text() | st.text("rate=dly1.,0 bitgkmus-").map(lambda text: f"rate={text}"))
def test_any_text_is_a_network_or_is_refused_in_one_line(text: str) -> None:
    said = ""
    try:
        network = Network.parse(text)
    except UsageError as error:
        said = str(error)
    if said:
        assert len(said.splitlines()) == 1
    else:
        assert Network.parse(network.text) == network


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rate=1gbit,delay=0.5ms,rate=100mbit", ["rate=1gbit,delay=0.5ms", "rate=100mbit"]),
        ("rate=1gbit,rate=100mbit,rate=10mbit", ["rate=1gbit", "rate=100mbit", "rate=10mbit"]),
        ("none", [""]),
        ("", [""]),
        ("None, rate=1gbit", ["", "rate=1gbit"]),
        ("rate=1gbit,none,delay=1ms,unshaped", ["rate=1gbit", "", "delay=1ms", "unshaped"]),
        ("rate=1gbit;delay=1ms", ["rate=1gbit", "delay=1ms"]),
        ("nonsense,rate=1gbit", ["nonsense", "rate=1gbit"]),
    ],
)
def test_commas_separate_the_values_of_an_axis_where_a_key_repeats(text: str, values: list[str]) -> None:
    assert split_values(text) == values


@pytest.mark.parametrize("text", ["rate=1gbit,", ",rate=1gbit", "rate=1gbit,,none", "rate=1gbit;"])
def test_nothing_between_two_separators_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"network: given .*, expected a value between two separators"):
        split_values(text)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_values_that_are_shown_can_be_typed_again(values: list[str]) -> None:
    assert split_values(join_values(values)) == values


def test_no_emulation_is_a_value_of_its_own() -> None:
    assert [canonical(text) for text in ("", "none", " NONE ")] == ["", "", ""]
    assert join_values(["", "rate=1gbit"]) == "none,rate=1gbit"
