"""The gate's matrix: which cells it has, how they are counted, and that a right and a wrong one end as they should."""

import gzip
import json
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

GOALS = Path(__file__).parents[2] / "benchmarks" / "goals"
sys.path.append(str(GOALS))  # where a goal's script finds its neighbours

import gate_cells as cells  # noqa: E402
import gate_matrix as matrix  # noqa: E402
from gate_case import OPTIMIZERS  # noqa: E402
from gate_faults import FAULTS, START  # noqa: E402
from gate_models import NAMES  # noqa: E402
from gate_own import DATA  # noqa: E402


def right(model: str = "dense", strategy: str = "mirrored_2", mode: str = "float32") -> cells.Case:
    return cells.Case(model, "adam", strategy, mode)


def faulty(fault: str, start: str = "early", mode: str = "float32") -> cells.Case:
    return cells.Case("dense", "adam", "mirrored_2", mode, fault, start)


def test_the_sample_has_every_model_optimizer_and_fault_in_every_strategy_and_mode() -> None:
    sample = cells.sample()
    keys = [case.key for case in sample]
    assert len(set(keys)) == len(keys)
    assert len(NAMES) >= 40
    assert len(FAULTS) >= 25
    for name in NAMES:
        assert {right(name, *side).key for side in [*cells.SIDES, *cells.LATER]} <= set(keys)
    for name in DATA:
        assert {right(name, strategy).key for strategy in cells.SHARED} <= set(keys)
    for name in OPTIMIZERS:
        assert {case.strategy for case in sample if case.optimizer == name and not case.fault} == set(cells.STRATEGIES)
    for name, fault in FAULTS.items():
        mine = {(case.strategy, case.mode, case.start) for case in sample if case.fault == name}
        absent = ([] if fault.alone else ["none"]) + (["central_2"] if fault.copies else [])
        sides = [side for side in [*cells.SIDES, *cells.LATER] if side[0] not in absent]
        assert mine == {(*side, start) for side in sides for start in START}


def test_a_case_is_read_back_from_its_key_and_parts_share_the_sample_out() -> None:
    sample = cells.sample()
    assert [cells.case_of(case.key) for case in sample] == sample
    parts = [sample[i::3] for i in range(3)]
    assert sorted(case.key for part in parts for case in part) == sorted(case.key for case in sample)


def test_an_alarm_is_a_right_model_called_wrong_and_a_miss_a_fault_called_ok() -> None:
    ends = [(right(), "ok"), (right(), "wrong_result"), (right(), "unproved"), (right(), "unsupported")]
    assert cells.tally([*ends, (right(), "crashed")]) == cells.Tally(1, 2, 1, 1, 1)
    ends = [(faulty("missing"), "wrong_result"), (faulty("missing"), "ok"), (faulty("missing"), "timeout")]
    assert cells.tally(ends) == cells.Tally(1, 2, 0, 0, 1)


def test_limits_are_those_of_clopper_and_pearson() -> None:
    assert cells.Tally(0, 60, 0, 0, 0).row[:3] == ("60", "0", "0.0 – 6.0 %")
    assert cells.Tally(0, 0, 0, 3, 0).row[:3] == ("0", "0", "0.0 – 100.0 %")


def test_a_slight_fault_is_found_from_the_size_from_which_no_grosser_one_was_missed() -> None:
    ends = {
        "scale_0p1": "wrong_result",
        "scale_0p03": "wrong_result",
        "scale_0p01": "ok",
        "scale_0p003": "wrong_result",
    }
    assert cells.found_from([(faulty(name), end) for name, end in ends.items()], "scale") == 0.03
    assert cells.found_from([(faulty("scale_0p1"), "unproved")], "scale") is None
    assert cells.found_from([], "scale") is None


def test_a_line_that_was_cut_off_is_run_again_and_the_last_of_a_cell_counts(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    assert matrix.read(file) == {}
    file.write_text('{"key": "a", "status": "ok"}\n{"key": "a", "status": "crashed"}\n{"key": "b", "sta')
    assert matrix.read(file) == {"a": {"key": "a", "status": "crashed"}}


def test_the_page_of_the_gate_says_how_many_right_cells_were_judged_and_how_often_at_most_one_is_called_wrong() -> None:
    with gzip.open(GOALS / "gate_matrix.jsonl.gz", "rt", encoding="utf-8") as file:
        ends = {each["key"]: each["status"] for each in map(json.loads, file)}
    judged, wrong, limits, *_ = cells.tally(cells.grouped(ends, "kind")["right",]).row
    page = (GOALS.parents[1] / "docs" / "gate.md").read_text(encoding="utf-8")
    _, page = page.split("## How often it is wrong")
    figures = re.findall(r"\d[\d.]*", page.split("right model", 1)[1])
    assert wrong == "0"
    assert figures[:2] == [judged, limits.split()[2]]


@pytest.mark.slow
def test_a_right_model_is_ok_a_dropped_replica_is_not_and_state_that_nobody_knows_leaves_it_unproved(
    preloaded: Callable[[], AbstractContextManager[None]], tmp_path: Path
) -> None:
    expected = {
        "dense__sgd__missing__early/mirrored_2/float32": "wrong_result",
        "raw_moving__sgd/mirrored_2/float32": "unproved",
        "batch_renorm__sgd/workers_2/float32": "unproved",
        "own_weighted__sgd/mirrored_2/float32": "ok",
    }
    with preloaded():
        matrix.run([cells.case_of(key) for key in expected], tmp_path / "results.jsonl")
    done = matrix.read(tmp_path / "results.jsonl")
    assert {key: result["status"] for key, result in done.items()} == expected
