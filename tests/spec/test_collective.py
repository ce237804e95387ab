"""Collectives as a kind of work: what a spec comes to, what cells are called, and what is refused in one line."""

from typing import Any

import pytest

from harness.errors import UsageError
from harness.plan.blocks import make_plan
from harness.run.kinds.one_cell import one_cell
from harness.spec import Matrix, sweep_from
from harness.spec.axes import TABLE, Axes
from harness.spec.cell import trained
from harness.spec.collective import COLLECTIVE, CollectiveCell, in_whole_shares
from harness.spec.engines import matrix_of
from harness.spec.work import Cell
from tests.axes import CATALOGUE, KEYS_OF_COLLECTIVES

OPS = ["auto", "hierarchical_copy", "reduction_to_one_device"]
OWN_DEFAULTS = {"cross_device_op": "auto"}
"""Of keys for which a training has no default."""


def planned(**keys: Any) -> Matrix:
    """The matrix of a sweep of collectives."""
    return matrix_of([(sweep_from({"work": "collective", **keys}), CATALOGUE)])


def cells_of(**keys: Any) -> list[CollectiveCell]:
    return [cell for cell in planned(**keys).cells if isinstance(cell, CollectiveCell)]


def test_a_sweep_of_collectives_is_every_combination_and_no_base_case() -> None:
    matrix = planned(collective=["all_reduce", "broadcast"], size=[4, 2**20], replicas=[2, 3], cross_device_op=OPS)
    assert len(matrix.cells) == 2 * 2 * 2 * 3
    assert not matrix.added_base
    assert not matrix.left_out
    assert len({cell.cell_id for cell in matrix.cells}) == len({cell.label for cell in matrix.cells}) == 24
    assert len({cell.full_name for cell in matrix.cells}) == len({cell.short_name for cell in matrix.cells}) == 24
    assert all(cell.base == cell for cell in matrix.cells)


def test_without_more_it_is_an_all_reduce_from_four_bytes_to_64_megabytes() -> None:
    cells = cells_of()
    assert {(cell.collective, cell.strategy, cell.replicas) for cell in cells} == {("all_reduce", "mirrored", 2)}
    assert [cell.size for cell in cells] == [4, 2**12, 2**16, 2**18, 2**20, 2**22, 2**24, 2**26]


def test_a_sweep_of_collectives_asks_for_nothing_of_a_training_and_a_training_for_no_collective() -> None:
    asked = sweep_from({"work": "collective", "size": [4]})
    assert asked.asked("model") == asked.asked("data") == asked.asked("batch_size") == []
    training = sweep_from({"model": ["mlp"]})
    assert training.asked("collective") == training.asked("size") == []


def test_sizes_are_read_from_text_as_from_numbers() -> None:
    assert [cell.size for cell in cells_of(size=["4", 8, "64KiB", "1M"])] == [4, 8, 2**16, 2**20]


def test_a_step_is_the_buffer_in_bytes() -> None:
    [cell] = cells_of(size=[2**16])
    assert (cell.work.amount, cell.work.quantity.many, cell.work.quantity.unit) == (2**16, "bytes", "bytes/s")
    assert (cell.label, cell.subject) == ("all_reduce 64 KiB mirrored ×2", "all_reduce")
    assert cell.short_name == "all_reduce-64KiB-2"
    assert cell.data_set is None
    assert (cell.shape.device, cell.shape.workers, cell.replicas_in_sync, cell.devices) == ("virtual-cpu", 1, 2, 2)


@pytest.mark.parametrize("key", [key for key in KEYS_OF_COLLECTIVES if key in TABLE])
def test_a_key_that_trainings_have_too_is_of_their_type_and_default(key: str) -> None:
    own, theirs = CollectiveCell.model_fields[key], Axes.model_fields[key]
    assert COLLECTIVE in TABLE[key].works
    assert own.annotation == theirs.annotation
    assert own.metadata == theirs.metadata
    assert own.default == OWN_DEFAULTS.get(key, theirs.default)
    assert theirs.is_required() or key not in OWN_DEFAULTS


def test_a_cell_is_the_cell_that_it_was() -> None:
    [cell] = cells_of(size=[4])
    assert cell.cell_id == "a49c5c3c91e0"


