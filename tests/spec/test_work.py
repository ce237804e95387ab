"""A cell is what its kind of work says, and cells of earlier runs are the cells that they were."""

from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from harness.engines.tensorflow.tasks import LOADED, TASKS
from harness.record import checks, schema
from harness.record.explain import INSTRUMENTS
from harness.spec.axes import TABLE
from harness.spec.cell import TrainingCell, trained
from harness.spec.expand import MATRIX_OF
from harness.spec.quantity import EXAMPLES, SEVERAL, Quantity
from harness.spec.settings import Settings
from harness.spec.sweep import OTHER_WORKS
from harness.spec.work import CELL_KINDS, OWN_STEP, TRAINING, Cell, OwnStepCell, cell_from, kind_of_work, quantity_of
from tests.synthetic import make_cell

EARLIER = {
    "device": "own",
    "strategy": "none",
    "replicas": 1,
    "workers": 1,
    "batch_size": 64,
    "batch_scope": "per_replica",
    "global_batch_size": 64,
    "cross_device_op": "auto",
    "packing": "default",
    "model": "a.b:c",
    "data": "own",
    "precision": "float32",
    "xla": False,
    "optimizer": "own",
    "loop": "own",
    "ps": 0,
    "partitioner": "none",
    "updates": "locked",
    "network": "",
    "mesh": "",
}
"""A cell of an own step as runs have it that were made before kinds of work were told apart."""


class Holder(BaseModel):
    """What a record or a message is to a cell."""

    cell: Cell


def test_an_own_step_of_an_earlier_run_is_the_same_cell() -> None:
    cell = Holder.model_validate({"cell": EARLIER}).cell
    assert cell == OwnStepCell(step="a.b:c", amount=64)
    assert cell.own_code == {"step": "a.b:c"}
    assert cell.cell_id == "4dc45e569de0"


def test_a_cell_that_stands_in_many_records_is_read_once_and_one_that_is_damaged_is_refused() -> None:
    values = {"kind": OWN_STEP, "step": "a.b:c", "amount": 1, "quantity": "tokens"}
    assert cell_from(dict(values)) is cell_from(dict(values))
    assert cell_from({**values, "step": "a.b:d"}) != cell_from(values)
    for amount in ([1], {}, 1.5):
        with pytest.raises(ValidationError, match="amount"):
            cell_from({**values, "amount": amount})


def test_an_own_step_that_counts_in_something_else_is_another_cell() -> None:
    cells = [OwnStepCell(step="a.b:c", amount=64, quantity=name) for name in ("examples", "tokens", "bytes")]
    assert len({cell.cell_id for cell in cells}) == len({cell.label for cell in cells}) == 3


def test_every_kind_is_read_back_as_what_was_written_even_where_defaults_are_left_out() -> None:
    for cell in (make_cell("mirrored", 2), OwnStepCell(step="a.b:c"), OwnStepCell(step="a.b:c", quantity="tokens")):
        text = Holder(cell=cell).model_dump_json(exclude_defaults=True)
        assert Holder.model_validate_json(text).cell == cell


def test_a_cell_of_a_kind_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ValidationError, match="expected a kind of work: appetite, collective, own_step, pipeline, training"
    ):
        Holder.model_validate({"cell": {"kind": "dance", "step": "a.b:c"}})


def test_a_tag_is_entered_once() -> None:
    with pytest.raises(ValueError, match="the kind of work 'training' is entered twice"):
        kind_of_work("training")(TrainingCell)


def test_what_only_trainings_have_is_not_had_from_other_work() -> None:
    with pytest.raises(TypeError, match=r"a\.b:c b1\) is no training"):
        trained(OwnStepCell(step="a.b:c"))


def test_a_quantity_is_said_in_words_by_the_regular_endings() -> None:
    said = {name: Quantity(name).each for name in ("examples", "tokens", "bytes", "queries", "batches", "episodes")}
    assert list(said.values()) == ["an example", "a token", "a byte", "a query", "a batch", "an episode"]


def test_a_quantity_whose_name_holds_the_word_example_is_said_once() -> None:
    tokens = Quantity("example_tokens")
    assert tokens.worded(EXAMPLES.throughput_key) == "throughput_example_tokens_per_s"
    assert tokens.worded("an example; mean examples") == "an example_token; mean example_tokens"


def test_a_quantity_has_a_name_of_two_letters_at_least() -> None:
    with pytest.raises(ValidationError, match="quantity"):
        OwnStepCell(step="a.b:c", quantity="s")


def test_work_of_several_quantities_has_no_quantity_in_common() -> None:
    tokens = OwnStepCell(step="a.b:c", quantity="tokens")
    assert quantity_of([make_cell(), OwnStepCell(step="a.b:c")]) == EXAMPLES
    assert quantity_of([make_cell(), tokens]) == SEVERAL


def test_a_kind_of_work_that_a_spec_asks_for_is_entered_wherever_one_must_be() -> None:
    asked = {*get_args(Settings.model_fields["work"].annotation)} - {TRAINING}
    assert asked == OTHER_WORKS.keys() == MATRIX_OF.keys()
    assert asked <= CELL_KINDS.keys()
    assert asked | {OWN_STEP} <= TASKS.keys()
    assert CELL_KINDS.keys() == LOADED.keys()
    assert {tag for tag, kind in CELL_KINDS.items() if kind.training_asked is Cell.training_asked} <= TASKS.keys()
    assert {kind.LEFT_OUT for kind in CELL_KINDS.values()} <= {"", *INSTRUMENTS}
    assert {work for axis in TABLE.values() for work in axis.works} <= CELL_KINDS.keys()


def test_a_gate_of_a_kind_of_work_is_one_whose_checks_are_known_to_records_and_to_their_schema() -> None:
    gates = {kind.GATE for kind in CELL_KINDS.values()}
    assert gates <= {*get_args(checks.GateName)} == checks._GATES.keys()
    assert gates - {"full", "instrument"} == schema._GATES.keys()
