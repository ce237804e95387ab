"""Two cells that differ in one axis only, for every axis of the table: an entry says which values, and beside what."""

from typing import Any

from harness.engines.tensorflow.catalogue import load_catalogue
from harness.spec import Sweep, expand, sweep_from
from harness.spec.axes import TABLE
from harness.spec.cell import TrainingCell
from harness.spec.grouping import SIZE

CATALOGUE = load_catalogue()
PLAIN: dict[str, Any] = {"model": "mlp", "optimizer": "sgd", "strategy": "none", "replicas": 1, "batch_size": 8}


def asked(key: str, value: Any) -> dict[str, Any]:
    """The keys of a spec that ask for one value of an axis."""
    if not TABLE[key].kinds:
        return {key: value}
    kind, _, count = value.partition("=")
    return {kind: int(count)}


def spec_of(key: str, value: Any) -> Sweep:
    """The spec of one cell with `value` of the axis, beside what the entry tries it with."""
    with_it: dict[str, Any] = {}
    for other, of in TABLE[key].tried_with.items():
        with_it |= asked(other, of)
    return sweep_from({**PLAIN, **with_it, **asked(key, value)})


def only_cell(sweep: Sweep) -> TrainingCell:
    """The cell that `sweep` asks for."""
    matrix = expand(sweep, CATALOGUE)
    [cell] = [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    assert isinstance(cell, TrainingCell)
    return cell


def pair_of(key: str) -> tuple[TrainingCell, TrainingCell]:
    """A cell at each of the entry's two values, equal in all else but the batch size that follows."""
    a, b = (only_cell(spec_of(key, value)) for value in TABLE[key].tried)
    differing = {name for name in TrainingCell.model_fields if getattr(a, name) != getattr(b, name)}
    assert key in differing <= {key, SIZE}, f"the two cells of '{key}' differ in {differing}"
    return a, b
