"""Cells that somebody chose, measured beside their base cases."""

from pathlib import Path
from unittest import mock

from harness.run.kinds.measure import measure
from harness.run.request import asked_matrix
from harness.spec import Matrix, sweep_from
from harness.spec.bases import known_bases


def test_chosen_cells_of_several_loops_have_one_base_case_where_loops_make_no_difference_to_it(tmp_path: Path) -> None:
    workers = {"strategy": "data_parallel", "replicas": 1, "workers": 2, "loop": ["ddp", "all_reduce"]}
    sweep = sweep_from({"engine": "torch", **workers})
    whole = asked_matrix(sweep)
    chosen = [cell for cell in whole.cells if cell.cell_id not in whole.added_base]
    room = "harness.run.kinds.measure"
    with mock.patch(f"{room}.measure_matrix") as measured, mock.patch(f"{room}.load_run"):
        measure(sweep, chosen, tmp_path)
    matrix: Matrix = measured.call_args.args[1]
    assert len(matrix.added_base) == len(whole.added_base)
    bases_of = known_bases(matrix.cells)
    assert all({*bases_of(cell)} == matrix.added_base for cell in chosen)
