"""Every spec in benchmarks/ loads, expands, says how to run it, and has an exact spelling in flags."""

import json
import tomllib
from pathlib import Path

import pytest

from benchmarks.suite import read_spec
from harness.cli import run
from harness.cli.sweep import read_values
from harness.run.request import asked_matrix
from harness.spec import expand, load_sweep, sweep_from
from harness.trial.engines import catalogue_of

ROOT = Path(__file__).parents[2]
OF_OTHER_VERBS = ("faults",)
"""Specs that are no sweeps; their verbs' tests have them."""
SPECS = [path for path in sorted((ROOT / "benchmarks").glob("*.toml")) if path.stem not in OF_OTHER_VERBS]
NAMED = ["default", "weak_scaling", "strong_scaling", "cross_device_ops", "eight_gpus"]


def flags_of(spec: Path) -> list[str]:
    """The flags that spell the spec."""
    flags = []
    for key, value in tomllib.loads(spec.read_text()).items():
        values = value if isinstance(value, list) else [value]
        text = ",".join(str(item).lower() if isinstance(item, bool) else str(item) for item in values)
        flags += [f"--{key.replace('_', '-')}", text]
    return flags


def test_the_specs_that_the_readme_promises_are_there() -> None:
    assert {path.stem for path in SPECS} >= set(NAMED)


def test_the_default_spec_is_the_one_that_a_sweep_without_a_spec_runs() -> None:
    packaged = ROOT / "harness" / "spec" / "default.toml"
    assert (ROOT / "benchmarks" / "default.toml").read_bytes() == packaged.read_bytes()


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_a_spec_loads_and_expands_with_its_base_cases(spec: Path) -> None:
    sweep = sweep_from(load_sweep(spec), spec.name)
    matrix = asked_matrix(sweep)
    assert matrix.cells
    assert any(cell.strategy == "none" for cell in matrix.cells), "a base case is always measured"
    assert sweep.name == spec.stem


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_a_spec_says_what_it_is_for_and_how_to_run_it(spec: Path) -> None:
    comment = [line for line in spec.read_text().splitlines() if line.startswith("#")]
    assert len(comment) >= 2
    own_command = f"harness sweep benchmarks/{spec.name}"
    assert own_command in spec.read_text() or spec.stem in ("default", "suite")


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_flags_and_the_spec_are_two_spellings_of_one_sweep(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", str(spec), "--dry-run", "--json"]) == 0
    from_file = json.loads(capsys.readouterr().out)
    assert run(["sweep", *flags_of(spec), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == from_file
    flags = dict(zip((flag[2:].replace("-", "_") for flag in flags_of(spec)[::2]), flags_of(spec)[1::2], strict=True))
    assert sweep_from(read_values(None, flags)[0]) == sweep_from(load_sweep(spec))


def test_strong_scaling_lists_what_the_replicas_do_not_divide() -> None:
    sweep = sweep_from(load_sweep(ROOT / "benchmarks" / "strong_scaling.toml"))
    matrix = expand(sweep, catalogue_of())
    assert any("3 replicas do not divide" in left.reason for left in matrix.left_out)
    assert {cell.global_batch_size for cell in matrix.cells} == {128, 512}


@pytest.mark.parametrize("engines", [["torch"], ["tensorflow", "torch"]])
def test_the_suite_has_the_cells_that_a_sweep_of_the_spec_has(engines: list[str], tmp_path: Path) -> None:
    spec = tmp_path / "engines.toml"
    spec.write_text(f'engine = {engines}\nstrategy = ["none", "data_parallel"]\nworkers = [1, 2]\nreplicas = [1]\n')
    matrix = asked_matrix(sweep_from(load_sweep(spec)))
    _, cells = read_spec(spec)
    assert {cell.cell_id for cell in cells.values()} == {cell.cell_id for cell in matrix.cells} - matrix.added_base


def test_the_eight_gpu_spec_covers_every_op_at_every_replica_count() -> None:
    sweep = sweep_from(load_sweep(ROOT / "benchmarks" / "eight_gpus.toml"))
    catalogue = catalogue_of()
    cells = expand(sweep, catalogue).cells
    mirrored = {(cell.replicas, cell.cross_device_op) for cell in cells if cell.strategy == "mirrored"}
    taken = [
        op for op, traits in catalogue.cross_device_ops.items() if "mirrored" in (traits.strategies or ["mirrored"])
    ]
    assert "ring" not in taken
    assert mirrored >= {(n, op) for n in (2, 4, 8) for op in taken}


def test_packing_is_swept_where_an_op_takes_it_and_listed_where_not() -> None:
    sweep = sweep_from(load_sweep(ROOT / "benchmarks" / "cross_device_ops.toml"))
    matrix = expand(sweep, catalogue_of())
    packings = {(cell.cross_device_op, cell.packing) for cell in matrix.cells if cell.replicas == 2}
    assert packings == {
        ("auto", "bytes_per_pack=0"),
        ("auto", "bytes_per_pack=262144"),
        ("nccl", "num_packs=0"),
        ("nccl", "num_packs=1"),
        ("nccl", "num_packs=4"),
        ("hierarchical_copy", "num_packs=0"),
        ("hierarchical_copy", "num_packs=1"),
        ("hierarchical_copy", "num_packs=4"),
        ("reduction_to_one_device", "default"),
    }
    assert any("reduction_to_one_device takes no num_packs" in left.reason for left in matrix.left_out)
