"""Blocks: one trial of every cell in groups that have their base case, shuffled by a seed and sealed."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.plan import beside_bases, make_plan, missing_groups
from harness.plan.blocks import MAX_LIVE
from harness.record.manifest import PlanRecord
from harness.spec import Cell
from tests.record.examples import cell


def cells_of(batches: tuple[int, ...] = (8,), replicas: tuple[int, ...] = (2, 3), model: str = "mlp") -> list[Cell]:
    """Mirrored cells with their base cases, in the matrix's order: bases first within a batch size."""
    found: dict[Cell, None] = {}
    for batch in batches:
        mirrored = [cell(batch_size=batch, replicas=n, global_batch_size=n * batch, model=model) for n in replicas]
        found |= dict.fromkeys([mirrored[0].base, *mirrored])
    return list(found)


def on_all_cores(of: Cell) -> Cell:
    """No strategy on the whole machine, beside `of`."""
    return of.base.model_copy(update={"intra_op_threads": 4})


def ids(cells: list[Cell]) -> list[str]:
    return [item.cell_id for item in cells]


def by_id(cells: list[Cell]) -> dict[str, Cell]:
    return {item.cell_id: item for item in cells}


def flat(block: list[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(block))


def test_a_block_has_one_trial_of_every_cell() -> None:
    cells = cells_of()
    plan = make_plan(cells, 3, seed=1, live={})
    assert [sorted(flat(block)) for block in plan.blocks] == [sorted(ids(cells))] * 3


def test_the_same_seed_gives_the_same_plan_and_another_seed_another_order() -> None:
    cells = cells_of((8, 16, 32), (2, 3, 4))
    assert make_plan(cells, 4, 1, {}) == make_plan(cells, 4, 1, {})
    assert make_plan(cells, 4, 1, {}).blocks != make_plan(cells, 4, 2, {}).blocks


def test_the_order_differs_from_block_to_block() -> None:
    plan = make_plan(cells_of((8, 16), (2, 3, 4, 5)), 4, 1, {})
    assert len({tuple(block[0]) for block in plan.blocks}) == 4


def test_the_plan_does_not_touch_the_random_numbers_of_others() -> None:
    random.seed(5)
    before = random.getstate()
    make_plan(cells_of(), 4, 1, {})
    assert random.getstate() == before


def test_more_trials_keep_the_first_blocks_as_they_were() -> None:
    cells = cells_of((8, 16))
    assert make_plan(cells, 5, 1, {}).blocks[:3] == make_plan(cells, 3, 1, {}).blocks


def test_the_seal_covers_everything_that_was_planned() -> None:
    plan = make_plan(cells_of(), 2, 1, {})
    assert len(plan.sha256) == 64
    changes: list[dict[str, object]] = [
        {"seed": 2},
        {"stage": 2},
        {"first_block": 1},
        {"blocks": list(reversed(plan.blocks))},
    ]
    for change in changes:
        with pytest.raises(ValidationError, match="was changed after the plan was made"):
            PlanRecord.model_validate({**plan.model_dump(), **change})


def test_cells_that_nobody_would_compare_are_in_groups_of_their_own() -> None:
    mlp, cnn = cells_of(model="mlp"), cells_of(model="mnist_cnn")
    [block] = make_plan([*mlp, *cnn], 1, 1, {}).blocks
    assert sorted(sorted(group) for group in block) == sorted([sorted(ids(mlp)), sorted(ids(cnn))])


def test_a_device_kind_that_allows_one_live_trial_gets_groups_of_one() -> None:
    cells = cells_of()
    [block] = make_plan(cells, 1, 1, {"virtual-cpu": 1}).blocks
    assert sorted(block) == sorted([cell_id] for cell_id in ids(cells))


def test_nothing_limits_a_group_but_the_largest_size() -> None:
    cells = cells_of(replicas=tuple(range(2, 2 + 2 * MAX_LIVE)))
    [block] = make_plan(cells, 1, 1, {}).blocks
    assert max(len(group) for group in block) == MAX_LIVE


def test_cells_of_two_precisions_that_fit_no_group_together_meet_over_the_blocks() -> None:
    cells = cells_of((8, 16))
    half = [item.model_copy(update={"precision": "mixed_bfloat16"}) for item in cells]
    known = by_id([*cells, *half])
    plan = make_plan([*cells, *half], 6, 1, {"virtual-cpu": 6})
    groups = [{known[i].precision for i in group} for block in plan.blocks for group in block]  # type: ignore[attr-defined]
    assert {"float32", "mixed_bfloat16"} in groups
    assert all(len(flat(block)) == len(known) for block in plan.blocks), "no base case runs twice for it"


@pytest.mark.parametrize(("replicas", "size"), [((2, 3, 4), 4), ((2, 3, 4, 5, 6, 7), 4), ((2, 3), 2), ((2,), 2)])
def test_precisions_that_fill_groups_of_their_own_meet_through_their_base_cases_in_every_block(
    replicas: tuple[int, ...], size: int
) -> None:
    cells = cells_of(replicas=replicas)
    half = [item.model_copy(update={"precision": "mixed_bfloat16"}) for item in cells]
    plan = make_plan([*cells, *half], 3, 1, {"virtual-cpu": size})
    both = {cells[0].cell_id, half[0].cell_id}
    for block in plan.blocks:
        assert [set(group) for group in block].count(both) == 1
        assert max(len(group) for group in block) == size


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(2, 9), min_size=1, max_size=6, unique=True),
    st.integers(2, 7),
    st.integers(0, 99),
)
def test_every_group_is_within_its_size_and_has_the_base_case_of_each_of_its_cells(
    batches: list[int], replicas: list[int], size: int, seed: int
) -> None:
    cells = cells_of(tuple(batches), tuple(replicas))
    known = by_id(cells)
    [block] = make_plan(cells, 1, seed, {"virtual-cpu": size}).blocks
    for group in block:
        assert len(set(group)) == len(group) <= size
        assert {known[cell_id].base.cell_id for cell_id in group} <= set(group)
    ran = flat(block)
    assert set(ran) == set(known)
    for item in cells:
        assert item.strategy == "none" or ran.count(item.cell_id) == 1


