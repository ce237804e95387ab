"""From a test's mark to the one cell that it names."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest

from harness.errors import UsageError, nearest
from harness.run.kinds.one_cell import OF_THE_COMPARISON, one_cell
from harness.spec.quantity import EXAMPLES
from harness.spec.sweep import Sweep
from harness.spec.text import text_of
from harness.spec.work import Cell

NAME = "gate"
"""What runs of the gate are called, unless the mark gives them a `name`."""


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
        """Whether it is a training step of the user's own."""
        return bool(self.sweep.step)

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
    """The cell that `values`, keys of a spec and `examples`, come to.

    UsageError, in one line, unless it is exactly one. An axis that is not given takes the first of its
    default values.
    """
    for key in values:
        if key in OF_THE_COMPARISON:
            raise UsageError(f"{key}: has no meaning for one cell; --gate-max-blocks says how often it is measured")
        if key not in Sweep.model_fields and key != EXAMPLES.many:
            raise UsageError(f"unknown key {key!r}{nearest(key, [EXAMPLES.many, *Sweep.model_fields])}")
    try:
        sweep, cell = one_cell("a", {"name": NAME, **defaults, **(given := _in_words_of_a_spec(values))}, {})
    except UsageError as error:
        raise UsageError(str(error).removeprefix("side a: ")) from None
    return GateCell(test, given, sweep, cell)


def _in_words_of_a_spec(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with `examples=64`, how many a step of the user's own trains on, as the `amount` that it is."""
    if EXAMPLES.many not in values:
        return dict(values)
    if "step" not in values:
        raise UsageError("examples: belongs to step, a training step of your own; for a model give batch_size")
    if "amount" in values:
        raise UsageError("amount: given beside examples, which says the same")
    if (quantity := values.get("quantity", EXAMPLES.many)) != EXAMPLES.many:
        raise UsageError(f"examples: given beside quantity {quantity!r}; give amount, how many {quantity} a step does")
    return {"amount" if key == EXAMPLES.many else key: value for key, value in values.items()}
