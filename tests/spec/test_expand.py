"""From axes to cells: what is measured, what is left out and why, and the base cases."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.spec import CrossDeviceOpTraits, DeviceTraits, Matrix, StrategyTraits, Sweep, expand, sweep_from
from harness.spec.axes import ENGINE, TABLE
from harness.spec.bases import known_bases
from harness.spec.inputs import LeftOut
from harness.trial.engines import catalogue_of
from tests.spec.catalogues import CATALOGUE


def matrix_of(**axes: Any) -> Matrix:
    lists = {key: value if isinstance(value, list) else [value] for key, value in axes.items()}
    return expand(Sweep(**lists), CATALOGUE)


def asked_for(matrix: Matrix) -> list[tuple[str, int, int, int]]:
    """(strategy, replicas, batch size, global batch size) of the cells that are no mere base cases."""
    return [
        (cell.strategy, cell.replicas, cell.batch_size, cell.global_batch_size)
        for cell in matrix.cells
        if cell.cell_id not in matrix.added_base
    ]


def test_under_weak_scaling_the_global_batch_grows_with_the_replicas() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=[1, 2, 3, 5], batch_size=16)
    assert asked_for(matrix) == [("mirrored", n, 16, 16 * n) for n in (1, 2, 3, 5)]


def test_an_engine_that_lacks_the_default_names_is_swept_over_its_own_and_over_what_was_asked_for() -> None:
    strategies = {name: StrategyTraits(name, "") for name in ("none", "data_parallel", "pipeline")}
    own = replace(CATALOGUE, strategies=strategies, loops={"jit": "", "shard_map": ""})
    cells = expand(Sweep(), own).cells
    assert {(cell.strategy, cell.loop) for cell in cells} == {("none", "jit"), ("data_parallel", "jit")}
    assert {cell.loop for cell in expand(Sweep(loop=["shard_map"]), own).cells} == {"shard_map"}
    with pytest.raises(UsageError, match="strategy: 'mirrored' is not one of none, data_parallel, pipeline"):
        expand(Sweep(strategy=["mirrored"]), own)


def test_under_strong_scaling_the_global_batch_is_fixed_and_split() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=[1, 2, 4], batch_size=64, batch_scope="global")
    assert asked_for(matrix) == [("mirrored", n, 64, 64) for n in (1, 2, 4)]
    assert [cell.replica_batch_size for cell in matrix.cells if cell.strategy == "mirrored"] == [64, 32, 16]


def test_both_scopes_and_several_batch_sizes_go_into_one_sweep() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=2, batch_size=[8, 16], batch_scope=["per_replica", "global"])
    assert sorted(asked_for(matrix)) == sorted(
        [("mirrored", 2, 8, 16), ("mirrored", 2, 16, 32), ("mirrored", 2, 8, 8), ("mirrored", 2, 16, 16)]
    )


def test_a_global_batch_that_the_replicas_do_not_divide_is_left_out_with_its_reason() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=[2, 3], batch_size=64, batch_scope="global")
    assert asked_for(matrix) == [("mirrored", 2, 64, 64)]
    assert [(item.combination, item.reason) for item in matrix.left_out] == [
        ("global batch 64 over 3 replicas", "3 replicas do not divide a global batch of 64")
    ]


@pytest.mark.parametrize(("scope", "most"), [("per_replica", 4), ("global", 2)])
def test_micro_batches_that_do_not_divide_a_replicas_batch_are_left_out_and_servers_have_none(
    scope: str, most: int
) -> None:
    asked = {"replicas": 2, "batch_size": 4, "batch_scope": scope, "micro_batches": [1, 2, 3, 4]}
    matrix = matrix_of(strategy="mirrored", **asked)
    found = {cell.micro_batches: cell.replica_batch_size for cell in matrix.cells if cell.strategy == "mirrored"}
    assert found == {parts: most for parts in (1, 2, 4) if parts <= most}
    told = [(item.combination, item.reason) for item in matrix.left_out]
    assert (f"batch {most} in 3 micro-batches", f"3 do not divide a replica's batch of {most}") in told
    served = matrix_of(strategy=["none", "served"], workers=1, replicas=1, micro_batches=2).cells
    assert {(cell.strategy, cell.micro_batches) for cell in served} == {("none", 2), ("served", 1), ("none", 1)}
    with pytest.raises(UsageError, match=r"^micro_batches: given 2, but no strategy of this sweep cuts .*: none or "):
        matrix_of(strategy="served", micro_batches=2)


@pytest.mark.parametrize(
    ("axes", "combination", "reason"),
    [
        ({"strategy": "one_device", "cross_device_op": "nccl"}, "one_device with nccl", "takes no cross-device op"),
        ({"strategy": "one_device", "replicas": 2}, "one_device × 2 replicas", "runs on 1 replica"),
        ({"strategy": "mirrored", "cross_device_op": "nccl"}, "1 replica with nccl", "nothing to reduce"),
        ({"strategy": "mirrored", "workers": 2}, "mirrored, 2 workers", "runs in one process"),
        ({"strategy": "tpu"}, "tpu on virtual-cpu", "runs on tpu only"),
    ],
)
def test_a_combination_that_makes_no_sense_is_left_out_with_its_reason(
    axes: dict[str, Any], combination: str, reason: str
) -> None:
    sensible = {"strategy": "none", "replicas": 1, "workers": 1, "cross_device_op": "auto"}
    matrix = matrix_of(**{key: list(dict.fromkeys([value, axes.get(key, value)])) for key, value in sensible.items()})
    found = [item for item in matrix.left_out if combination in item.combination]
    assert found, matrix.left_out
    assert all(reason in item.reason for item in found)


def test_when_nothing_is_left_the_error_gives_every_reason_in_one_line() -> None:
    with pytest.raises(UsageError) as caught:
        matrix_of(strategy=["one_device", "tpu"], replicas=2)
    message = str(caught.value)
    assert message.startswith("no combination is left to run (")
    assert "one_device × 2 replicas: strategy 'one_device' runs on 1 replica" in message
    assert "tpu on virtual-cpu: strategy 'tpu' runs on tpu only" in message
    assert "\n" not in message


def test_each_op_takes_the_packing_that_it_knows_and_the_rest_is_listed() -> None:
    matrix = matrix_of(
        strategy="mirrored",
        replicas=2,
        cross_device_op=["auto", "nccl", "to_one"],
        num_packs=[0, 2],
        bytes_per_pack=[1024],
    )
    packings = [(c.cross_device_op, c.packing) for c in matrix.cells if c.strategy == "mirrored"]
    assert packings == [
        ("auto", "bytes_per_pack=1024"),
        ("nccl", "num_packs=0"),
        ("nccl", "num_packs=2"),
        ("to_one", "default"),
    ]
    refused = {(item.combination, item.reason) for item in matrix.left_out}
    assert ("mirrored with auto, num_packs=2", "auto takes no num_packs") in refused
    assert ("mirrored with nccl, bytes_per_pack=1024", "nccl takes no bytes_per_pack") in refused
    assert ("mirrored with to_one, num_packs=0", "to_one takes no num_packs") in refused


def test_one_replica_reduces_nothing_so_its_packing_is_no_axis() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=1, num_packs=[1, 2, 4])
    assert [cell.packing for cell in matrix.cells] == ["default", "default"]
    assert asked_for(matrix) == [("mirrored", 1, 64, 64)]


def test_a_users_own_op_is_taken_as_it_is() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=2, cross_device_op="my.ops:ring", num_packs=[2])
    assert [(c.cross_device_op, c.packing) for c in matrix.cells if c.strategy == "mirrored"] == [
        ("my.ops:ring", "default")
    ]


def test_the_base_case_is_added_for_every_batch_and_marked_as_such() -> None:
    matrix = matrix_of(strategy="mirrored", replicas=[2, 4], batch_size=[8, 16])
    bases = [cell for cell in matrix.cells if cell.cell_id in matrix.added_base]
    assert [(c.strategy, c.replicas, c.batch_size, c.global_batch_size, c.cross_device_op) for c in bases] == [
        ("none", 1, 8, 8, "auto"),
        ("none", 1, 16, 16, "auto"),
    ]


def test_a_base_case_that_was_asked_for_is_measured_once_and_not_marked() -> None:
    matrix = matrix_of(strategy=["none", "mirrored"], replicas=[1, 2])
    assert sum(cell.strategy == "none" for cell in matrix.cells) == 1
    assert matrix.added_base == frozenset()


def test_the_base_case_of_strong_scaling_has_the_whole_global_batch() -> None:
    cell = next(
        c
        for c in matrix_of(strategy="mirrored", replicas=4, batch_size=64, batch_scope="global").cells
        if c.strategy == "mirrored"
    )
    base = cell.base
    assert (base.strategy, base.replicas, base.batch_size, base.global_batch_size) == ("none", 1, 64, 64)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"device": "virtual_cpu"}, "device: 'virtual_cpu' is not one of virtual-cpu, gpu, tpu"),
        ({"strategy": "miror"}, "did you mean 'mirrored'?"),
        ({"cross_device_op": "ncl"}, "or package.module:function; did you mean 'nccl'?"),
        ({"optimizer": "sdg"}, "optimizer: 'sdg' is not one of adam, sgd; did you mean 'sgd'?"),
        ({"model": "mnist"}, "keras:NAME, package.module:function; did you mean 'mnist_cnn'?"),
        (
            {"data": "digit"},
            "tfrecord:GLOB, folder:PATH, package.module:function; did you mean 'digits'?",
        ),
        ({"strategy": ""}, "strategy: '' is not one of"),
    ],
)
def test_an_unknown_name_is_answered_with_the_names_there_are_and_the_nearest(
    axes: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        matrix_of(**axes)
    assert message.replace("or package", "package") in str(caught.value)


def test_data_of_ones_own_are_for_models_of_ones_own() -> None:
    matrix = matrix_of(model=["mlp", "my.models:net"], data=["my.data:rows"], strategy="none", replicas=1)
    assert [cell.get("model") for cell in matrix.cells] == ["my.models:net"]
    [left_out] = matrix.left_out
    assert left_out.combination == "mlp on my.data:rows"
    with pytest.raises(
        UsageError, match=r"^no combination is left to run \(mlp on my\.data:rows: data of your own go with"
    ):
        matrix_of(model="mlp", data="my.data:rows", strategy="none", replicas=1)


AXES = st.fixed_dictionaries(
    {
        "device": st.lists(st.sampled_from(["virtual-cpu", "gpu", "tpu"]), min_size=1, max_size=2, unique=True),
        "strategy": st.lists(st.sampled_from(sorted(CATALOGUE.strategies)), min_size=1, unique=True),
        "replicas": st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
        "workers": st.lists(st.integers(1, 3), min_size=1, max_size=2, unique=True),
        "batch_size": st.lists(st.integers(1, 48), min_size=1, max_size=2, unique=True),
        "batch_scope": st.lists(st.sampled_from(["per_replica", "global"]), min_size=1, unique=True),
        "cross_device_op": st.lists(st.sampled_from(["auto", "nccl", "to_one", "a.b:c"]), min_size=1, unique=True),
        "num_packs": st.lists(st.integers(0, 3), max_size=2, unique=True),
        "bytes_per_pack": st.lists(st.integers(0, 3), max_size=2, unique=True),
        "loop": st.lists(st.sampled_from(["custom", "fit"]), min_size=1, unique=True),
        "network": st.lists(st.sampled_from(["", "unshaped", "rate=1gbit"]), min_size=1, unique=True),
    }
)


@given(AXES)
def test_whatever_the_axes_every_cell_makes_sense_and_none_is_there_twice(axes: dict[str, Any]) -> None:
    try:
        matrix = expand(Sweep(**axes), CATALOGUE)
    except UsageError:
        return  # no combination was left, of which there are tests above
    ids = [cell.cell_id for cell in matrix.cells]
    assert len(set(ids)) == len(ids)
    for cell in matrix.cells:
        assert cell.global_batch_size == cell.replica_batch_size * cell.replicas_per_update
        assert not cell.network or cell.workers > 1 or cell.ps
        assert cell.base.cell_id in ids
        traits = CATALOGUE.strategies[cell.strategy]
        assert traits.max_replicas is None or cell.replicas_in_sync <= traits.max_replicas
        assert cell.cross_device_op == "auto" or (traits.takes_cross_device_op and cell.replicas_in_sync > 1)
    assert matrix.added_base < set(ids)


@given(AXES)
def test_the_order_of_the_values_on_an_axis_does_not_change_the_matrix(axes: dict[str, Any]) -> None:
    backwards = {key: list(reversed(values)) for key, values in axes.items()}
    try:
        matrix = expand(Sweep(**axes), CATALOGUE)
    except UsageError:
        with pytest.raises(UsageError):
            expand(Sweep(**backwards), CATALOGUE)
        return
    other = expand(Sweep(**backwards), CATALOGUE)
    assert other.cells == matrix.cells
    assert set(other.left_out) == set(matrix.left_out)


def test_a_misspelt_loop_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"loop: 'costum' is not one of custom, fit; did you mean 'custom'\?"):
        matrix_of(loop="costum")


RATES = ["rate=1gbit", "rate=100mbit"]


def networks_of(matrix: Matrix) -> list[tuple[str, int, str]]:
    """(strategy, workers, network) of every cell."""
    return [(cell.strategy, cell.workers, cell.network) for cell in matrix.cells]


def test_networks_are_an_axis_of_strategies_of_several_processes_slower_ones_first() -> None:
    matrix = matrix_of(strategy="workers", replicas=1, workers=2, network=[*RATES, "unshaped", "none"])
    rates = ["rate=100mbit", "rate=1gbit", "unshaped", ""]
    assert networks_of(matrix) == [("none", 1, ""), *(("workers", 2, text) for text in rates)]


def test_a_strategy_of_one_process_is_left_out_where_it_would_have_a_network() -> None:
    matrix = matrix_of(strategy=["mirrored", "workers"], replicas=1, workers=[1, 2], network=RATES)
    assert {cell.strategy for cell in matrix.cells} == {"none", "workers"}
    [left] = [left for left in matrix.left_out if left.combination == "mirrored over a network"]
    assert left.reason == "strategy 'mirrored' runs in one process, and one process sends nothing over a network"


def test_one_worker_is_measured_once_and_without_a_network() -> None:
    matrix = matrix_of(strategy="workers", replicas=1, workers=[1, 2], network=RATES)
    assert [network for strategy, workers, network in networks_of(matrix) if (strategy, workers) == ("workers", 1)] == [
        ""
    ]
    assert any("1 worker over a network" in left.combination for left in matrix.left_out)


def test_to_which_trainings_a_network_is_of_no_use_the_table_of_axes_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "network", replace(TABLE["network"], idle=lambda cell: cell.workers < 3))
    matrix = matrix_of(strategy="workers", replicas=1, workers=[2, 3], network="rate=1gbit")
    assert networks_of(matrix)[1:] == [("workers", 2, ""), ("workers", 3, "rate=1gbit")]


def test_one_worker_and_its_parameter_server_have_a_network_between_them() -> None:
    matrix = matrix_of(strategy="served", replicas=1, workers=1, network=RATES)
    assert networks_of(matrix)[1:] == [("served", 1, "rate=100mbit"), ("served", 1, "rate=1gbit")]


def test_a_network_where_no_strategy_has_several_processes_is_an_error_that_names_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"network: given rate=1gbit, but no strategy .*: workers or served"):
        matrix_of(strategy="mirrored", network="rate=1gbit")


def on_cores(cores: int | None, **axes: Any) -> Matrix:
    """As `matrix_of`, where one process could compute on so many cores."""
    devices = {**CATALOGUE.devices, "virtual-cpu": DeviceTraits("virtual-cpu", "", cores=cores)}
    lists = {key: value if isinstance(value, list) else [value] for key, value in axes.items()}
    return expand(Sweep(**lists), replace(CATALOGUE, devices=devices))


def threads_without_strategy(matrix: Matrix) -> list[tuple[int, int]]:
    """(batch size, intra-op threads) of the cells without a strategy."""
    return [(cell.batch_size, cell.intra_op_threads) for cell in matrix.cells if cell.strategy == "none"]


def test_where_replicas_share_cores_no_strategy_on_all_of_them_is_a_base_case_of_every_batch() -> None:
    matrix = on_cores(4, strategy=["none", "mirrored"], replicas=[1, 2], batch_size=[8, 16])
    assert threads_without_strategy(matrix) == [(8, 0), (8, 4), (16, 0), (16, 4)]
    assert [cell.batch_size for cell in matrix.cells if cell.cell_id in matrix.added_base] == [8, 16]


@pytest.mark.parametrize(
    ("cores", "axes"),
    [
        (None, {}),  # as on accelerators, where one device has all that a process could use
        (1, {}),
        (4, {"intra_op_threads": 4}),
        (4, {"replicas": 1}),  # nothing is distributed, so nobody asks whether that pays
    ],
)
def test_no_base_case_is_added_where_one_device_is_the_whole_machine_or_nothing_is_distributed(
    cores: int | None, axes: dict[str, Any]
) -> None:
    matrix = on_cores(cores, **{"strategy": "mirrored", "replicas": 2, "batch_size": 8, **axes})
    assert len(threads_without_strategy(matrix)) == 1


def test_no_strategy_on_all_cores_is_measured_once_though_the_threads_are_asked_for() -> None:
    matrix = on_cores(2, strategy=["none", "mirrored"], replicas=[1, 2], batch_size=8, intra_op_threads=[1, 2])
    assert threads_without_strategy(matrix) == [(8, 1), (8, 2)]
    assert matrix.added_base == frozenset()


def test_an_op_whose_accelerators_exchange_past_a_network_is_left_out_with_one_on_them_and_not_on_processors() -> None:
    ops = {**CATALOGUE.cross_device_ops, "nccl": CrossDeviceOpTraits("nccl", "", past_networks=True)}
    devices = {**CATALOGUE.devices, "virtual-cpu": DeviceTraits("virtual-cpu", "", on_processors=True)}
    asked = Sweep(
        device=["virtual-cpu", "gpu"],
        strategy=["workers"],
        replicas=[1],
        workers=[2],
        cross_device_op=["auto", "nccl"],
        network=["unshaped", ""],
    )
    matrix = expand(asked, replace(CATALOGUE, devices=devices, cross_device_ops=ops))
    with_nccl = {(cell.device, cell.network) for cell in matrix.cells if cell.cross_device_op == "nccl"}
    assert with_nccl == {("virtual-cpu", "unshaped"), ("virtual-cpu", ""), ("gpu", "")}
    [left] = matrix.left_out
    assert (left.combination, "the memory of one host" in left.reason) == ("workers with nccl over a network", True)


def test_an_axis_that_no_strategy_of_the_engine_takes_is_refused_with_the_engine_that_has_such() -> None:
    words = r"cycle_time: given 5, but no strategy of this sweep reduces in cycles \(engine horovod does\)$"
    with pytest.raises(UsageError, match=words):
        expand(Sweep(cycle_time=[5]), CATALOGUE)


HALVES, BUCKETS = {"cross_device_op": ["auto", "fp16_compress"]}, {"bytes_per_pack": [65536]}


@pytest.mark.parametrize(
    ("asked", "loops", "combination", "reason", "runs"),
    [
        (
            HALVES,
            ["ddp", "ddp_hook"],
            "data_parallel with fp16_compress, loop ddp",
            "'fp16_compress' is an op of --loop ddp_hook",
            {("ddp", "auto", "default"), ("ddp_hook", "auto", "default"), ("ddp_hook", "fp16_compress", "default")},
        ),
        (
            BUCKETS,
            ["ddp", "all_reduce"],
            "data_parallel, loop all_reduce, bytes_per_pack=65536",
            "loop 'all_reduce' takes no bytes_per_pack: --loop ddp or ddp_hook or ddp_static",
            {("ddp", "auto", "bytes_per_pack=65536"), ("all_reduce", "auto", "default")},
        ),
    ],
    ids=["ops", "packs"],
)
def test_what_a_loop_lacks_is_left_out_with_the_loops_that_have_it(
    asked: dict[str, Any], loops: list[str], combination: str, reason: str, runs: set[tuple[str, str, str]]
) -> None:
    of_torch = {"engine": ["torch"], "strategy": ["data_parallel"], "workers": [2], "replicas": [1], "loop": loops}
    matrix = expand(sweep_from({**of_torch, **asked}), catalogue_of("torch"))
    assert matrix.left_out == (LeftOut(combination, reason),)
    keys = ("loop", "cross_device_op", "packing")
    assert {tuple(cell.get(key) for key in keys) for cell in matrix.cells if not cell.is_base} == runs


def test_where_nothing_but_a_loop_without_the_op_is_asked_for_it_is_bad_usage() -> None:
    alone = {"engine": ["torch"], "strategy": ["data_parallel"], "workers": [2], "replicas": [1]}
    with pytest.raises(UsageError, match="loop ddp: 'fp16_compress' is an op of --loop ddp_hook"):
        expand(sweep_from({**alone, "cross_device_op": ["fp16_compress"]}), catalogue_of("torch"))


def of_all_loops(engine: str, **keys: Any) -> tuple[list[str], Matrix]:
    """The engine's loops in the order in which they are asked for, and what is planned of every strategy."""
    names = catalogue_of(engine)
    loops = [*reversed(names.loops)]
    asked = {"strategy": [*names.strategies], "replicas": [1, 2], "workers": [1, 2], "loop": loops, "model": ["mlp"]}
    return loops, expand(sweep_from({"engine": engine, **asked, **keys}), names)


