"""Blocks: one fresh trial of every cell, in groups that are alive together and take turns."""

import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from harness.record.manifest import PlanRecord
from harness.spec.bases import BasesOf, base_among, known_bases
from harness.spec.grouping import THREADS, apart, turn_takers
from harness.spec.work import Cell

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
    model, data, device: `grouping.turn_takers`) are in groups of their own; every group has its base case.
    """
    wanted = {cell.cell_id: trials if isinstance(trials, int) else trials.get(cell.cell_id, 0) for cell in cells}
    blocks: Blocks = []
    for number in range(max(wanted.values(), default=0)):
        present = [cell for cell in cells if wanted[cell.cell_id] > number]
        shuffler = random.Random(f"{seed}/{stage}/{number}")
        blocks.append(_groups(present, cells, live, shuffler))
    return PlanRecord.sealed(seed, stage, blocks, first_block)


def part_of(plan: PlanRecord, first: int, past: int) -> PlanRecord:
    """Blocks `first` to `past` - 1 of a plan, with a seal of their own."""
    return PlanRecord.sealed(plan.seed, plan.stage, plan.blocks[first:past], plan.first_block + first)


def missing_groups(
    block: Sequence[Sequence[str]], done: Collection[str], cells: Mapping[str, Cell], never: Collection[str] = ()
) -> list[list[str]]:
    """What of a block is still to run: unfinished cells, each with its base case beside it.

    Cells in `never` are not run, not even as a base case.
    """
    groups, bases_of = [], known_bases(cells.values())
    for group in block:
        possible = [cell_id for cell_id in group if cell_id not in never]
        missing = [cell_id for cell_id in possible if cell_id not in done]
        if missing and len(missing) < len(possible):
            bases = {base for cell_id in missing for base in bases_of(cells[cell_id])}
            missing = [cell_id for cell_id in possible if cell_id in missing or cell_id in bases]
        if missing:
            groups.append(missing)
    return groups


def beside_bases(group: Sequence[str], cells: Mapping[str, Cell], never: Collection[str] = ()) -> list[str]:
    """`group` with each cell's base cases just before it, for a group that had to be split."""
    beside: dict[str, None] = {}
    bases_of = known_bases(cells.values())
    for cell_id in group:
        bases = (base for base in bases_of(cells[cell_id]) if base not in never)
        beside.update(dict.fromkeys([*bases, cell_id]))
    return list(beside)


def _groups(
    present: Sequence[Cell], cells: Sequence[Cell], live: Mapping[str, int], shuffler: random.Random
) -> list[list[str]]:
    bases_of, base_of = known_bases(cells), base_among(cells)
    comparable: dict[tuple[object, ...], list[Cell]] = {}
    for cell in present:
        comparable.setdefault(turn_takers(cell), []).append(cell)
    groups = []
    for members in comparable.values():
        size = min(MAX_LIVE, live.get(members[0].shape.device, MAX_LIVE))
        families = _families(members, base_of)
        if len(members) > size:
            # in the matrix's order those of one precision would fill a group in each block and never meet the next's
            shuffler.shuffle(families)
            members = list(itertools.chain.from_iterable(families))
        split = _split(members, size, bases_of)
        groups += [*split, *_link(families, split, size, bases_of)]
    for group in groups:
        shuffler.shuffle(group)
    shuffler.shuffle(groups)
    return groups


def _families(members: Sequence[Cell], base_of: Callable[[Cell], Cell]) -> list[list[Cell]]:
    """Cells of one base case side by side."""
    families: dict[tuple[object, ...], list[Cell]] = {}
    for cell in members:
        families.setdefault(apart(base_of(cell), THREADS), []).append(cell)
    return list(families.values())


def _link(
    families: Sequence[Sequence[Cell]], groups: Sequence[Sequence[str]], size: int, bases_of: BasesOf
) -> list[list[str]]:
    """A group of base cases where every family fills groups of its own: else its cells would meet no other's."""
    family_of = {cell.cell_id: number for number, family in enumerate(families) for cell in family}
    if any(len({family_of.get(cell_id) for cell_id in group} - {None}) > 1 for group in groups):
        return []
    bases = [base for family in families for base in bases_of(family[0])[:1]][:size]
    return [bases] if len(bases) > 1 else []


def _split(members: Sequence[Cell], size: int, bases_of: BasesOf) -> list[list[str]]:
    """Groups of at most `size`; base cases are repeated in every group that needs them when size allows."""
    if size <= 1:
        return [[cell.cell_id] for cell in members]
    groups: list[list[str]] = []
    current: list[str] = []
    for cell in members:
        beside = [*bases_of(cell)[: size - 1], cell.cell_id]
        needed = [one for one in dict.fromkeys(beside) if one not in current]
        if current and len(current) + len(needed) > size:
            groups.append(current)
            current, needed = [], list(dict.fromkeys(beside))
        current.extend(needed)
    only_bases = {base for cell in members for base in bases_of(cell)}
    if current and not (groups and set(current) <= only_bases and all(any(i in g for g in groups) for i in current)):
        groups.append(current)
    return groups
