"""What a parent and its fork server say to each other."""

import pytest
from pydantic import ValidationError

from harness.protocol.control import DEMANDS, EVENTS, Birth, ChildEvent, Death, Demand, Dismissal, Signal, Spawn
from harness.protocol.messages import Membership, Request
from harness.spec.work import Cell, OwnStepCell
from tests.record.examples import cell


def spawn(of: Cell) -> Spawn:
    member = Membership(task="worker", index=1, cluster={"worker": ["a:1", "b:2"]})
    return Spawn(
        number=3,
        request=Request(
            cell=of, seed=7, data_dir="d", window_s=0.1, intra_op_threads=1, inter_op_threads=0, member=member
        ),
    )


@pytest.mark.parametrize(
    "demand",
    [spawn(cell()), spawn(OwnStepCell(step="own:step", amount=8)), Signal(number=3, signal=9), Dismissal()],
    ids=lambda demand: type(demand).__name__,
)
def test_what_the_parent_says_is_read_as_it_was_said(demand: Demand) -> None:
    assert DEMANDS.validate_json(demand.model_dump_json()) == demand


@pytest.mark.parametrize("event", [Birth(number=3, pid=41), Death(number=3, status=-9, left=["python"], left_out=4)])
def test_what_the_fork_server_says_is_read_as_it_was_said(event: ChildEvent) -> None:
    assert EVENTS.validate_json(event.model_dump_json()) == event


@pytest.mark.parametrize("line", ['{"number": 3, "signal": 9}', '{"do": "restart"}', '{"do": "dismiss", "number": 3}'])
def test_what_is_no_word_of_the_protocol_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        DEMANDS.validate_json(line)