def loops_alone(matrix: Matrix) -> set[str]:
    """The loops under which no strategy is planned."""
    return {cell.get("loop") for cell in matrix.cells if cell.is_base}


@pytest.mark.parametrize("engine", ["horovod", "jax", "keras_distribution", "tensorflow", "torch"])
def test_where_no_strategy_is_one_program_whatever_the_loop_it_is_planned_under_the_first_and_the_base_of_all(
    engine: str,
) -> None:
    loops, matrix = of_all_loops(engine)
    each = loops if engine == ENGINE else loops[:1]
    assert loops_alone(matrix) == {*each}
    again = "strategy 'none' is one program whatever the loop is: it is measured under"
    told = [item for item in matrix.left_out if item.reason.startswith(again)]
    assert told == [LeftOut(f"none, loop {loop}", f"{again} '{loops[0]}'") for loop in loops if loop not in each]
    bases_of = known_bases(matrix.cells)
    assert all(bases_of(cell) for cell in matrix.cells)
    others = [name for name in catalogue_of(engine).strategies if name != "none"]
    assert engine == ENGINE or len(loops_alone(of_all_loops(engine, strategy=others)[1])) == 1
    left = loops_alone(of_all_loops(engine, exclude=f"strategy=none loop={loops[0]}")[1])
    assert left == {*(loops if engine == ENGINE else loops[1:2])}, "what is excluded stands in for none"


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ("intra_op_threads=2 loop=jit", {("shard_map", 1), ("shard_map", 2)}),
        ("intra_op_threads=2 loop=jit; intra_op_threads=1 loop=shard_map", {("jit", 1), ("shard_map", 2)}),
        ("intra_op_threads=2", {("jit", 1)}),
        ("intra_op_threads=3", {("jit", 1), ("jit", 2)}),
    ],
)
def test_what_is_left_out_of_one_loop_stands_in_for_no_other(exclude: str, left: set[tuple[str, int]]) -> None:
    asked = {"engine": "jax", "strategy": "none", "loop": ["jit", "shard_map"], "intra_op_threads": [1, 2]}
    found = expand(sweep_from({**asked, "replicas": 1, "exclude": exclude}), catalogue_of("jax"))
    assert {(cell.get("loop"), cell.get("intra_op_threads")) for cell in found.cells} == left


