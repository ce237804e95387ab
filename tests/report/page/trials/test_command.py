"""The command that a trial's dialog shows measures that very cell: sweep itself is asked, in a dry run."""

import itertools
import shlex
from typing import Any

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.report.page.trials.command import repeat_commands
from harness.run.kinds.ab import planned_decision
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import sides_of
from harness.spec import Sweep, expand, sweep_from
from harness.spec.pipeline import CUTS
from harness.spec.work import OwnStepCell
from harness.trial.engines import catalogue_of
from tests.report.page.trials.planned import command_of, manifest_of, planned
from tests.synthetic import default_cells, make_cell


@pytest.mark.parametrize(
    "keys",
    [
        {
            "strategy": ["none", "mirrored", "central_storage"],
            "replicas": [1, 2, 3],
            "batch_size": [32, 128],
            "cross_device_op": ["auto", "nccl", "hierarchical_copy"],
        },
        {"strategy": ["mirrored"], "replicas": [4], "cross_device_op": ["hierarchical_copy"], "num_packs": [0, 4]},
        {"strategy": ["mirrored"], "replicas": [2], "bytes_per_pack": [0, 65536]},
        {"strategy": ["mirrored"], "replicas": [2, 4], "batch_scope": ["global"], "batch_size": [64]},
        {
            "strategy": ["multi_worker_mirrored"],
            "workers": [2, 3],
            "replicas": [1, 2],
            "cross_device_op": ["auto", "ring"],
        },
        {
            "strategy": ["parameter_server"],
            "workers": [2],
            "ps": [1, 2],
            "partitioner": ["none", "fixed"],
            "updates": ["locked", "keras"],
        },
        {
            "precision": ["mixed_bfloat16"],
            "xla": [True],
            "optimizer": ["sgd"],
            "loop": ["fit"],
            "data": ["synthetic"],
            "model": ["mlp", "benchmarks.own_workload:make_model"],
        },
        {
            "window": 0.05,
            "windows": 30,
            "max_warmup": 7,
            "seed": 9,
            "timeout": 300.0,
            "intra_op_threads": 2,
            "data_dir": "a folder/with 'quotes'",
            "live_trials": 3,
            "trials": 4,
            "half_width": 0.02,
        },
    ],
    ids=["ops", "packs", "bytes", "global", "workers", "servers", "workload", "settings"],
)
def test_the_command_of_every_cell_plans_that_cell_with_the_same_settings(
    keys: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = Sweep(**keys)
    for cell in expand(sweep, catalogue_of()).cells:
        found = planned(sweep, capsys, cell)
        added = set(found["base_cell_ids"])
        assert [item["cell_id"] for item in found["cells"] if item["cell_id"] not in added] == [cell.cell_id]
        assert found["trials"] == len(found["cells"])
        assert found["plan"]["seed"] == sweep.seed


def test_settings_are_named_where_they_are_not_the_default() -> None:
    command = command_of(make_cell(), manifest_of(Sweep(windows=30, window=0.05, name="mine", trials=9)))
    assert command is not None
    assert "--windows 30" in command
    assert "--window 0.05" in command
    assert "--name" not in command
    assert command.endswith("--trials 1")


@pytest.mark.parametrize(("device", "named"), [("virtual-gpu", True), ("virtual-cpu", False)])
def test_a_setting_that_some_devices_alone_read_is_named_for_cells_on_one(device: str, named: bool) -> None:
    sweep = Sweep(device=["virtual-cpu", "virtual-gpu"], gpu_memory_mb=1000)
    command = command_of(make_cell(device=device), manifest_of(sweep))
    assert command is not None
    assert ("--gpu-memory-mb 1000" in command) == named


def test_what_was_a_setting_when_an_earlier_run_was_measured_is_named_too() -> None:
    for asked, named in (([4], True), ([0], False), ([0, 4], False)):
        command = command_of(make_cell(), manifest_of(Sweep(intra_op_threads=asked)))
        assert command is not None
        assert ("--intra-op-threads 4" in command) == named


@pytest.mark.parametrize(
    ("engine", "named"), [("tensorflow", True), ("torch", False), ("jax", False), ("not.here:engine", True)]
)
def test_a_setting_that_an_engine_took_in_an_earlier_run_and_refuses_now_is_left_out(engine: str, named: bool) -> None:
    command = command_of(make_cell(engine=engine), manifest_of(Sweep(engine=[engine], inter_op_threads=2, window=0.05)))
    assert command is not None
    assert ("--inter-op-threads 2" in command, "--window 0.05" in command) == (named, True)


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        ("tensorflow", None),
        ("jax", "jax=/a,b/python"),
        ("torch", "torch=/c/python"),
        ("pkg.mod:engine", "my-engine=/d/python"),
    ],
)
def test_a_cell_of_one_of_several_engines_is_repeated_in_its_own_interpreter(engine: str, named: str | None) -> None:
    engines = ["tensorflow", "jax", "torch", "pkg.mod:engine"]
    sweep = Sweep(engine=engines, engine_python="jax=/a,b/python,torch=/c/python,my-engine=/d/python")
    words = shlex.split(command_of(make_cell(engine=engine), manifest_of(sweep)) or "")
    flags = dict(itertools.pairwise(words))
    assert (flags.get("--engine", "tensorflow"), flags.get("--engine-python")) == (engine, named)


