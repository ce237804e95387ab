"""Meshes as text: read, refused, and in one spelling; and which cells a sweep makes of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.keras_distribution.loops import loops
from harness.errors import Unsupported, UsageError
from harness.spec import Cell, Matrix, Sweep, expand
from harness.spec.mesh import Mesh, split_values
from harness.spec.text import text_of, value_from
from harness.trial.engines import catalogue_of


def cells_of(**axes: Any) -> list[Cell]:
    """The cells of a sweep of `dtensor` that are no mere base cases."""
    matrix = expand(Sweep(**{"strategy": ["dtensor"], **axes}), catalogue_of())
    return [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]


@pytest.mark.parametrize(
    ("text", "canonical", "devices"),
    [
        ("batch:4", "batch:4", 4),
        ("batch:2,model:2", "batch:2,model:2", 4),
        (" Model:2 , batch:3", "batch:3,model:2", 6),
        ("model:4", "model:4", 4),
        ("batch:2,model:1", "batch:2", 2),
        ("batch:1", "batch:1", 1),
    ],
)
def test_equal_meshes_have_one_spelling(text: str, canonical: str, devices: int) -> None:
    assert (Mesh.parse(text).text, Mesh.parse(text).devices) == (canonical, devices)
    assert Mesh.parse(canonical).text == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("batch", "expected batch:N"),
        ("batch:0", "expected batch:N"),
        ("batch:2,batch:4", "'batch' is there twice"),
        ("bach:2", "did you mean"),
        ("batch:4096,model:2", "that is 8192 devices"),
        ("batch:９", "expected batch:N"),
        ("", "expected batch:N"),
    ],
)
def test_what_is_no_mesh_is_refused_in_one_line_that_names_the_key(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Mesh.parse(text)
    assert str(caught.value).startswith("mesh: given")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("batch:4", ["batch:4"]),
        ("batch:4,batch:2,model:2", ["batch:4", "batch:2,model:2"]),
        ("batch:2,model:2,model:4", ["batch:2,model:2", "model:4"]),
        ("batch:4; model:4", ["batch:4", "model:4"]),
    ],
)
def test_a_flag_lists_meshes_whose_own_axes_a_comma_joins(flag: str, values: list[str]) -> None:
    assert split_values(flag) == values


@given(st.lists(st.builds(Mesh, st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4))
def test_a_list_of_meshes_is_read_back_as_it_was_written(meshes: list[Mesh]) -> None:
    texts = [mesh.text for mesh in meshes]
    assert [Mesh.parse(text) for text in value_from("mesh", text_of("mesh", texts))] == meshes


def test_a_replica_is_a_row_of_the_mesh_and_the_global_batch_follows_the_replicas() -> None:
    found = cells_of(replicas=[2, 4], mesh=["batch:4", "batch:2,model:2"], batch_size=[32])
    assert [(c.mesh, c.replicas, c.devices, c.global_batch_size) for c in found] == [
        ("batch:2,model:2", 2, 4, 64),
        ("batch:4", 4, 4, 128),
    ]


def test_without_a_mesh_every_device_is_a_replica() -> None:
    assert [cell.mesh for cell in cells_of(replicas=[1, 3])] == ["batch:1", "batch:3"]


def test_a_mesh_with_another_number_of_replicas_than_asked_is_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match=r"'batch:2,model:2' is 4 devices for 2 replicas .*: add 2 to replicas"):
        cells_of(replicas=[4], mesh=["batch:2,model:2"])


def test_a_number_of_replicas_that_no_mesh_has_is_left_out_with_the_reason() -> None:
    matrix = expand(Sweep(strategy=["dtensor"], replicas=[1, 2], mesh=["batch:2"]), catalogue_of())
    [left_out] = matrix.left_out
    assert left_out.reason == "no mesh that was given has 1 replicas (batch:1)"


def test_a_mesh_without_a_strategy_that_takes_one_is_refused() -> None:
    with pytest.raises(UsageError, match="no strategy of this sweep takes one: dtensor"):
        cells_of(strategy=["mirrored"], replicas=[2], mesh=["batch:2"])


def test_the_same_mesh_spelled_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="listed twice"):
        Sweep(mesh=["batch:2", "batch:2,model:1"])


def test_the_base_case_has_no_mesh() -> None:
    matrix = expand(Sweep(strategy=["dtensor"], replicas=[2], mesh=["batch:2,model:2"]), catalogue_of())
    bases = [cell for cell in matrix.cells if cell.cell_id in matrix.added_base]
    assert {(base.strategy, base.mesh, base.devices) for base in bases} == {("none", "", 1)}


def test_a_strategy_that_has_some_loops_only_is_planned_with_none_of_the_others() -> None:
    asked: dict[str, Any] = {"strategy": ["multi_process"], "workers": [2], "mesh": [], "model": ["mlp"]}
    loops = {"engine": ["keras_distribution"], "loop": ["data_parallel", "model_parallel"], **asked}
    matrix = expand(Sweep(**loops), catalogue_of("keras_distribution"))
    assert {cell.loop for cell in matrix.cells if cell.strategy == "multi_process"} == {"data_parallel"}  # type: ignore[union-attr]
    reasons = {item.combination: item.reason for item in matrix.left_out}
    assert reasons["multi_process, loop model_parallel"] == "strategy 'multi_process' has the loop data_parallel only"


@pytest.mark.parametrize(("loop", "mesh"), [("data_parallel", Mesh(2, 2)), ("model_parallel", Mesh(2))])
def test_a_trial_of_a_mesh_that_its_loop_cannot_have_is_unsupported_with_the_remedy(loop: str, mesh: Mesh) -> None:
    remedy = "--loop model_parallel" if mesh.model > 1 else "give --mesh model:2"
    with pytest.raises(Unsupported, match=remedy):
        loops()[loop].distribution([], mesh)


def of_loops(names: list[str], *meshes: str) -> Matrix:
    asked: dict[str, Any] = {"strategy": ["distribution"], "replicas": [2], "mesh": [*meshes], "loop": names}
    return expand(Sweep(engine=["keras_distribution"], model=["mlp"], **asked), catalogue_of("keras_distribution"))


def test_a_loop_that_cuts_weights_takes_the_meshes_that_can_and_another_the_rest() -> None:
    matrix = of_loops(["data_parallel", "model_parallel"], "batch:2", "batch:2,model:2")
    found = {(cell.get("loop"), cell.get("mesh")) for cell in matrix.cells if cell.cell_id not in matrix.added_base}
    assert found == {("data_parallel", "batch:2"), ("model_parallel", "batch:2,model:2")}
    assert {item.combination: item.reason for item in matrix.left_out} == {
        "distribution, loop data_parallel, mesh batch:2,model:2": "loop 'data_parallel' cuts no weights: "
        "--loop model_parallel",
        "distribution, loop model_parallel, mesh batch:2": "loop 'model_parallel' cuts weights over several devices a "
        "replica: --mesh batch:2,model:2",
    }


@pytest.mark.parametrize(("loop", "meshes"), [("data_parallel", ["batch:2,model:2"]), ("model_parallel", [])])
def test_a_mesh_that_the_only_loop_cannot_have_is_refused_before_anything_runs(loop: str, meshes: list[str]) -> None:
    with pytest.raises(UsageError, match=rf"no combination is left to run \(distribution, loop {loop}, mesh batch:2"):
        of_loops([loop], *meshes)
