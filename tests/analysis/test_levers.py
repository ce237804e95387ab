"""Which flags are worth a try: those that fit what binds the step, the most to win first."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.advice import Lever, advice, levers_of
from harness.analysis.explain import Explanation, explanations_of
from harness.analysis.levers import LEVERS
from harness.analysis.paging import Paging
from harness.analysis.parts import PartName
from harness.registry import registered
from harness.run.kinds.one_cell import one_cell
from harness.run.kinds.tries import MOST_TRIES
from harness.spec.axes import TABLE
from harness.spec.recipe import keys_of
from harness.spec.sweep import ASKED, Sweep
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of
from tests.axes import OF_EXTENDING
from tests.explained import RATIOS, explain_run
from tests.synthetic import make_cell

CALM = dict.fromkeys(RATIOS, 1.0) | {"forward": 0.3, "empty": 0.01, "alone": 1.0, "forward_backward": 1.0}
"""A step that only computes."""
BOUND: Mapping[str, Mapping[str, float]] = {
    "input": CALM | {"no_input": 0.7},
    "communication": CALM | {"no_reduction": 0.7},
    "update": CALM | {"no_update": 0.7},
    "dispatch": CALM | {"empty": 0.3},
    "contention": CALM | {"alone": 0.3},
    "compute": CALM,
}


def explained(ratios: Mapping[str, float], cell: Cell | None = None) -> Explanation:
    [found] = explanations_of(explain_run(ratios))
    return found if cell is None else replace(found, cell=cell)


def levers(*found: Explanation) -> list[Lever]:
    return levers_of(found, lambda cell: catalogue_of(cell.engine))


def tried(ratios: Mapping[str, float], cell: Cell | None = None) -> list[str]:
    return [lever.setting for lever in levers(explained(ratios, cell))]


@pytest.mark.parametrize(
    ("part", "settings"),
    [
        ("input", ["prefetch=8"]),
        (
            "communication",
            [
                "bytes_per_pack=1048576",
                "cross_device_op=hierarchical_copy",
                "cross_device_op=reduction_to_one_device",
                "batch_size=64",
            ],
        ),
        ("update", ["steps_per_execution=10", "xla=true"]),
        ("dispatch", ["batch_size=64", "steps_per_execution=10", "xla=true"]),
        ("contention", ["replicas=1"]),
        ("compute", ["precision=mixed_bfloat16", "xla=true"]),
    ],
)
def test_each_part_that_binds_a_step_has_its_own_levers(part: str, settings: list[str]) -> None:
    assert explained(BOUND[part]).bound_by == part
    assert [one for one in tried(BOUND[part]) if one.partition("=")[2] not in OF_EXTENDING] == settings
    assert {lever.part for lever in levers(explained(BOUND[part]))} == {part}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("input", "more batches ahead (--prefetch)"),
        (
            "communication",
            "another --bytes-per-pack, another --cross-device-op, or a larger --batch-size (as much is added up for "
            "more)",
        ),
        ("dispatch", "a larger --batch-size, several steps a call (--steps-per-execution), or --xla"),
        ("contention", "fewer replicas or more cores for each"),
        ("update", "an optimizer that does less (--optimizer), several steps a call (--steps-per-execution), or --xla"),
    ],
)
def test_of_a_part_only_what_the_cell_does_not_have_yet_is_advised(part: PartName, words: str) -> None:
    found = explained(BOUND[part])
    assert advice(part, found, catalogue_of("tensorflow")) == words


def test_several_steps_a_call_are_neither_advised_nor_tried_where_they_made_the_step_no_faster() -> None:
    free, slow = (explained(BOUND["update"] | {"in_one_call": share}) for share in (0.97, 0.6))
    catalogue = catalogue_of("tensorflow")
    assert advice("update", free, catalogue) == "an optimizer that does less (--optimizer) or --xla"
    assert "--steps-per-execution" in advice("update", slow, catalogue)
    assert [lever.setting for lever in levers(free)] == ["xla=true"]
    assert "steps_per_execution=10" in [lever.setting for lever in levers(slow)]


@pytest.mark.parametrize(
    ("own", "loop", "words", "settings"),
    [
        ([], "custom", "an optimizer that does less (--optimizer), {calls}, or --xla", ["xla=true"]),
        (["optimizer"], "custom", "{calls} or --xla", ["xla=true"]),
        (["optimizer", "train_step"], "custom", "{calls}", []),
        (["compute_loss"], "custom", "an optimizer that does less (--optimizer) or {calls}", []),
        (["compute_loss"], "fit", "an optimizer that does less (--optimizer), {calls}, or --xla", ["xla=true"]),
    ],
)
def test_what_a_model_of_ones_own_brings_is_no_lever_nor_what_its_own_step_cannot_have(
    own: list[str], loop: str, words: str, settings: list[str]
) -> None:
    run = explain_run(BOUND["update"])
    trials = [
        trial.model_copy(update={"executed": trial.executed.model_copy(update={"own_training": own})})
        for trial in run.trials
    ]
    [found] = explanations_of(replace(run, trials=trials))
    found = replace(found, cell=make_cell("mirrored", 2, model="mine:model", loop=loop))
    calls = "several steps a call (--steps-per-execution)"
    assert advice("update", found, catalogue_of("tensorflow")) == words.format(calls=calls)
    assert [lever.setting for lever in levers(found)] == ["steps_per_execution=10", *settings]


def test_where_the_hosts_share_binds_it_several_steps_a_call_come_first() -> None:
    found = explained(CALM | {"in_one_call": 0.7})
    assert found.bound_by == "dispatch"
    assert [(lever.part, lever.setting) for lever in levers(found)] == [
        ("dispatch", "steps_per_execution=10"),
        ("dispatch", "batch_size=64"),
        ("dispatch", "xla=true"),
    ]
    told = advice("host", found, catalogue_of("tensorflow"))
    assert told == "several steps a call (--steps-per-execution), a larger --batch-size, or --xla"


@pytest.mark.parametrize(("per_worker", "fewer"), [(1, "workers"), (2, "replicas")])
def test_of_several_workers_with_a_replica_each_fewer_workers_are_advised_and_tried(
    per_worker: int, fewer: str
) -> None:
    between = explained(BOUND["contention"], make_cell("multi_worker_mirrored", per_worker, workers=2))
    assert advice("contention", between, catalogue_of("tensorflow")) == f"fewer {fewer} or more cores for each"
    assert [lever.setting for lever in levers(between)] == [f"{fewer}=1"]


def test_a_cell_that_has_them_all_is_told_of_none() -> None:
    full = explained(CALM, make_cell("mirrored", 2, prefetch=8))
    assert advice("input", full, catalogue_of("tensorflow")) == ""


def test_what_servers_cost_is_less_with_larger_batches_more_servers_or_cut_variables() -> None:
    served = make_cell("parameter_server", 1).model_copy(update={"workers": 4, "ps": 2})
    push = {"whole": 1.0, "no_input": 1.0, "no_pull": 1.0, "no_push": 0.4, "forward_backward": 0.4, "forward": 0.2}
    [found] = explanations_of(explain_run({**push, "empty": 0.02, "alone": 1.6}, at_once=4))
    assert found.bound_by == "push"
    settings = [lever.setting for lever in levers(replace(found, cell=served))]
    assert settings == [f"batch_size={2 * served.batch_size}", "ps=4", "partitioner=fixed"]


def test_where_several_parts_bind_it_the_first_lever_of_each_comes_before_the_second_of_any() -> None:
    ratios = CALM | {"no_reduction": 0.699, "empty": 0.3}
    assert tried(ratios)[:4] == [
        "bytes_per_pack=1048576",
        "batch_size=64",
        "cross_device_op=hierarchical_copy",
        "steps_per_execution=10",
    ]


@pytest.mark.parametrize("device", ["virtual-cpu", "gpu"])
@pytest.mark.parametrize("op", ["auto", "hierarchical_copy"])
def test_another_packing_is_among_the_levers_that_are_measured(device: str, op: str) -> None:
    first = tried(BOUND["communication"], make_cell("mirrored", 2, device=device, op=op))[:MOST_TRIES]
    assert any("pack" in setting.partition("=")[0] for setting in first)


@pytest.mark.parametrize(
    ("pack_bytes", "size"),
    [
        ((487_720,), 4096),  # mnist_cnn's, a sixty-fourth of which has 7,620 bytes
        ((2**20,), 2**14),
        ((2**20 + 4,), 2**20),
        ((487_720, 4), 2**20),
        ((), 2**20),
        ((3,), 1),
    ],
)
def test_gradients_that_are_one_pack_are_cut_by_a_size_that_cuts_them(pack_bytes: tuple[int, ...], size: int) -> None:
    found = replace(explained(BOUND["communication"]), pack_bytes=pack_bytes)
    assert levers(found)[0].setting == f"bytes_per_pack={size}"


@pytest.mark.parametrize(
    ("op", "ran", "others"),
    [
        ("auto", "CollectiveReduceV2[auto: ring]", ["nccl"]),
        ("auto", "CollectiveReduceV2[auto: nccl]", ["nccl", "ring"]),
        ("ring", "CollectiveReduceV2[ring]", ["nccl"]),
        ("nccl", "CollectiveReduceV2[nccl]", ["ring"]),
    ],
)
def test_no_op_is_tried_that_is_the_ring_which_ran_or_a_second_name_of_one(
    op: str, ran: str, others: list[str]
) -> None:
    cell = make_cell("multi_worker_mirrored", 1, workers=2, device="gpu", op=op)
    found = replace(explained(BOUND["communication"], cell), operations=(ran,))
    settings = [lever.setting for lever in levers(found)]
    ops = [one.removeprefix("cross_device_op=") for one in settings if one.startswith("cross")]
    assert [op for op in ops if op not in OF_EXTENDING] == others
    on_processors = replace(found, cell=make_cell("multi_worker_mirrored", 1, workers=2, op=op))
    names = catalogue_of("tensorflow")
    known = {name: of for name, of in names.cross_device_ops.items() if name not in OF_EXTENDING}
    words = advice("communication", on_processors, replace(names, cross_device_ops=known))
    assert ("--cross-device-op" in words) == ("ring" in others)


def test_what_ran_of_the_whole_step_is_what_its_levers_go_by() -> None:
    found = explained(BOUND["communication"])
    assert (found.operations, found.pack_bytes) == (("CollectiveReduceV2[ring]",), (1_709_352,))


def test_a_part_that_could_not_be_told_may_bind_the_step_and_has_its_levers_tried() -> None:
    found = explanations_of(explain_run(CALM, crashed={"no_input": "no room"}))
    assert [lever.setting for lever in levers(*found)] == ["prefetch=8"]


def test_the_cell_with_most_to_win_comes_first_and_one_that_only_computes_last() -> None:
    several = [(BOUND["compute"], 1), (BOUND["input"], 2), (CALM | {"no_input": 0.5}, 4)]
    found = [explained(ratios, make_cell("mirrored", replicas)) for ratios, replicas in several]
    assert [(lever.cell.replicas, lever.part) for lever in levers(*found)][:3] == [
        (4, "input"),
        (2, "input"),
        (1, "compute"),
    ]


def test_a_part_that_may_be_the_whole_step_comes_before_one_that_cannot() -> None:
    found = explained(CALM | {"no_input": 0.7, "no_reduction": 0.5})
    wide = [replace(part, high=1.1, low=0.1) if part.name == "input" else part for part in found.parts]
    assert [lever.part for lever in levers(replace(found, parts=tuple(wide)))][:2] == ["input", "communication"]


@pytest.mark.parametrize(("workers", "settings"), [(2, ["workers=1"]), (4, ["workers=2"])])
def test_of_workers_with_one_replica_each_half_are_tried(workers: int, settings: list[str]) -> None:
    """A catalogue's strategies tell whether each replica is a process; TensorFlow's workers may have several."""
    cell = make_cell("multi_worker_mirrored", 1, workers=workers)
    assert tried(BOUND["contention"], cell) == settings
    base = {key: value for key, _, value in keys_of(cell, Sweep())}
    assert one_cell("b", base, dict([settings[0].split("=")]))[1].get("workers") == workers // 2
    assert tried(BOUND["contention"], cell.model_copy(update={"replicas": 4})) == ["replicas=2"]


def test_several_steps_a_call_are_not_tried_where_an_arm_has_shown_that_they_win_little() -> None:
    """An arm of as many steps in one call takes 0.98 of what a call for each takes."""
    little = BOUND["dispatch"] | {"in_one_call": 0.98}
    assert explained(little).part("host").may_count is False
    assert tried(little) == ["precision=mixed_bfloat16", "xla=true"]  # of compute: dispatch costs the step nothing
    much = BOUND["dispatch"] | {"in_one_call": 0.75}
    assert "steps_per_execution=10" in tried(much)


def test_a_cell_whose_whole_step_was_not_measured_has_no_levers() -> None:
    found = explanations_of(explain_run(CALM, crashed={"whole": "there is no GPU"}))
    assert levers(*found) == []


def test_a_lever_that_is_pulled_already_is_not_tried() -> None:
    assert tried(CALM, make_cell("mirrored", 2, xla=True, precision="mixed_bfloat16")) == []
    assert tried(BOUND["input"], make_cell("mirrored", 2, prefetch=8)) == []


def test_batches_ahead_are_no_lever_where_they_are_put_on_the_devices_within_the_step() -> None:
    keras = make_cell("distribution", 2, engine="keras_distribution", loop="data_parallel", mesh="batch:2")
    jax = make_cell("data_parallel", 2, engine="jax", loop="jit")
    assert (tried(BOUND["input"], keras), tried(BOUND["input"], jax)) == ([], ["prefetch=8"])


@pytest.mark.parametrize(
    ("cell", "settings"),
    [
        (make_cell("mirrored", 2), ["cache=memory", "parallel_calls=0", "prefetch=8", "cache=file"]),
        (make_cell("parameter_server", workers=2, ps=1), ["cache=memory", "parallel_calls=0", "prefetch=8"]),
        (
            make_cell("multi_worker_mirrored", workers=2, shards=2, autoshard="file"),
            ["parallel_calls=0", "prefetch=8", "interleave=4"],
        ),
        (
            make_cell("multi_worker_mirrored", workers=2, shards=2, deterministic=False),
            ["cache=memory", "parallel_calls=0", "prefetch=8", "cache=file"],
        ),
    ],
    ids=["of one process", "of servers", "each its own files", "in any order"],
)
def test_an_input_that_decodes_again_and_again_or_one_by_one_has_those_levers_for_that_which_the_cell_can_have(
    cell: Cell, settings: list[str]
) -> None:
    slow = cell.model_copy(update={"cache": "none", "parallel_calls": 1})
    assert tried(BOUND["input"], slow) == settings


def fed(*stages: str, **keys: Any) -> list[str]:
    """What is tried where this is its pipeline."""
    cell = make_cell("mirrored", 2, **keys)
    return [lever.setting for lever in levers(replace(explained(BOUND["input"], cell), input=stages))]


def test_examples_that_auto_has_no_room_for_are_decoded_again_and_again_and_have_levers_for_that() -> None:
    assert fed("TFRecord", "Map", "Cache", "Batch(64)") == ["prefetch=8"]
    assert fed("TFRecord", "Map", "Batch(64)") == ["cache=memory", "prefetch=8", "cache=file"]
    assert fed("TFRecord", "ParallelMap(1)", parallel_calls=1) == [
        "cache=memory",
        "parallel_calls=0",
        "prefetch=8",
        "cache=file",
    ]
    assert fed("TFRecord", "ParallelMap(1)", "Cache", parallel_calls=1) == ["prefetch=8"], "it decodes once"
    assert fed("TFRecord", "Map", cache="none", data_service=1) == ["prefetch=8"], "a service takes no cache"


@pytest.mark.parametrize(
    ("cache", "stages", "is_kept"),
    [
        ("auto", ["Shuffle(20000)", "Repeat", "Batch(64)", "Map"], True),
        ("none", ["Shuffle(1797)", "Repeat", "Batch(64)", "Map"], True),
        ("none", ["Shuffle(10000)", "Repeat", "Batch(64)", "Map"], False),
        ("auto", ["Shuffle(10000)", "Repeat", "Batch(64)", "Map"], False),
        ("auto", ["Shuffle(1783)", "Repeat", "Batch(64)", "Map"], False),
        ("none", ["Shuffle(20000)", "Repeat", "Batch(64)", "Map", "Repeat"], False),
        ("none", ["Shuffle(1797)", "Batch(64)", "Repeat"], False),
    ],
)
def test_of_examples_of_ones_own_only_so_many_as_are_known_are_cached_and_of_ones_own_batches_none(
    cache: str, stages: list[str], is_kept: bool
) -> None:
    keys = {"model": "mine:model", "data": "mine:data", "cache": cache}
    kept = ["cache=memory", "prefetch=8", "cache=file"]
    assert fed("FlatMap", *stages, "Prefetch(2)", **keys) == (kept if is_kept else ["prefetch=8"])
    asked = fed("FlatMap", *stages, "Prefetch(2)", **keys, shuffle_buffer=20_000)
    assert asked == ["prefetch=8"], "the buffer's size is no number of examples then"


@pytest.mark.parametrize("cache", ["auto", "none"])
def test_a_batch_that_stays_on_the_devices_has_no_input_to_make_faster(cache: str) -> None:
    keys = {"data": "synthetic", "cache": cache, "parallel_calls": 1}
    assert fed(**keys) == fed(device="gpu", **keys) == []
    assert fed("Synthetic", "Batch(64)", "OnDevices") == [], "of an engine without pipelines"
    found = explained(BOUND["input"], make_cell("mirrored", 2, **keys))
    assert advice("input", found, catalogue_of("tensorflow")) == ""


def test_examples_of_several_files_are_read_side_by_side_and_images_from_one() -> None:
    assert fed("TFRecord", "Map", data="tfrecord:/data/*.tfrecord")[-1] == "interleave=4"
    assert fed("TFRecord", "Map", shards=8)[-1] == "interleave=4"
    assert fed("TFRecord", "Map", shards=8, interleave=4)[-1] == "cache=file"
    assert fed("Map", data="folder:/images")[-1] == "shards=1"
    for data in ("photographs", "photographs:500", "tfrecord:/data/*.tfrecord"):
        for several in ("2", "1,000"):
            assert fed("TensorSlice", f"TFRecord({several} files)", "Map", data=data)[-1] == "interleave=4"
        assert fed("TensorSlice", "TFRecord(1 file)", "Map", data=data)[-1] == "cache=file"
    assert fed("Map", data="photographs")[-1] == "cache=file", "nobody knows whether there are several"
    assert fed("Map", data="photographs", shards=2)[-1] == "interleave=4"


def test_where_each_pass_decodes_anew_a_cache_is_advised() -> None:
    found = replace(explained(BOUND["input"]), input=("TFRecord", "Map", "Batch(64)"))
    told = advice("input", found, catalogue_of("tensorflow"))
    assert told == (
        "decoding once (--cache memory), more batches ahead (--prefetch), or decoding once into a file, where memory "
        "has no room (--cache file)"
    )


def test_on_a_device_with_memory_of_its_own_more_batches_may_wait_there() -> None:
    on_card = make_cell("mirrored", 2, device="gpu", prefetch=8)
    assert tried(BOUND["input"], on_card) == ["device_prefetch=4"]
    assert tried(BOUND["input"], on_card.model_copy(update={"device_prefetch": 4})) == []


@pytest.mark.parametrize("part", sorted(BOUND))
@pytest.mark.parametrize(
    "cell",
    [
        make_cell("mirrored", 2),
        make_cell("mirrored", 4, op="hierarchical_copy", packing="num_packs=2"),
        make_cell("mirrored", 2, op="reduction_to_one_device", batch_scope="global"),
        make_cell("none", 1),
        make_cell("mirrored", 3, op="hierarchical_copy"),
        make_cell("mirrored", 5, batch_size=25, batch_scope="global"),
        make_cell("multi_worker_mirrored", 1, workers=2),
        make_cell("multi_worker_mirrored", 1, workers=2, data="photographs", autoshard="data"),
        make_cell("multi_worker_mirrored", 1, workers=2, network="rate=1gbit"),
        make_cell("parameter_server", 1, workers=2, ps=1, cache="none"),
        make_cell("distribution", 2, engine="keras_distribution", loop="data_parallel", mesh="batch:2"),
        make_cell("distribution", 2, engine="keras_distribution", loop="model_parallel", mesh="batch:2,model:2"),
    ],
    ids=lambda cell: cell.label,
)
def test_every_lever_makes_a_cell_that_there_is(part: str, cell: Cell) -> None:
    base = {key: value for key, _, value in keys_of(cell, Sweep())}
    for setting in tried(BOUND[part], cell):
        key, _, value = setting.partition("=")
        changed = one_cell("b", base, {key: value})[1]
        assert changed != cell
        assert (changed.shape.network, changed.get("autoshard")) == (cell.shape.network, cell.get("autoshard"))


@pytest.mark.parametrize(
    ("cell", "settings"),
    [
        (make_cell("mirrored", 5), ["replicas=2"]),
        (make_cell("mirrored", 5, batch_size=25, batch_scope="global"), ["replicas=1"]),
        (make_cell("mirrored", 3, op="hierarchical_copy"), []),
        (make_cell("multi_worker_mirrored", 1, workers=2, data="photographs", autoshard="data"), []),
        (
            make_cell("distribution", 2, engine="keras_distribution", loop="data_parallel", mesh="batch:2"),
            ["replicas=1"],
        ),
        (make_cell("distribution", 2, engine="keras_distribution", loop="model_parallel", mesh="batch:2,model:2"), []),
    ],
)
def test_of_replicas_that_share_as_many_as_there_may_be_up_to_half_are_tried(cell: Cell, settings: list[str]) -> None:
    assert tried(BOUND["contention"], cell) == settings


@pytest.mark.parametrize(
    ("batch_scope", "alone", "settings"),
    [("per_replica", 0.7, []), ("per_replica", 0.4, ["replicas=1"]), ("global", 0.7, ["replicas=1"])],
)
def test_fewer_replicas_with_a_smaller_batch_together_are_tried_only_where_they_may_be_faster(
    batch_scope: str, alone: float, settings: list[str]
) -> None:
    found = explained(CALM | {"alone": alone}, make_cell("mirrored", 2, batch_scope=batch_scope))
    assert [lever.setting for lever in levers(found)] == settings
    words = "fewer replicas or more cores for each" if settings else "more cores for each"
    assert advice("contention", found, catalogue_of("tensorflow")) == words


KEEP_MEMORY = "env.MALLOC_TOP_PAD_"


@pytest.mark.parametrize("part", sorted({*BOUND} - {"dispatch"}))
def test_where_a_step_pays_for_memory_that_is_given_back_the_first_lever_keeps_it(part: str) -> None:
    paying = replace(explained(BOUND[part]), paging=Paging(0.4, 5000.0, 100_000.0))
    first, *rest = (lever.setting for lever in levers(paying))
    assert first == f"{KEEP_MEMORY}=67108864"
    assert rest == tried(BOUND[part]), "where it pays for none"
    assert paying.binding is not None
    words = advice(paying.binding.name, paying, catalogue_of("tensorflow"))
    assert words.startswith("memory that glibc does not give back (MALLOC_TOP_PAD_=67108864 in the environment)")


KEYS = {known.key for known in itertools.chain.from_iterable(LEVERS.values())}


@pytest.mark.parametrize("key", TABLE)
def test_an_axis_has_a_lever_or_its_entry_says_why_there_is_none(key: str) -> None:
    assert bool(KEYS & {key, *TABLE[key].kinds}) != bool(TABLE[key].no_lever)


@pytest.mark.parametrize("engine", registered("harness.engines", "ENGINE"))
def test_memory_that_is_kept_is_a_lever_of_every_engine(engine: str) -> None:
    paying = replace(explained(CALM), paging=Paging(0.4, 5000.0, 100_000.0))
    assert advice("compute", paying, catalogue_of(engine)).startswith("memory that glibc does not give back")


def test_a_lever_is_a_key_of_a_spec_and_an_engine_names_no_other() -> None:
    assert {*ASKED, KEEP_MEMORY} >= KEYS
    engines = [catalogue_of(engine) for engine in registered("harness.engines", "ENGINE")]
    assert set().union(*(engine.levers or () for engine in engines)) <= KEYS