def test_a_key_that_the_first_collectives_did_not_have_is_no_part_of_a_cell_at_its_default() -> None:
    [cell] = cells_of(size=[4])
    assert cell.identity().keys() == CollectiveCell.FIRST
    assert {key for key in KEYS_OF_COLLECTIVES if key not in CollectiveCell.FIRST} >= {"network", "gradients"}


def test_where_each_replica_has_a_share_the_buffer_is_cut_in_whole_elements() -> None:
    assert [in_whole_shares("all_gather", size, 3) for size in (4, 12, 2**16)] == [0, 12, 65532]
    assert in_whole_shares("all_reduce", 4, 3) == in_whole_shares("broadcast", 4, 3) == 4
    matrix = planned(collective=["all_gather"], size=[4, 2**16], replicas=[3])
    assert [cell.work.amount for cell in matrix.cells] == [65532]
    [left_out] = matrix.left_out
    assert left_out.combination == "all_gather of 4 bytes over 3 replicas"
    assert left_out.reason == "a share is one float32 or more: 12 bytes at least"


def test_counts_are_those_of_nccl_tests_and_a_gathering_replica_sends_its_share() -> None:
    told = {cell.collective: (cell.count, cell.elements) for cell in cells_of(
        collective=["all_reduce", "all_gather", "reduce_scatter", "broadcast"], size=[64], replicas=[4])}  # fmt: skip
    assert told == {"all_reduce": (16, 16), "all_gather": (4, 4), "reduce_scatter": (4, 16), "broadcast": (16, 16)}


def test_what_an_op_does_not_pack_by_is_left_out_with_the_reason() -> None:
    matrix = planned(size=[4], cross_device_op=["auto", "hierarchical_copy"], num_packs=[0, 2])
    assert [cell.get("packing") for cell in matrix.cells] == ["default", "num_packs=0", "num_packs=2"]
    assert {item.reason for item in matrix.left_out} == {"auto takes no num_packs"}


def test_ops_packings_and_sizes_of_one_collective_take_turns() -> None:
    cells = cells_of(collective=["all_reduce", "broadcast"], size=[4, 2**20], replicas=[2, 3], cross_device_op=OPS)
    [block] = make_plan(cells, 1, seed=1, live={}).blocks
    by_id = {cell.cell_id: cell for cell in cells}
    assert sorted({by_id[cell_id].collective for cell_id in group} for group in block) == [
        {"all_reduce"},
        {"broadcast"},
    ] or [{by_id[cell_id].collective for cell_id in group} for group in block] == [{"broadcast"}, {"all_reduce"}]


def test_one_ranking_holds_what_does_the_same_collective() -> None:
    cells = cells_of(size=[4, 2**20], cross_device_op=OPS)
    scopes = {tuple(cell.scope.items()) for cell in cells}
    assert len(scopes) == 2
    assert " ".join(cells[0].scope) == "kind device collective size replicas workers network quantity"
    assert cells[0].scope_label(cells) == "all_reduce of 4 B over 2 replicas, virtual-cpu"


def test_workers_take_part_with_one_replica_each_unless_more_are_asked_for() -> None:
    keys: dict[str, Any] = {"strategy": ["multi_worker_mirrored"], "workers": [2], "size": [24]}
    [cell] = cells_of(**keys)
    assert (cell.replicas, cell.workers, cell.replicas_in_sync) == (1, 2, 2)
    assert (cell.shape.workers, cell.shape.replicas, cell.devices) == (2, 1, 1)
    assert cell.label == "all_reduce 24 B multi_worker_mirrored 2 workers ×1"
    [more] = cells_of(**keys, replicas=[3], collective=["all_gather"])
    assert (more.replicas_in_sync, more.elements) == (6, 1)


def test_the_network_between_workers_is_another_cell_ranked_by_itself() -> None:
    keys: dict[str, Any] = {"strategy": ["multi_worker_mirrored"], "workers": [2], "size": [24]}
    bare, shaped = sorted(cells_of(**keys, network=["", "rate=1gbit,delay=1ms"]), key=lambda cell: cell.network)
    assert (bare.shape.network, shaped.shape.network) == ("", "rate=1gbit,delay=1ms")
    assert shaped.without_network() == bare
    assert bare.scope != shaped.scope
    assert shaped.between == "2 workers of 1 replica, virtual-cpu, rate=1gbit,delay=1ms"
    assert len({bare.cell_id, shaped.cell_id}) == len({bare.label, shaped.label}) == 2


