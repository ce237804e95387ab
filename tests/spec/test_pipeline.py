"""Input pipelines as a kind of work: what a spec comes to, what cells are called, and what is refused in one line."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.plan.blocks import make_plan
from harness.run.kinds.one_cell import one_cell
from harness.spec import Matrix, sweep_from
from harness.spec.axes import TABLE
from harness.spec.cell import trained
from harness.spec.engines import matrix_of
from harness.spec.inputs import OF_STAGES
from harness.spec.pipeline import CUTS, AppetiteCell, Cut, PipelineCell
from harness.spec.recipe import keys_of
from harness.spec.work import cell_from
from harness.trial.engines import catalogue_of

CELL = PipelineCell(device="virtual-cpu", model="mlp", data="digits", batch_size=8)


def matrix_from(asked: dict[str, Any], engine: str = "tensorflow") -> Matrix:
    return matrix_of([(sweep_from(asked), catalogue_of(engine))])


def planned(**keys: Any) -> Matrix:
    """The matrix of a sweep of pipelines."""
    return matrix_from({"work": "pipeline", **keys})


def inputs_of(matrix: Matrix) -> list[PipelineCell]:
    return [cell for cell in matrix.cells if isinstance(cell, PipelineCell)]


def test_a_sweep_of_pipelines_is_every_combination_and_what_each_model_takes_at_each_batch() -> None:
    matrix = planned(model=["mlp", "mnist_cnn"], batch_size=[8, 16], cache=["none", "memory"], prefetch=[0, 2])
    assert len(inputs_of(matrix)) == 2 * 2 * 2 * 2
    taken = [cell for cell in matrix.cells if isinstance(cell, AppetiteCell)]
    assert {(cell.model, cell.batch_size) for cell in taken} == {(m, b) for m in ("mlp", "mnist_cnn") for b in (8, 16)}
    assert matrix.added_base == {cell.cell_id for cell in taken}
    assert len({cell.full_name for cell in matrix.cells}) == len({cell.cell_id for cell in matrix.cells}) == 20


@pytest.mark.parametrize("asked", [{}, {"model": ["none"]}])
def test_data_of_ones_own_need_no_model_and_are_then_held_beside_nothing(asked: dict[str, Any]) -> None:
    matrix = planned(data=["mine:examples"], cache=["none", "memory"], cut=["source"], **asked)
    assert {(cell.get("model"), cell.data_set) for cell in matrix.cells} == {("none", "mine:examples")}
    assert (len(matrix.cells), matrix.added_base) == (3, frozenset())
    assert all(cell.base == cell and not cell.is_base for cell in matrix.cells)
    whole = next(cell for cell in matrix.cells if cell.competes and cell.get("cache") == "none")
    assert whole.full_name == "mine:examples, virtual-cpu: input b64 cache none"
    assert cell_from(whole.model_dump(mode="json")) == whole


def test_files_of_several_inputs_need_no_model_either_and_other_files_do(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"tfrecord:mine": "own", "tfrecord:pictures": "images"}
    names = replace(catalogue_of("tensorflow"), data_gives=lambda data: kinds.get(data, "images"))
    monkeypatch.setattr(sys.modules[__name__], "catalogue_of", lambda _: names)
    found = inputs_of(planned(data=["tfrecord:mine", "tfrecord:pictures"]))
    assert {(cell.model, cell.data) for cell in found} == {
        ("none", "tfrecord:mine"),
        ("mnist_cnn", "tfrecord:pictures"),
    }


def test_beside_them_registered_data_feed_the_usual_model() -> None:
    inputs = inputs_of(matrix := planned(data=["digits", "mine:examples"]))
    assert {(cell.model, cell.data) for cell in inputs} == {("mnist_cnn", "digits"), ("none", "mine:examples")}
    assert [cell.data_set for cell in matrix.cells if isinstance(cell, AppetiteCell)] == ["digits"]


def test_what_repeats_a_cell_that_feeds_no_model_asks_for_the_same_cell() -> None:
    asked = sweep_from({"work": "pipeline", "data": ["mine:examples"]})
    [cell] = planned(data=["mine:examples"]).cells
    keys = {key: value for key, _, value in keys_of(cell, asked)}
    assert planned(**{**keys, "work": "pipeline"}).cells == (cell,)


def test_a_pipeline_takes_turns_with_what_its_model_takes() -> None:
    matrix = planned(cache=["none", "memory"], batch_size=[8, 16], cut=["source"])
    plan = make_plan(matrix.cells, 2, seed=1, live={})
    assert [sorted(group) for block in plan.blocks for group in block] == [
        sorted(cell.cell_id for cell in matrix.cells) for _ in range(2)
    ]
    few = make_plan(matrix.cells, 1, seed=1, live={"virtual-cpu": 2})
    cells = {cell.cell_id: cell for cell in matrix.cells}
    assert all(cells[one].base.cell_id in group for group in few.blocks[0] for one in group)


def test_what_a_model_takes_is_its_training_without_a_strategy() -> None:
    training = trained(CELL.appetite.training_asked)
    assert training.label == "none ×1 b8"
    assert (training.model, training.data, training.global_batch_size) == ("mlp", "digits", 8)
    assert not CELL.appetite.competes
    assert CELL.competes


def test_a_model_of_text_brings_its_data_and_is_counted_in_tokens() -> None:
    [cell] = inputs_of(planned(model=["gpt"], batch_size=[4]))
    assert cell.data == "text"
    assert cell.work.quantity.many == "tokens"
    assert cell.work.amount == 4 * cell.tokens == trained(cell.appetite.training_asked).work.amount


def test_at_their_defaults_axes_that_come_later_are_no_part_of_the_identity() -> None:
    kept = {"kind", "device", "model", "data", "batch_size"}
    assert set(CELL.identity()) == set(CELL.appetite.identity()) == kept
    assert set(CELL.cut_behind("decode").identity()) == kept | {"cut"}


def test_a_cell_is_read_back_as_it_was_written() -> None:
    for cell in (CELL, CELL.cut_behind("source"), CELL.appetite):
        assert cell_from(cell.model_dump(mode="json")) == cell


@pytest.mark.parametrize(
    ("cut", "keeps"),
    [
        ("source", {}),
        ("decode", {"parallel_calls": 3}),
        ("cache", {"parallel_calls": 3, "cache": "file"}),
        ("shuffle", {"parallel_calls": 3, "cache": "file", "shuffle_buffer": 5}),
    ],
)
def test_what_is_cut_off_is_the_same_whatever_comes_after_the_cut(cut: Cut, keeps: dict[str, Any]) -> None:
    of = {"parallel_calls": 3, "cache": "file", "shuffle_buffer": 5, "prefetch": 7}
    cell = CELL.model_copy(update=of).cut_behind(cut)
    assert cell == CELL.model_copy(update={"cut": cut, **keeps})
    assert not cell.competes


def test_a_stage_that_a_pipeline_has_not_is_not_measured_twice() -> None:
    own = CELL.model_copy(update={"data": "mine:examples", "cache": "none"})
    assert [own.cut_behind(cut).cut for cut in CUTS] == ["source", "source", "source", "shuffle"]
    matrix = planned(cache=["none"], cut=[*CUTS])
    assert sorted(cell.cut for cell in inputs_of(matrix)) == ["", "decode", "shuffle", "source"]


def test_a_side_of_a_comparison_is_one_pipeline() -> None:
    _, cell = one_cell("a", {"work": "pipeline", "model": ["mlp"]}, {"cache": "none"})
    assert cell == PipelineCell(device="virtual-cpu", model="mlp", data="digits", batch_size=64, cache="none")


def test_a_side_whose_pipeline_is_cut_is_what_is_cut_off_and_not_the_whole() -> None:
    base = {"work": "pipeline", "model": ["mlp"], "cache": ["none"], "cut": ["source"]}
    assert [one_cell("a", base, keys)[1].label for keys in ({}, {"cut": "cache"})] == [
        "input until source b64",
        "input until decode b64",
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"strategy": ["none"]}, "strategy: belongs to a training, and work is 'pipeline', which draws batches"),
        ({"replicas": [2]}, "replicas: belongs to a training"),
        ({"optimizer": ["sgd"]}, "optimizer: belongs to a training"),
        ({"size": [4]}, "size: belongs to collectives: give work, too"),
        ({"step": "mine:make"}, "step: belongs to a training"),
        ({"check": "mine:moves"}, "check: belongs to a training"),
        ({"data": ["synthetic"]}, "data: 'synthetic' stays on the device, without a pipeline: give other data"),
        ({"data": ["text"]}, "mnist_cnn on text: it takes images"),
        ({"data": ["mine:examples"], "model": ["mlp"]}, "data of your own go with a model of your own"),
        ({"model": ["none"]}, r"none on digits: what is read of them is what a model takes: name one with --model"),
        ({"work": "training", "model": ["none"]}, "model: 'none' is not one of"),
        ({"cut": ["batch"]}, "cut: given 'batch', expected 'source', 'decode', 'cache' or 'shuffle'"),
        ({"cache": ["disk"]}, "cache: given 'disk', expected"),
        ({"work": "training", "cut": ["source"]}, "cut: belongs to pipelines: give work, too"),
        ({"batch_size": []}, "batch_size: expected at least one value"),
    ],
)
def test_what_a_pipeline_cannot_have_is_refused_in_one_line_that_names_the_key(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        planned(**keys)
    assert "\n" not in str(error.value)


def test_data_that_stay_on_the_device_are_left_out_beside_others() -> None:
    matrix = planned(data=["digits", "synthetic"])
    assert [cell.data for cell in inputs_of(matrix)] == ["digits"]
    assert [item.combination for item in matrix.left_out] == ["mnist_cnn on synthetic"]


@pytest.mark.parametrize("key", OF_STAGES)
def test_a_training_on_data_that_stay_on_the_device_is_one_cell_whatever_is_asked_of_a_pipeline(key: str) -> None:
    usual = OF_STAGES[key]
    other = next(value for value in TABLE[key].tried if value != usual)
    alone = {"strategy": ["none"], "replicas": [1]}
    matrix = matrix_from({**alone, "data": ["digits", "synthetic"], key: [usual, other]})
    assert [cell.get(key) for cell in matrix.cells if cell.get("data") == "synthetic"] == [usual]
    with pytest.raises(UsageError, match=r"^no combination is left to run .*synthetic"):
        matrix_from({**alone, "data": ["synthetic"], key: [other]})


def test_an_engine_without_pipelines_of_its_own_is_refused() -> None:
    with pytest.raises(UsageError, match="engine: it has no input pipeline that is measured by itself"):
        matrix_from({"work": "pipeline", "engine": ["torch"]}, "torch")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"work": "pipeline"}, "from the cache: --cache none"),
        ({"cache": ["memory"]}, "from the cache: --cache none"),
        ({"cache": ["none"], "data_service": [2]}, "the order in which they are ready: --deterministic false"),
        ({"cache": ["none"], "strategy": ["multi_worker_mirrored"], "workers": [2]}, "does not keep: one worker"),
        ({"cache": ["none"], "data": ["synthetic"]}, "without a pipeline: give other data"),
    ],
)
def test_a_data_service_that_would_do_nothing_or_break_a_promise_is_refused(asked: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=f"^no combination is left to run .*a data service of .*{reason}"):
        matrix_from({"data_service": [1], **asked})


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"parallel_calls": [3]}, "parallel_calls 3: .* map them there"),
        ({"interleave": [2]}, "interleave 2: .* interleave its files there"),
        ({"deterministic": [False]}, "deterministic false: .* let their order be free there"),
    ],
)
@pytest.mark.parametrize("work", ["training", "pipeline"])
def test_what_would_do_nothing_to_examples_that_a_function_of_ones_own_makes_is_left_out(
    asked: dict[str, Any], told: str, work: str
) -> None:
    own = {"model": ["mine:model"], "data": ["mine:examples"], "work": work}
    assert [cell for cell in matrix_from(own).cells if cell.get("data") == "mine:examples"]
    with pytest.raises(UsageError, match=f"mine:examples, {told}"):
        matrix_from({**own, **asked})


def test_a_data_service_of_two_workers_serves_strategies_of_one_process_in_any_order() -> None:
    of_input = {"cache": ["none"], "deterministic": [False], "data_service": [0, 2]}
    matrix = matrix_from({"strategy": ["none", "mirrored"], "replicas": [1, 2], **of_input})
    served = {(cell.shape.replicas, cell.get("data_service")) for cell in matrix.cells}
    assert served >= {(1, 0), (1, 2), (2, 0), (2, 2)}
    assert not [item for item in matrix.left_out if "service" in item.combination]


@pytest.mark.parametrize("work", [{"work": "pipeline"}, {"strategy": ["none"]}])
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"compression": ["gzip"]}, "digits, compression gzip: .* are written into files: --shards 1, or more"),
        ({"shards": [1], "data": ["synthetic"]}, "without a pipeline: give other data"),
        (
            {"shards": [4], "data": ["tfrecord:a/*"]},
            "tfrecord:a/\\* in 4 shards: they lie in files: .* harness prepare",
        ),
        (
            {"shards": [1], "model": ["my.own:model"], "data": ["my.own:examples"]},
            "my.own:examples in 1 shard: .* others each time: python -m harness prepare my.own:examples FOLDER writes",
        ),
    ],
)
def test_data_that_are_not_written_into_files_are_refused_with_the_remedy(
    work: dict[str, Any], asked: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=f"^no combination is left to run .*{reason}"):
        matrix_from({**work, **asked})


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"workers": [1], "autoshard": ["data"]}, "1 worker, autoshard data: .* itself: --workers 2, or more"),
        ({"data": ["synthetic"], "autoshard": ["data"]}, "without a pipeline: give other data"),
        ({"deterministic": [False], "autoshard": ["data"]}, "by their order, .*: --deterministic true"),
        ({"deterministic": [False], "interleave": [2], "shards": [2]}, "autoshard off: .*: --deterministic true"),
        ({"autoshard": ["file"]}, "digits, 2 workers, autoshard file: .* no.* TFRecord files: --shards 2, or more"),
        ({"autoshard": ["file"], "shards": [2]}, "would come from the cache: --cache none"),
        ({"autoshard": ["file"], "shards": [3], "cache": ["none"]}, "3 files are not as many .*: --shards 4"),
        ({"autoshard": ["file"], "shards": [1], "cache": ["none"]}, "1 file are not as many .*: --shards 2"),
    ],
)
def test_an_input_that_workers_could_not_share_is_refused_with_the_remedy(asked: dict[str, Any], reason: str) -> None:
    several = {"strategy": ["multi_worker_mirrored"], "workers": [2]}
    with pytest.raises(UsageError, match=f"^no combination is left to run .*{reason}"):
        matrix_from({**several, **asked})


def test_several_workers_of_servers_keep_examples_in_memory_alone_and_others_in_a_file_too() -> None:
    asked = {"strategy": ["none", "parameter_server"], "replicas": [1], "workers": [1, 2], "cache": ["memory", "file"]}
    matrix = matrix_from(asked)
    kept = {(cell.get("strategy"), cell.get("workers"), cell.get("cache")) for cell in matrix.cells}
    alone = {(strategy, 1, cache) for strategy in ("none", "parameter_server") for cache in ("memory", "file")}
    assert kept == {*alone, ("parameter_server", 2, "memory")}
    [left] = [item for item in matrix.left_out if item.combination == "parameter_server, 2 workers, cache file"]
    assert left.reason.endswith("--cache memory")


def test_a_sharing_of_the_input_is_of_strategies_with_workers_and_others_are_measured_without() -> None:
    asked = {"strategy": ["none", "multi_worker_mirrored"], "workers": [2], "shards": [2], "cache": ["none"]}
    matrix = matrix_from({**asked, "autoshard": ["off", "data", "file"]})
    shared = {(cell.get("strategy"), cell.get("autoshard")) for cell in matrix.cells}
    assert shared == {("none", "off"), *(("multi_worker_mirrored", policy) for policy in ("off", "data", "file"))}
    for strategy in ("mirrored", "parameter_server"):
        with pytest.raises(UsageError, match=r"^autoshard: .* no strategy of this sweep has workers that share"):
            matrix_from({"strategy": [strategy], "autoshard": ["data"]})


def test_at_their_defaults_shards_and_compression_leave_cells_the_ids_that_they_had() -> None:
    plain = PipelineCell(device="virtual-cpu", model="mlp", data="digits", batch_size=64, cache="none")
    assert plain.cell_id == "50e224b41b06"
    written = plain.model_copy(update={"shards": 4, "compression": "gzip"})
    assert written.label == "input b64 cache none shards 4 gzip"
    assert (plain.data_files, written.appetite.data_files) == (None, None)
    assert str(written.data_files and written.data_files.words) == "4 files, gzip"
