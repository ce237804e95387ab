"""From a test's mark to the one cell that it names."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest

from harness.errors import UsageError, nearest
from harness.run.kinds.one_cell import OF_THE_COMPARISON, one_cell
from harness.spec.axes import OF_PROCESS
from harness.spec.cell import Cell
from harness.spec.sweep import AXES, Sweep, sweep_from
from harness.spec.text import text_of
from harness.spec.work import EXAMPLES, QUANTITY_PATTERN, OwnStepCell

NAME = "gate"
"""What runs of the gate are called, unless the mark gives them a `name`."""
OWN_KEYS = ("step", "examples", "quantity", "amount")
"""Keys of a mark that are none of a spec."""


@dataclass(frozen=True)
class GateCell:
    """One cell that marks name. Tests that name the same cell with the same settings share its verdict."""

    test: str
    """The first test that names it."""
    settings: Mapping[str, Any]
    """The keys of a spec that were given."""
    sweep: Sweep
    """Every setting; its axes have one value each."""
    cell: Cell

    @property
    def key(self) -> str:
        """The same for marks that mean the same measurement."""
        return self.cell.cell_id + self.sweep.model_copy(update={"name": NAME}).model_dump_json()

    @property
    def is_own_step(self) -> bool:
        """Whether it is a training step of the user's own, which only the gate measures."""
        return isinstance(self.cell, OwnStepCell)

    @property
    def flags(self) -> str:
        """The keys as flags of `harness ab`, quoted for a shell."""
        given = [(key, text_of(key, value)) for key, value in self.settings.items() if key != "name"]
        return " ".join(f"--{key.replace('_', '-')} {shlex.quote(text)}" for key, text in given)


def read_marks(items: Sequence[pytest.Item], mark: str, defaults: Mapping[str, Any]) -> dict[str, GateCell]:
    """The cell of each item, by node id; `defaults` are keys of a spec for what no mark says.

    pytest.UsageError names the test whose mark is wrong.
    """
    cells = {}
    for item in items:
        try:
            cells[item.nodeid] = gate_cell(values_of(item, mark), item.nodeid, defaults)
        except UsageError as error:
            raise pytest.UsageError(f"{item.nodeid}: {mark}: {error}") from None
    return cells


def values_of(item: pytest.Item, mark: str) -> dict[str, Any]:
    """The keywords of all of the item's marks of that name, the closest laid over the rest.

    So a module's `pytestmark` can hold what its tests share. UsageError on a positional argument.
    """
    values: dict[str, Any] = {}
    for found in reversed(list(item.iter_markers(mark))):
        if found.args:
            raise UsageError(f"given {found.args[0]!r} without a key, expected keys of a spec, such as replicas=2")
        values |= found.kwargs
    return values


def gate_cell(values: Mapping[str, Any], test: str, defaults: Mapping[str, Any] = MappingProxyType({})) -> GateCell:
    """The cell that `values`, keys of a spec or a step of the user's own, come to.

    UsageError, in one line, unless it is exactly one. An axis that is not given takes the first of its
    default values.
    """
    for key in values:
        if key in OF_THE_COMPARISON:
            raise UsageError(f"{key}: has no meaning for one cell; --gate-max-blocks says how often it is measured")
        if key not in Sweep.model_fields and key not in OWN_KEYS:
            raise UsageError(f"unknown key {key!r}{nearest(key, [*OWN_KEYS, *Sweep.model_fields])}")
    if "step" in values:
        return _own_step(values, test, defaults)
    for key in OWN_KEYS:
        if key in values:
            raise UsageError(f"{key}: belongs to step, a training step of your own; for a model give batch_size")
    try:
        sweep, cell = one_cell("a", {"name": NAME, **defaults, **values}, {})
    except UsageError as error:
        raise UsageError(str(error).removeprefix("side a: ")) from None
    return GateCell(test, dict(values), sweep, cell)


def _own_step(values: Mapping[str, Any], test: str, defaults: Mapping[str, Any]) -> GateCell:
    """A step that the user's own function builds. Strategy, model and data are its own affair."""
    step = values["step"]
    if not (isinstance(step, str) and ":" in step):
        raise UsageError(f"step: given {step!r}, expected package.module:function")
    cell = OwnStepCell(step=step, amount=_amount(values), quantity=_quantity(values))
    settings = {key: value for key, value in values.items() if key not in OWN_KEYS}
    for key in settings:
        if key in AXES - OF_PROCESS:
            raise UsageError(f"{key}: a step of your own decides that itself; leave it out, or give model, not step")
    sweep = sweep_from({"name": NAME, **defaults, **settings}, "mark")
    return GateCell(test, settings, sweep.model_copy(update={axis: [] for axis in AXES - OF_PROCESS}), cell)


def _amount(values: Mapping[str, Any]) -> int:
    given = [key for key in ("examples", "amount") if key in values]
    if len(given) == 2:
        raise UsageError("amount: given beside examples, which says the same")
    key = given[0] if given else "examples"
    amount = values.get(key, 1)
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        of = "examples a step trains on" if key == "examples" else "of its quantity a step does"
        raise UsageError(f"{key}: given {amount!r}, expected how many {of}")
    return amount


def _quantity(values: Mapping[str, Any]) -> str:
    quantity = values.get("quantity", EXAMPLES.many)
    if "examples" in values and quantity != EXAMPLES.many:
        raise UsageError(f"examples: given beside quantity {quantity!r}; give amount, how many {quantity} a step does")
    if not isinstance(quantity, str) or not re.fullmatch(QUANTITY_PATTERN, quantity):
        raise UsageError(f"quantity: given {quantity!r}, expected what a step is counted in, such as 'tokens'")
    return quantity
