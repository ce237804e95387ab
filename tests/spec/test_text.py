"""Keys and values as text: what a person types is what is shown to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.spec import Sweep
from harness.spec.sweep import ASKED, AXES
from harness.spec.text import text_of, value_from


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("replicas", "1, 2", [1, 2]),
        ("xla", "TRUE,false", [True, False]),
        ("window", "0.5", 0.5),
        ("seed", "7", 7),
        ("model", "my.net:make", ["my.net:make"]),
        ("tpu", "grpc://a,b", "grpc://a,b"),
        ("precision", "float32", ["float32"]),
        ("network", "none,rate=1gbit,delay=1ms,rate=100mbit", ["", "rate=1gbit,delay=1ms", "rate=100mbit"]),
        ("mesh", "batch:4,batch:2,model:2", ["batch:4", "batch:2,model:2"]),
        ("size", "4, 64KiB,16M,1 gib", [4, 2**16, 2**24, 2**30]),
        ("collective", "all_reduce,broadcast", ["all_reduce", "broadcast"]),
    ],
)
def test_text_becomes_the_type_of_its_key(key: str, text: str, value: object) -> None:
    assert value_from(key, text) == value


def test_what_is_no_number_names_its_key() -> None:
    with pytest.raises(UsageError, match="replicas: given 'two', expected a whole number"):
        value_from("replicas", "two")


def test_sizes_are_shown_in_the_unit_that_they_are_a_multiple_of() -> None:
    assert text_of("size", [4, 1000, 2**16, 3 * 2**20, 2**30]) == "4,1000,64KiB,3MiB,1GiB"


def test_networks_are_shown_as_a_flag_takes_them() -> None:
    assert text_of("network", ["", "rate=1gbit", "delay=1ms"]) == "none,rate=1gbit;delay=1ms"


@given(st.sampled_from(sorted(key for key in Sweep.model_fields if key not in AXES or ASKED[key].values)))
def test_a_value_that_is_shown_can_be_typed_again(key: str) -> None:
    value = getattr(Sweep(), key)
    assert value_from(key, text_of(key, value)) == value