def test_a_base_case_with_the_most_threads_is_known_also_where_it_was_measured_under_another_loop() -> None:
    exclude = "intra_op_threads=2 loop=jit; intra_op_threads=1 loop=shard_map"
    asked = {"engine": "jax", "loop": ["jit", "shard_map"], "intra_op_threads": [1, 2], "exclude": exclude}
    strategies = ["none", "data_parallel"]
    found = expand(sweep_from({**asked, "strategy": strategies, "replicas": [1, 2]}), catalogue_of("jax")).cells
    bases_of, named = known_bases(found), {cell.cell_id: cell for cell in found}
    [cell] = [one for one in found if one.replicas == 2 and one.get("loop") == "jit"]
    bases = [named[cell_id] for cell_id in bases_of(cell)]
    assert [(one.get("loop"), one.get("intra_op_threads")) for one in bases] == [("jit", 1), ("shard_map", 2)]


@pytest.mark.parametrize(("workers", "times"), [([1, 2], [0, 5]), ([1, 2], [5, 0]), ([1], [5])])
def test_one_process_is_measured_once_whatever_the_cycles_that_only_several_wait_for(
    workers: list[int], times: list[int]
) -> None:
    asked = {"engine": "horovod", "strategy": "data_parallel", "replicas": 1, "workers": workers, "cycle_time": times}
    matrix = expand(sweep_from(asked), catalogue_of("horovod"))
    found = [(cell.get("workers"), cell.get("cycle_time")) for cell in matrix.cells if not cell.is_base]
    assert found == [(1, 0), *((2, time) for time in sorted(times) if 2 in workers)]
    reason = "one process waits for no cycle, so cycle_time changes nothing; it is measured without"
    assert matrix.left_out == (LeftOut("data_parallel, 1 worker with a cycle time", reason),)
