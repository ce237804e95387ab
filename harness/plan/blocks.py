"""Blocks: one fresh trial of every cell, in groups that are alive together and take turns."""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from harness.record.manifest import PlanRecord
from harness.spec.cell import Cell
from harness.spec.expand import base_of
from harness.spec.grouping import TAKING_TURNS, apart

MAX_LIVE = 64
"""Trials of a group when nothing else limits it: more would put minutes between a cell's turns."""

Blocks = list[list[list[str]]]


def make_plan(
    cells: Sequence[Cell],
    trials: Mapping[str, int] | int,
    seed: int,
    live: Mapping[str, int],
    stage: Literal[1, 2] = 1,
    first_block: int = 0,
) -> PlanRecord:
    """Plan `trials` blocks (a number for all cells, or one a cell id), sealed.

    `live` is the largest group a device kind allows. Cells that nobody would compare (another
    model, data, device: `grouping.TAKING_TURNS`) are in groups of their own; every group has its base case.
    """
    wanted = {cell.cell_id: trials if isinstance(trials, int) else trials.get(cell.cell_id, 0) for cell in cells}
    blocks: Blocks = []
    for number in range(max(wanted.values(), default=0)):
        present = [cell for cell in cells if wanted[cell.cell_id] > number]
        shuffler = random.Random(f"{seed}/{stage}/{number}")
        blocks.append(_groups(present, cells, live, shuffler))
    return PlanRecord.sealed(seed, stage, blocks, first_block)


def missing_groups(
    block: Sequence[Sequence[str]], done: Collection[str], cells: Mapping[str, Cell], never: Collection[str] = ()
) -> list[list[str]]:
    """What of a block is still to run: unfinished cells, each with its base case beside it.

    Cells in `never` are not run, not even as a base case.
    """
    groups = []
    for group in block:
        possible = [cell_id for cell_id in group if cell_id not in never]
        missing = [cell_id for cell_id in possible if cell_id not in done]
        if missing and len(missing) < len(possible):
            bases = {base_of(cells[cell_id]).cell_id for cell_id in missing}
            missing = [cell_id for cell_id in possible if cell_id in missing or cell_id in bases]
        if missing:
            groups.append(missing)
    return groups


def beside_bases(group: Sequence[str], cells: Mapping[str, Cell], never: Collection[str] = ()) -> list[str]:
    """`group` with each cell's base case just before it, for a group that had to be split."""
    beside: dict[str, None] = {}
    for cell_id in group:
        base = base_of(cells[cell_id]).cell_id
        if base in cells and base not in never:
            beside[base] = None
        beside[cell_id] = None
    return list(beside)


def _groups(
    present: Sequence[Cell], cells: Iterable[Cell], live: Mapping[str, int], shuffler: random.Random
) -> list[list[str]]:
    known = {cell.cell_id for cell in cells}
    comparable: dict[tuple[object, ...], list[Cell]] = {}
    for cell in present:
        comparable.setdefault(apart(cell, TAKING_TURNS), []).append(cell)
    groups = [
        group
        for members in comparable.values()
        for group in _split(members, min(MAX_LIVE, live.get(members[0].shape.device, MAX_LIVE)), known)
    ]
    for group in groups:
        shuffler.shuffle(group)
    shuffler.shuffle(groups)
    return groups


def _split(members: list[Cell], size: int, known: set[str]) -> list[list[str]]:
    """Groups of at most `size`; a base case is repeated in every group that needs it when size allows."""
    if size <= 1:
        return [[cell.cell_id] for cell in members]
    groups: list[list[str]] = []
    current: list[str] = []
    for cell in members:
        base = base_of(cell).cell_id
        needed = [i for i in dict.fromkeys((base, cell.cell_id)) if i in known and i not in current]
        if current and len(current) + len(needed) > size:
            groups.append(current)
            current = []
            needed = [i for i in dict.fromkeys((base, cell.cell_id)) if i in known]
        current.extend(needed)
    only_bases = {base_of(cell).cell_id for cell in members}
    if current and not (groups and set(current) <= only_bases and all(any(i in g for g in groups) for i in current)):
        groups.append(current)
    return groups