def test_a_second_stage_has_each_cells_own_number_of_trials_beside_its_base_case() -> None:
    base, two, three = cells_of()
    plan = make_plan([base, two, three], {two.cell_id: 2, three.cell_id: 1}, 1, {}, stage=2, first_block=4)
    assert (plan.stage, plan.first_block) == (2, 4)
    assert [set(flat(block)) for block in plan.blocks] == [set(ids([base, two, three])), set(ids([base, two]))]


def test_a_second_stage_is_shuffled_anew() -> None:
    cells = cells_of((8, 16), (2, 3, 4, 5))
    assert make_plan(cells, 2, 1, {}, stage=2).blocks != make_plan(cells, 2, 1, {}, stage=1).blocks


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_what_is_missing_of_a_group_runs_again_beside_its_base_case(done: int) -> None:
    cells = cells_of()
    group = ids(cells)
    missing = missing_groups([group], set(group[:done]), by_id(cells))
    assert missing == {0: [group], 1: [group], 2: [[group[0], group[2]]], 3: []}[done]


def test_a_group_that_is_complete_does_not_run_again_though_its_base_case_is_in_another() -> None:
    base, two, three = cells_of()
    block = [[base.cell_id, two.cell_id], [base.cell_id, three.cell_id]]
    missing = missing_groups(block, {base.cell_id, two.cell_id}, by_id([base, two, three]))
    assert missing == [[base.cell_id, three.cell_id]]


def test_what_can_never_run_is_not_even_run_as_a_base_case() -> None:
    base, two, three = cells_of()
    group = ids([base, two, three])
    known = by_id([base, two, three])
    assert missing_groups([group], set(), known, never={base.cell_id}) == [[two.cell_id, three.cell_id]]
    assert missing_groups([group], {two.cell_id}, known, never={base.cell_id}) == [[three.cell_id]]
    assert missing_groups([group], set(), known, never=set(group)) == []


def test_what_is_left_of_a_split_group_gets_each_base_case_just_before_it() -> None:
    base8, two8, three8, base16, two16 = cells_of((8,), (2, 3)) + cells_of((16,), (2,))
    known = by_id([base8, two8, three8, base16, two16])
    split = beside_bases(ids([two8, two16, three8]), known)
    assert split == ids([base8, two8, base16, two16, three8])
    assert beside_bases(ids([base8]), known) == ids([base8])
    assert beside_bases(ids([two8]), known, never={base8.cell_id}) == ids([two8])


def test_a_group_that_had_to_be_split_has_both_base_cases_beside_its_cells() -> None:
    one, two, three = cells_of()
    cells = [one, whole := on_all_cores(two), two, three]
    [block] = make_plan(cells, 1, 1, {"virtual-cpu": 3}).blocks
    assert sorted(sorted(group) for group in block) == sorted(sorted(ids([one, whole, cell])) for cell in (two, three))
    assert beside_bases(ids([three]), by_id(cells)) == ids([one, whole, three])
    assert missing_groups([ids(cells)], set(ids([one, whole, two])), by_id(cells)) == [ids([one, whole, three])]


def test_groups_with_room_for_one_base_case_have_the_one_device() -> None:
    one, two, three = cells_of()
    [block] = make_plan([one, whole := on_all_cores(two), two, three], 1, 1, {"virtual-cpu": 2}).blocks
    assert {frozenset(ids([one, two])), frozenset(ids([one, three]))} <= set(map(frozenset, block))
    assert whole.cell_id in flat(block)


def of_two_loops(batch: int) -> list[Cell]:
    """Workers of two loops, after the only cell without a strategy that they are compared with."""
    of = {"engine": "torch", "strategy": "data_parallel", "replicas": 1, "batch_size": batch}
    counts = [(loop, n) for loop in ("ddp", "all_reduce") for n in (2, 3)]
    workers = [cell(**of, loop=loop, workers=n, global_batch_size=batch * n) for loop, n in counts]
    return [workers[0].base, *workers]


@pytest.mark.parametrize("size", [2, 3, 64])
def test_loops_whose_base_case_is_one_cell_have_it_beside_them_and_meet_others_through_it(size: int) -> None:
    few, many = of_two_loops(8), of_two_loops(16)
    bases = {of.cell_id: family[0].cell_id for family in (few, many) for of in family}
    [block] = make_plan([*few, *many], 1, 1, {"virtual-cpu": size}).blocks
    for group in block:
        assert {bases[cell_id] for cell_id in group} <= set(group)
        assert len(set(group)) == len(group) <= size
    assert set(flat(block)) == set(bases)
    assert any(set(bases.values()) <= set(group) for group in block)
    split = beside_bases(ids(few[:0:-1]), by_id(few))
    assert split == ids([few[0], *few[:0:-1]])
