"""Models with parameters: as text, refused, and as cells."""

from dataclasses import replace
from typing import Any

import pytest

from harness.engines.tensorflow.catalogue import load_catalogue
from harness.engines.tensorflow.workloads import load_workload
from harness.errors import UsageError
from harness.spec import calls, expand, sweep_from
from harness.spec.catalogue import Catalogue
from harness.spec.text import value_from

CATALOGUE = load_catalogue()
ALONE = {"strategy": "none", "replicas": 1}


def models_of(*names: str, catalogue: Catalogue = CATALOGUE) -> list[str]:
    """The models of the cells that a spec asking for `names` has."""
    matrix = expand(sweep_from({**ALONE, "model": list(names)}), catalogue)
    return [str(cell.get("model")) for cell in matrix.cells]


def test_a_comma_in_parentheses_does_not_end_a_value_of_the_flag() -> None:
    text = "mlp, transformer(layers=2, width=32),keras:ResNet50,transformer(heads=2)"
    expected = ["mlp", "transformer(layers=2, width=32)", "keras:ResNet50", "transformer(heads=2)"]
    assert value_from("model", text) == expected


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("transformer( width=32 , layers=4 )", "transformer(layers=4,width=32)"),
        ("transformer(layers=2,tokens=32)", "transformer(tokens=32)"),
        ("transformer(layers=2,width=64)", "transformer"),
        ("transformer(width=0128)", "transformer(width=128)"),
    ],
)
def test_equal_sizes_are_one_cell_whose_name_leaves_out_the_defaults(text: str, spelt: str) -> None:
    assert models_of(text) == models_of(text, spelt) == [spelt]
    assert load_workload(text).name == spelt


def test_the_model_without_sizes_is_the_cell_that_it_always_was() -> None:
    [cell] = expand(sweep_from({**ALONE, "model": "transformer(heads=4)"}), CATALOGUE).cells
    assert cell.cell_id == "67c4a64dfeb4"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "transformer(layer=2)",
            "no parameter 'layer', expected some of layers=2, width=64, heads=4, tokens=49; did you mean 'layers'?",
        ),
        ("transformer()", "'transformer' has no parameter '', expected some of layers=2, width=64"),
        ("transformer(layers=two)", "layers: given 'two', expected a whole number from 1 to 16777216"),
        ("transformer(layers=0)", "layers: given '0', expected a whole number from 1 to 16777216"),
        ("transformer(layers=1,layers=2)", "'layers' is there twice"),
        ("transformer(heads=5)", "heads: given 5, expected a divisor of width (64)"),
        ("mlp(layers=2)", "'mlp' takes no parameters"),
        ("transfomer(layers=2)", "'transfomer' is not one of "),
        ("transformer(layers=2", "'transformer(layers=2' is not one of "),
    ],
)
def test_what_is_no_size_is_bad_usage_in_one_line_that_names_it(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        models_of(text)
    assert str(raised.value).startswith("model: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_model_of_an_engine_without_sizes_takes_none() -> None:
    plain: dict[str, Any] = {"model_text": Catalogue.model_text}
    with pytest.raises(UsageError, match="'transformer' takes no parameters"):
        models_of("transformer(layers=1)", catalogue=replace(CATALOGUE, **plain))


@pytest.mark.parametrize("key", ["model", "data"])
def test_functions_of_your_own_take_parameters_and_several_values_are_an_axis(key: str) -> None:
    text = "my.own:made(width=32, layers=04),my.own:made(layers=4,width=32),my.own:made(rate=0.50),my.own:made"
    asked: dict[str, Any] = {"model": "my.own:model", key: value_from(key, text)}
    cells = expand(sweep_from({**ALONE, **asked}), CATALOGUE).cells
    spelt = ["my.own:made", "my.own:made(layers=4,width=32)", "my.own:made(rate=0.5)"]
    assert sorted({str(cell.get(key)) for cell in cells}) == spelt
    assert cells[0].own_code[key] in spelt


@pytest.mark.parametrize(
    ("text", "spelt", "given"),
    [
        ("my:f(rows=20000000)", "my:f(rows=20000000)", {"rows": 20_000_000}),
        ("my:f(bias=-1)", "my:f(bias=-1)", {"bias": -1}),
        ("my:f(bias=-0)", "my:f(bias=0)", {"bias": 0}),
        ("my:f(rate=-1e-7)", "my:f(rate=-1e-07)", {"rate": -1e-7}),
        ("my:f(rate=-0.0)", "my:f(rate=0.0)", {"rate": 0.0}),
        ("my:f(most=1e20)", "my:f(most=1e+20)", {"most": 1e20}),
        ("my:f(seed=9007199254740992)", "my:f(seed=9007199254740992)", {"seed": 2**53}),
    ],
)
def test_a_function_of_your_own_sets_its_own_limits(text: str, spelt: str, given: dict[str, int | float]) -> None:
    for key in ("model", "data"):
        assert calls.own_text(key, text) == spelt
        assert calls.own_text(key, spelt) == spelt
        assert calls.own_of(key, text) == ("my:f", given)
        assert [type(value) for value in calls.own_of(key, text)[1].values()] == [type(one) for one in given.values()]


OWN_NUMBER = "expected a whole number from -9007199254740992 to 9007199254740992, or a decimal number"


@pytest.mark.parametrize("key", ["model", "data"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("my:f()", "given 'my:f()', expected parameters with a number each, such as my:f(layers=2)"),
        ("my:f(4)", "given 'my:f(4)', expected parameters with a number each, such as my:f(layers=2)"),
        ("my:f(a=1,a=2)", "given 'my:f(a=1,a=2)': 'a' is there twice"),
        ("my:f(a=x)", f"given 'my:f(a=x)': a: given 'x', {OWN_NUMBER}"),
        ("my:f(a=--1)", f"given 'my:f(a=--1)': a: given '--1', {OWN_NUMBER}"),
        ("my:f(a=inf)", f"given 'my:f(a=inf)': a: given 'inf', {OWN_NUMBER}"),
        ("my:f(a=9007199254740993)", f"a: given '9007199254740993', {OWN_NUMBER}"),
        ("my:f(a=-9007199254740993)", f"a: given '-9007199254740993', {OWN_NUMBER}"),
        ("my:f(a=1", "'my:f(a=1' is not one of "),
        ("my:f(a=(1))", "'my:f(a=(1))' is not one of "),
    ],
)
def test_what_is_no_parameter_of_a_function_is_bad_usage_in_one_line(key: str, text: str, says: str) -> None:
    asked: dict[str, Any] = {"model": "my.own:model", key: text}
    with pytest.raises(UsageError) as raised:
        expand(sweep_from({**ALONE, **asked}), CATALOGUE)
    assert str(raised.value).startswith(f"{key}: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("tokens", "shape"), [(32, (16, 32, 1)), (49, (28, 28, 1)), (7, (4, 28, 1))])
def test_a_transformer_takes_an_image_of_as_many_patches_as_tokens(tokens: int, shape: tuple[int, ...]) -> None:
    assert load_workload(f"transformer(tokens={tokens})").input_shape == shape