def test_a_cell_of_a_comparison_is_repeated_with_the_engine_and_the_settings_of_its_side() -> None:
    alone = {"strategy": ["none"], "replicas": [1]}
    sides = sides_of(alone, ["engine=jax", "seed=2"], ["engine=tensorflow", "seed=3"])
    manifest = planned_decision(sides, AbSettings(Margins()), [])
    told = [dict(itertools.pairwise(shlex.split(words or ""))) for words in repeat_commands(manifest.cells, manifest)]
    assert [(of.get("--engine"), of["--seed"]) for of in told] == [("jax", "2"), (None, "3")]


def test_what_no_flag_can_say_has_no_command() -> None:
    for cell in (make_cell(model="a,b"), make_cell(data="tfds:\x1b[2J")):
        assert command_of(cell, manifest_of(Sweep())) is None


def test_a_step_of_ones_own_is_repeated_by_its_flags() -> None:
    manifest = manifest_of(Sweep(step="pkg.mod:step", amount=64, intra_op_threads=[2]))
    command = command_of(OwnStepCell(step="pkg.mod:step", amount=64), manifest)
    assert command is not None
    assert command.startswith("python -m harness sweep --step pkg.mod:step --amount 64 --intra-op-threads 2")


@pytest.mark.parametrize(
    "keys",
    [
        {"collective": ["all_gather", "broadcast"], "size": [2**16], "replicas": [2, 3]},
        {"cross_device_op": ["auto", "hierarchical_copy"], "num_packs": [2], "intra_op_threads": [2]},
    ],
)
def test_the_command_of_a_collective_plans_that_collective(
    keys: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = sweep_from({"work": "collective", **keys})
    for cell in expand(sweep, catalogue_of()).cells:
        assert [item["cell_id"] for item in planned(sweep, capsys, cell)["cells"]] == [cell.cell_id]


@pytest.mark.parametrize(
    "of",
    [{}, {"model": ["benchmarks.own_text:make_model"], "data": ["benchmarks.own_text:examples"]}],
    ids=["digits", "own"],
)
def test_the_command_of_a_pipeline_that_is_cut_off_plans_that_part_though_a_service_cannot_be_asked_for_alone(
    of: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    served = {"cache": ["none"], "deterministic": [False], "data_service": [1]}
    sweep = sweep_from({"work": "pipeline", **of, **served, "cut": [*CUTS]})
    parts = [cell for cell in expand(sweep, catalogue_of()).cells if cell.get("cut")]
    assert parts
    for cell in parts:
        assert cell.cell_id in {item["cell_id"] for item in planned(sweep, capsys, cell)["cells"]}


def test_a_hostile_name_stays_one_word_of_the_shell() -> None:
    name = "x; rm -rf / $(id) `id` 'q' \"p\""
    command = command_of(make_cell(model=name), manifest_of(Sweep()))
    assert command is not None
    assert name in shlex.split(command)


def test_the_synthetic_matrix_too_is_what_sweep_would_plan(capsys: pytest.CaptureFixture[str]) -> None:
    for cell in default_cells((1, 2), (32,)):
        assert cell.cell_id in {item["cell_id"] for item in planned(Sweep(), capsys, cell)["cells"]}
