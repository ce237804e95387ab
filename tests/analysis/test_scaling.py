"""Speed-up and efficiency against both base cases."""

from typing import Any

import pytest

from harness.analysis import CellSummary, RunSummary, summarise
from harness.record.trial import TrialRecord
from harness.spec.work import Cell
from tests.synthetic import default_cells, make_cell, make_run, true_step_time


def of(summary: RunSummary, label: str) -> CellSummary:
    return next(cell for cell in summary.cells if cell.label == label)


def test_weak_scaling_compares_with_the_base_at_the_same_batch_of_one_replica() -> None:
    summary = summarise(*make_run(noise=0.0, physical=4))
    cell = of(summary, "mirrored ×2 b32")
    assert cell.vs_none is not None
    assert summary.by_id[cell.vs_none.base_id].label == "none ×1 b32"
    truth = 2 * true_step_time(make_cell("none"), 4) / true_step_time(make_cell("mirrored", 2), 4)
    assert cell.vs_none.speed_up.value == pytest.approx(truth)
    assert cell.vs_none.efficiency.value == pytest.approx(truth / 2)
    assert cell.vs_none.log_ratio.method == "paired t"


def test_strong_scaling_compares_with_the_base_at_the_same_global_batch() -> None:
    cells = [make_cell("none", 1, 96, batch_scope="global"), make_cell("mirrored", 3, 96, batch_scope="global")]
    summary = summarise(*make_run(cells, noise=0.0, physical=4, faults=False))
    cell = of(summary, "mirrored ×3 b96 global")
    assert cell.vs_none is not None
    truth = true_step_time(cells[0], 4) / true_step_time(cells[1], 4)
    assert cell.vs_none.speed_up.value == pytest.approx(truth)
    assert cell.vs_none.efficiency.value == pytest.approx(truth / 3)


def test_where_replicas_share_processors_the_bound_is_the_number_of_processors() -> None:
    cell = of(summarise(*make_run(physical=2)), "mirrored ×3 b32")
    assert cell.vs_none is not None
    assert cell.vs_none.shared
    assert (cell.vs_none.ideal, cell.vs_none.bound) == (3, 2)
    assert cell.vs_none.resource_efficiency.value == pytest.approx(cell.vs_none.speed_up.value / 2)
    assert cell.vs_none.efficiency.value == pytest.approx(cell.vs_none.speed_up.value / 3)


def test_a_cluster_is_bounded_by_the_processors_of_all_its_hosts_and_its_base_by_its_own() -> None:
    of_hosts = {2: 2, 8: 4}  # processors, by replicas: two workers on one host, eight on two

    def change(trial: TrialRecord) -> TrialRecord:
        processors = of_hosts.get(trial.cell.replicas_in_sync, 2)
        resources = trial.resources.model_copy(update={"physical_devices": processors})
        return trial.model_copy(update={"resources": resources})

    cells = [make_cell("multi_worker_mirrored", 1, workers=n) for n in of_hosts]
    summary = summarise(*make_run(cells, faults=False, change=change))
    scaling = of(summary, "multi_worker_mirrored 8 workers ×1 b32").vs_own
    assert scaling is not None
    assert (scaling.n0, scaling.ideal, scaling.bound) == (2, 4, 2)


def test_the_own_base_is_the_strategy_at_one_replica_and_serves_every_op() -> None:
    summary = summarise(*make_run())
    for label in ("mirrored ×2 b32", "mirrored ×3 b32 reduction_to_one_device"):
        cell = of(summary, label)
        assert cell.vs_own is not None
        assert summary.by_id[cell.vs_own.base_id].label == "mirrored ×1 b32"


def test_without_one_replica_the_own_base_is_the_same_ops_smallest_count() -> None:
    cells = [cell for cell in default_cells((2, 4), (32,)) if cell.strategy in ("none", "mirrored")]
    cell = of(summarise(*make_run(cells, faults=False, noise=0.0, physical=4)), "mirrored ×4 b32 nccl")
    assert cell.vs_own is not None
    assert cell.vs_own.n0 == 2
    assert cell.vs_own.ideal == 2
    assert cell.vs_own.efficiency.value == pytest.approx(cell.vs_own.speed_up.value / 2)


def test_a_base_has_no_speed_up_over_itself_and_a_failed_cell_has_none_at_all() -> None:
    summary = summarise(*make_run())
    assert of(summary, "none ×1 b32").vs_none is None
    assert of(summary, "mirrored ×1 b32").vs_own is None
    assert of(summary, "mirrored ×3 b32 hierarchical_copy").vs_none is None


def server(workers: int, ps: int, **changes: Any) -> Cell:
    """Workers that update `ps` parameter servers, each by itself."""
    return make_cell("parameter_server", 1, workers=workers, ps=ps, global_batch_size=32, **changes)


def bases(cells: list[Cell]) -> dict[str, str]:
    """Each cell's own base, by label; without those that have none."""
    summary = summarise(*make_run([make_cell("none"), *cells], faults=False))
    return {cell.label: summary.by_id[cell.vs_own.base_id].label for cell in summary.cells if cell.vs_own}


def test_workers_scale_on_their_own_number_of_servers_partitioner_and_kind_of_updates() -> None:
    cells = [server(workers, ps) for ps in (1, 2) for workers in (1, 2)]
    cells += [
        server(workers, 2, **{key: value})
        for workers in (1, 2)
        for key, value in (("partitioner", "min_size"), ("updates", "keras"))
    ]
    assert bases(cells) == {
        label: label.replace("2 workers", "1 workers") for label in (cell.label for cell in cells if cell.workers == 2)
    }


def test_where_one_count_has_two_shapes_the_own_base_has_as_many_replicas_a_worker() -> None:
    shapes = ((1, 2), (2, 1), (2, 2), (4, 1))
    cells = [make_cell("multi_worker_mirrored", replicas, workers=workers) for workers, replicas in shapes]
    assert bases(cells) == {
        "multi_worker_mirrored 2 workers ×2 b32": "multi_worker_mirrored ×2 b32",
        "multi_worker_mirrored 4 workers ×1 b32": "multi_worker_mirrored 2 workers ×1 b32",
    }


def over_none(*cells: Cell) -> dict[str, str]:
    """Of each cell what its speed-up over no strategy is over, by labels."""
    summary = summarise(*make_run(list(cells), faults=False))
    return {cell.label: summary.by_id[cell.vs_none.base_id].label for cell in summary.cells if cell.vs_none}


def test_where_no_strategy_was_measured_under_one_loop_it_is_the_base_of_every_loop_but_tensorflows() -> None:
    of = {"engine": "torch", "workers": 2}
    workers = [make_cell("data_parallel", 1, loop=loop, **of) for loop in ("ddp", "all_reduce")]
    first, second = (cell.base for cell in workers)
    assert over_none(first, *workers) == {cell.label: first.label for cell in workers}
    assert over_none(first, second, *workers) == {cell.label: cell.base.label for cell in workers}, "as in earlier runs"
    fit = make_cell("mirrored", 2, loop="fit")
    assert over_none(make_cell("none"), fit) == {}, "custom is another program"