def test_two_ops_can_be_compared_as_the_sides_of_a_decision() -> None:
    def side(op: str) -> Cell:
        return one_cell("a", {"work": "collective", "replicas": [3], "size": ["1MiB"]}, {"cross_device_op": op})[1]

    assert [side(op).label for op in ("auto", "reduction_to_one_device")] == [
        "all_reduce 1 MiB mirrored ×3",
        "all_reduce 1 MiB mirrored ×3 reduction_to_one_device",
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"data": ["digits"]}, "data: belongs to a training, and work is 'collective'"),
        ({"model": ["my:x"]}, "model: 'my:x': cannot import 'my'"),
        ({"model": ["mlp"], "collective": ["broadcast"]}, "gradients are added up: ask for all_reduce"),
        ({"batch_size": [8]}, "batch_size: belongs to a training"),
        ({"step": "mine:make"}, "step: belongs to a training"),
        ({"check": "mine:moves"}, "check: belongs to a training"),
        (
            {"strategy": ["none"]},
            "strategy: given 'none', but collectives are measured of mirrored or multi",
        ),
        ({"strategy": ["parameter_server"]}, "strategy: given 'parameter_server', but collectives are measured of"),
        ({"workers": [2], "strategy": ["mirrored"]}, "strategy 'mirrored' runs in one process"),
        ({"network": ["rate=1gbit"]}, "network: given rate=1gbit, but no strategy of this sweep has several"),
        ({"replicas": [1]}, "no combination is left to run .*one replica has nobody to send to"),
        ({"size": [5]}, "size: given 5, expected a multiple of 4"),
        ({"size": [0]}, "size: given 0, expected greater than or equal to 4"),
        ({"size": ["64 Q"]}, "size: given '64 Q', expected bytes, such as 4, 64KiB or 16MiB"),
        ({"size": ["9" * 5000]}, "size: given '99.*, expected bytes"),
        ({"collective": ["all_sum"]}, "collective: given 'all_sum', .*did you mean 'all_reduce'"),
        ({"cross_device_op": ["ring"]}, "'ring' is an op of multi_worker_mirrored"),
        ({"work": "training", "size": [4]}, "size: belongs to collectives: give work, too"),
        ({"work": "dance"}, "work: given 'dance', expected 'training', 'collective' or 'pipeline'"),
    ],
)
def test_what_a_collective_cannot_have_is_refused_in_one_line_that_names_the_key(
    keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as error:
        planned(**keys)
    assert "\n" not in str(error.value)


def test_a_collective_is_no_training() -> None:
    with pytest.raises(TypeError, match="is no training"):
        trained(cells_of()[0])


MLP_BYTES = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
"""Of the weights and biases of three dense layers."""


def test_a_models_gradients_are_one_buffer_of_all_their_bytes_in_the_place_of_sizes() -> None:
    [cell] = cells_of(model=["mlp"])
    assert (cell.gradients, cell.size, cell.collective) == ("mlp", MLP_BYTES, "all_reduce")
    assert cell.label == "all_reduce gradients of mlp mirrored ×2"
    assert cell.scope_label([]) == "all_reduce of gradients of mlp over 2 replicas, virtual-cpu"


def test_a_models_gradients_stand_beside_sizes_that_are_asked_for() -> None:
    cells = cells_of(
        model=["mlp"], size=[4, 2**30], bytes_per_pack=[1, 2**20], strategy=["multi_worker_mirrored"], workers=[2]
    )
    assert [(cell.gradients, cell.size) for cell in cells if cell.packing == "bytes_per_pack=1"] == [
        ("", 4),
        ("mlp", MLP_BYTES),
        ("", 2**30),
    ]


def test_a_buffer_that_is_one_tensor_keeps_its_identity() -> None:
    [cell] = cells_of(size=[4])
    assert "gradients" not in cell.identity()
    assert "gradients" not in cell.scope
