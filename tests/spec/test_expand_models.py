"""From models to cells: which data a model has, and what its work is counted in."""

from dataclasses import replace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.spec import Sweep, expand
from harness.spec.catalogue import ModelTraits
from tests.spec.catalogues import CATALOGUE

TAKES = {"gpt": ModelTraits(("text",), "prose", 32), "mlp": ModelTraits(("images", "table"), "digits")}
OF_TEXT = replace(
    CATALOGUE,
    models={"mlp": "", "gpt": ""},
    data={"digits": "", "prose": "", "synthetic": ""},
    model_traits=lambda name: TAKES.get(name, ModelTraits()),
    data_gives=lambda name: {"digits": "images", "prose": "text", "a:b": "own"}.get(name, "anything"),
)


def on_data(**axes: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """Models with their data, and why others are left out."""
    matrix = expand(Sweep(strategy=["none"], replicas=[1], **axes), OF_TEXT)
    cells = [(str(cell.get("model")), str(cell.get("data"))) for cell in matrix.cells]
    return cells, [f"{item.combination}: {item.reason}" for item in matrix.left_out]


def test_a_model_has_data_that_fit_it_where_none_are_asked_for() -> None:
    assert on_data(model=["gpt", "mlp"]) == ([("gpt", "prose"), ("mlp", "digits")], [])
    assert on_data(model=["gpt"], data=["synthetic"]) == ([("gpt", "synthetic")], [])


def test_data_that_do_not_fit_a_model_are_left_out_with_those_that_do() -> None:
    cells, left_out = on_data(model=["gpt", "mlp"], data=["digits"])
    assert cells == [("mlp", "digits")]
    assert left_out == ["gpt on digits: it takes text: --data prose or synthetic"]
    with pytest.raises(UsageError, match="gpt on digits: it takes text: --data prose or synthetic"):
        on_data(model=["gpt"], data=["digits"])


def test_a_model_of_ones_own_is_left_to_say_what_it_takes() -> None:
    assert on_data(model=["a:net"], data=["digits", "prose", "a:b"])[1] == []


def test_work_of_a_model_of_text_is_counted_in_the_tokens_of_its_global_batch() -> None:
    matrix = expand(Sweep(strategy=["mirrored"], replicas=[2], batch_size=[8], model=["gpt"]), OF_TEXT)
    assert {(cell.shape.replicas, cell.work.amount, cell.work.quantity.unit) for cell in matrix.cells} == {
        (1, 8 * 32, "tokens/s"),
        (2, 16 * 32, "tokens/s"),
    }


@pytest.mark.parametrize(
    ("model", "quantity", "amount", "unit"),
    [
        ("mlp", "images", 8, "images/s"),
        ("mlp", "tokens=40", 8 * 40, "tokens/s"),
        ("gpt", "examples", 8, "examples/s"),
        ("gpt", "pieces=2", 8 * 2, "pieces/s"),
    ],
)
def test_work_is_counted_in_what_is_asked_for_apart_from_what_is_counted_otherwise(
    model: str, quantity: str, amount: int, unit: str
) -> None:
    asked = Sweep(strategy=["none"], replicas=[1], batch_size=[8], model=[model], quantity=["", quantity])
    own, other = sorted(expand(asked, OF_TEXT).cells, key=lambda cell: bool(cell.get("quantity")))
    assert (other.work.amount, other.work.quantity.unit) == (amount, unit)
    assert own.scope != other.scope
    assert own.full_name != other.full_name
    [alone] = expand(asked.model_copy(update={"quantity": [""]}), OF_TEXT).cells
    assert alone == own


@pytest.mark.parametrize(("model", "quantity"), [("mlp", "examples"), ("gpt", "tokens"), ("gpt", "tokens=32")])
def test_a_quantity_that_is_the_models_own_makes_no_other_cell(model: str, quantity: str) -> None:
    asked = Sweep(strategy=["none"], replicas=[1], model=[model], quantity=["", quantity])
    [cell] = expand(asked, OF_TEXT).cells
    assert cell.get("quantity") == ""


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"model": ["mlp"], "quantity": ["tokens"]},
            "how many tokens an example of 'mlp' has is not known",
        ),
        ({"model": ["gpt"], "quantity": ["tokens=3"]}, "given 'tokens=3', and an example of 'gpt' has 32; say tokens$"),
        (
            {"model": ["mlp"], "quantity": ["examples=2"]},
            "given 'examples=2', and an example of 'mlp' has 1",
        ),
        (
            {"step": "a.b:c", "quantity": ["tokens=3"]},
            "given 'tokens=3'; of a step of your own, amount",
        ),
    ],
)
def test_a_quantity_that_cannot_be_counted_in_is_refused_in_one_line(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"^quantity: {says}"):
        expand(Sweep(strategy=["none"], replicas=[1], **keys), OF_TEXT)
