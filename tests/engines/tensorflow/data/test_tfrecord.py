"""TFRecord files with a features.json beside them: what they give the pipeline, and what is said of bad ones."""

import gzip
import json
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, Source, data_gives, load_source, unknown
from harness.engines.tensorflow.data.pipeline import endless_examples, gate_batches, pipeline
from harness.engines.tensorflow.data.stages import stages_of
from harness.engines.tensorflow.data_for_model import tokens_fault, workload_for
from harness.engines.tensorflow.sharded import source_of
from harness.engines.tensorflow.workloads import Vocabulary
from harness.errors import Unsupported, UsageError
from tests.record.examples import cell

IMAGES = {
    "input": {"feature": "image", "encoding": "image", "shape": [None, None, 3]},
    "target": {"feature": "label", "encoding": "int64"},
    "classes": 2,
    "examples": 12,
}
LABEL = {"feature": "label", "encoding": "int64"}
ROWS = {"input": {"feature": "row", "encoding": "float", "shape": [3]}, "target": LABEL, "classes": 4}
PRICES = {"input": ROWS["input"], "target": {"feature": "price", "encoding": "float", "shape": [2]}}
TOKENS = {"input": {"feature": "tokens", "encoding": "int64", "shape": [6]}, "target": LABEL}
WORDS = {"feature": "words", "encoding": "int64", "shape": [None]}
BOXES = {"feature": "boxes", "encoding": "float", "shape": [None, 2]}
BYTES = {"feature": "bytes", "encoding": "raw", "shape": [None]}
PICTURE, MASK = ({"feature": name, "encoding": "image", "shape": [2, 2, 1]} for name in ("picture", "mask"))
Made = Callable[..., Source]


@pytest.fixture(scope="module")
def photographs(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path]:  # noqa: ARG001
    """Twelve crops, and the folder of data."""
    source, folder = load_source("photographs:12"), tmp_path_factory.mktemp("photographs")
    source.prepare(folder)
    return source, folder


@pytest.fixture
def images(photographs: tuple[Source, Path], tmp_path: Path) -> Path:
    """A folder with the crops' file, described as somebody else's."""
    [file] = photographs[1].rglob("*.tfrecord")
    (tmp_path / "part-0").write_bytes(file.read_bytes())
    (tmp_path / "features.json").write_text(json.dumps(IMAGES))
    return tmp_path


def examples_of(tf: Any, **features: Any) -> bytes:
    lists = {np.int64: "int64_list", np.float32: "float_list", bytes: "bytes_list"}
    made = tf.train.Example()
    for name, values in features.items():
        kind = bytes if isinstance(values, list) else values.dtype.type
        getattr(made.features.feature[name], lists[kind]).value.extend(values)
    data: bytes = made.SerializeToString()
    return data


@pytest.fixture
def made(tf: Any, tmp_path: Path) -> Made:
    """Writes files of `count` examples each, with number k in row, tokens, pixels, pictures and k % 4 times in words,
    boxes and bytes, and describes them."""

    def make(
        described: dict[str, Any], files: int = 1, count: int = 8, of: Callable[[int], int] = lambda k: k % 4
    ) -> Source:
        for number in range(files):
            with tf.io.TFRecordWriter(str(tmp_path / f"{number}.tfrecord")) as out:
                for k in range(number * count, (number + 1) * count):
                    picture = tf.io.encode_png(np.full((2, 2, 1), k, np.uint8)).numpy()
                    values = {
                        "picture": [picture],
                        "mask": [picture],
                        "row": np.full(3, k, np.float32),
                        "price": np.array([k, -k], np.float32),
                        "tokens": np.arange(k, k + 6),
                        "pixels": [bytes([k] * 12)],
                        "words": np.full(k % 4, k),
                        "boxes": np.full(2 * (k % 4), k, np.float32),
                        "bytes": [bytes([k] * (k % 4))],
                    }
                    out.write(examples_of(tf, label=np.array([of(k)]), **values))
        (tmp_path / "features.json").write_text(json.dumps(described))
        return load_source(f"tfrecord:{tmp_path}")

    return make


def test_examples_and_batches_are_those_of_the_source_that_the_files_are_of(
    photographs: tuple[Source, Path], images: Path
) -> None:
    of, folder = photographs
    source = load_source(f"tfrecord:{images}/part-*")
    assert (source.gives, source.info(folder)) == (of.gives, of.info(folder))
    shape = (28, 28, 3)
    for one, other in zip(
        gate_batches(source, folder, shape, 2, 4, 2), gate_batches(of, folder, shape, 2, 4, 2), strict=True
    ):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
    timed = [pipeline(each, folder, shape, 2, 4, seed=3) for each in (source, of)]
    for one, other in zip(*(made.take(7) for made in timed), strict=True):  # more than two passes, shuffled
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
    assert stages_of(timed[0]) == stages_of(timed[1])


def test_what_the_input_looks_like_decides_what_is_done_with_it(made: Made, tmp_path: Path) -> None:
    table = made(ROWS)
    assert (table.gives, table.info(tmp_path)) == ("table", DataInfo((3,), 4, None))
    x, y = next(iter(pipeline(table, tmp_path, (3,), 4, 8, seed=1)))
    assert (x.dtype.name, y.dtype.name) == ("float32", "int32")
    assert sorted(x.numpy()[:, 0]) == list(range(8))
    prices = made(PRICES)
    assert (prices.gives, prices.info(tmp_path)) == ("table", DataInfo((3,), 0, None, numbers=2))
    x, y = next(iter(pipeline(prices, tmp_path, (3,), 2, 8, seed=1)))
    np.testing.assert_array_equal(y, np.outer(x[:, 0], [1, -1]))
    raw = {"input": {"feature": "pixels", "encoding": "raw", "shape": [2, 2, 3]}, "target": LABEL}
    pixels = made(raw)
    assert pixels.gives == "images"
    [(x, _)] = gate_batches(pixels, tmp_path, (2, 2, 3), 4, 8, 1)
    np.testing.assert_allclose(x[:, 0, 0, 0], np.arange(8) / 255)
    own = made({**TOKENS, "kind": "own"})
    assert (own.gives, data_gives(own.name)) == ("own", "own")
    [(x, y)] = gate_batches(own, tmp_path, (6,), 4, 8, 1)
    assert (x.dtype, y.dtype, list(y[:5])) == (np.int64, np.int64, [0, 1, 2, 3, 0])


def test_several_features_are_inputs_targets_and_weights_by_their_places(made: Made, tmp_path: Path) -> None:
    row, tokens, label = ROWS["input"], TOKENS["input"], LABEL
    of = {"input": {"a/row": row, "a/tokens": tokens}, "target": {"0": PRICES["target"]}, "weights": label}
    source = made(of)
    assert (source.gives, data_gives(source.name)) == ("own", "own")
    shapes = {"a/row": (3,), "a/tokens": (6,)}
    assert source.info(tmp_path) == DataInfo(shapes, 0, None)
    [(x, y)] = gate_batches(source, tmp_path, shapes, 0, 8, 1)
    np.testing.assert_array_equal(x["a"]["row"][:, 0], np.arange(8))
    np.testing.assert_array_equal(x["a"]["tokens"][:, 0], np.arange(8))
    [price] = y.targets
    np.testing.assert_array_equal(price, np.outer(np.arange(8), [1, -1]))
    np.testing.assert_array_equal(y.weights, np.arange(8) % 4)
    targets = {"a": label, "b": PRICES["target"]}
    assert made({"input": tokens, "target": targets}).gives == "own", "without weights, and beside one input, too"


def test_images_among_other_features_are_decoded_apart_in_the_pipelines_parallel_calls(
    made: Made, tmp_path: Path
) -> None:
    of = {"input": {"picture": PICTURE, "row": ROWS["input"]}, "target": MASK, "weights": LABEL, "classes": 8}
    source, shape = made(of), {"picture": (2, 2, 1), "row": (3,)}
    asked = cell(data=source.name, parallel_calls=2, cache="none")
    batches = pipeline(source_of(asked, tmp_path), tmp_path, shape, 8, 4, seed=1, cell=asked)
    assert "ParallelMap(2)" in stages_of(batches)
    for x, y in (*gate_batches(source, tmp_path, shape, 8, 4, 2), *batches.take(4).as_numpy_iterator()):
        assert (x["picture"].dtype, x["picture"].shape) == (np.uint8, (4, 2, 2, 1))
        for part in (x["picture"], y.targets):
            np.testing.assert_array_equal(part[:, 1, 1, 0], x["row"][:, 0])
        np.testing.assert_array_equal(y.weights, x["row"][:, 0] % 4)
    cut_off = [
        endless_examples(source, tmp_path, shape, 8, 1, (0, 1), asked, None, "", cut).element_spec
        for cut in ("source", "decode")
    ]
    assert [(x["picture"].dtype.name, y.targets.dtype.name) for x, y in cut_off] == [("string",) * 2, ("uint8",) * 2]
    assert cut_off[1] == source.examples(tmp_path).element_spec
    with pytest.raises(UsageError, match="mask is no class from 0 to 6: 7; expected"):
        gate_batches(made({**of, "classes": 7}), tmp_path, shape, 8, 4, 2)


def test_tokens_are_cut_to_the_model_and_are_their_own_targets_where_the_next_one_is_told(
    made: Made, tmp_path: Path
) -> None:
    text = made({"input": TOKENS["input"], "vocabulary": 20})
    next_token = Vocabulary(20, next_token=True)
    [(x, y)] = gate_batches(text, tmp_path, (5,), 20, 4, 1, next_token)
    np.testing.assert_array_equal(x[2], np.arange(2, 7))
    np.testing.assert_array_equal(y[2], np.arange(3, 8))
    for shape, vocabulary, says in (
        ((6,), next_token, r"expected \(tokens,\) of at most 5"),
        ((5,), Vocabulary(19, next_token=True), "its vocabulary has 19 tokens"),
        ((6,), Vocabulary(20), "it tells classes, and 'tfrecord:.*' has none"),
    ):
        with pytest.raises(UsageError, match=says):
            gate_batches(text, tmp_path, shape, 20, 4, 1, vocabulary)
    labelled = made(TOKENS)
    [(x, y)] = gate_batches(labelled, tmp_path, (6,), 4, 4, 1, Vocabulary(20))
    assert (x.shape, list(y)) == ((4, 6), [0, 1, 2, 3])


def test_categories_reach_a_recommender_with_as_many_tables_and_rows(made: Made, tmp_path: Path) -> None:
    source = made({**TOKENS, "kind": "categories", "classes": 4, "vocabulary": 20})
    assert (source.gives, data_gives(source.name)) == ("categories", "categories")
    model = "recommender(tables=6,rows=20)"
    workload, info = workload_for(model, source, tmp_path)
    assert info == DataInfo((6,), 4, None, 20)
    assert tokens_fault(model, source.name) is None
    [(x, y)] = gate_batches(source, tmp_path, (6,), 4, 8, 1, workload.vocabulary)
    assert (x.dtype, y.tolist()) == (np.int32, [0, 1, 2, 3, 0, 1, 2, 3])
    np.testing.assert_array_equal(x, np.arange(6) + np.arange(8)[:, None])
    for sizes, says in (
        ("rows=20", f"it takes 4 categories of an example, and '{source.name}' has (6,)"),
        ("tables=6,rows=19", f"its vocabulary has 19 tokens, expected those of '{source.name}', 20 or more"),
    ):
        assert tokens_fault(f"recommender({sizes})", source.name) == says
    with pytest.raises(UsageError, match=r"gives inputs of the shape \(6,\) and the model takes \(4,\), expected exam"):
        gate_batches(source, tmp_path, (4,), 4, 8, 1, workload.vocabulary)
    with pytest.raises(UsageError, match=r"gives categories, and model 'lstm' takes text$"):
        workload_for("lstm", source, tmp_path)
    few = made({**TOKENS, "kind": "categories", "classes": 4, "vocabulary": 12})
    with pytest.raises(UsageError, match=r"tokens has a category that is not from 0 to 11: 12; expected examples as"):
        gate_batches(few, tmp_path, (6,), 4, 8, 1, workload.vocabulary)


def test_inputs_of_varying_length_get_zeros_behind_them_up_to_what_the_model_takes(made: Made, tmp_path: Path) -> None:
    source = made({"input": {"words": WORDS, "boxes": BOXES, "bytes": BYTES}, "target": LABEL, "examples": 8})
    assert source.info(tmp_path) == DataInfo({"words": (None,), "boxes": (None, 2), "bytes": (None,)}, 0, 8)
    source.prepare(tmp_path)
    shape = {"words": (4,), "boxes": (3, 2), "bytes": (3,)}
    wanted = np.array([[k] * (k % 4) + [0] * (4 - k % 4) for k in range(8)])
    [(x, y)] = gate_batches(source, tmp_path, shape, 0, 8, 1)
    assert [x[name].dtype.name for name in shape] == ["int64", "float32", "uint8"]
    np.testing.assert_array_equal(x["words"], wanted)
    np.testing.assert_array_equal(x["boxes"], np.stack([wanted[:, :3]] * 2, axis=2))
    np.testing.assert_array_equal(x["bytes"], wanted[:, :3])
    np.testing.assert_array_equal(y, np.arange(8) % 4)
    for worker in range(2):
        x, y = next(iter(pipeline(source, tmp_path, shape, 0, 4, seed=1, shard=(worker, 2))))
        np.testing.assert_array_equal(sorted(x["words"].numpy().tolist()), sorted(wanted[worker::2].tolist()))
        np.testing.assert_array_equal(y, (x["words"].numpy() > 0).sum(1))


def test_one_input_of_varying_length_is_for_a_model_of_ones_own(made: Made, tmp_path: Path) -> None:
    source = made({"input": {**WORDS, "dtype": "int32"}, "target": LABEL, "classes": 4})
    assert (source.gives, data_gives(source.name)) == ("own", "own")
    [(x, _)] = gate_batches(source, tmp_path, (3,), 4, 8, 1)
    assert (x.dtype.name, x[3].tolist(), x[5].tolist()) == ("int32", [3, 3, 3], [5, 0, 0])
    told = r"takes at most \(2,\) \(cut it by most in features.json\), is: 3; expected examples as "
    with pytest.raises(UsageError, match=told):
        gate_batches(source, tmp_path, (2,), 4, 8, 1)
    with pytest.raises(UsageError, match=r"gives inputs of the shape \(None,\) and the model takes \(3, 2\), expected"):
        gate_batches(source, tmp_path, (3, 2), 4, 8, 1)
    with pytest.raises(UsageError, match="expected a model of your own for them"):
        workload_for("lstm", source, tmp_path)


def test_an_input_of_varying_length_is_cut_where_its_description_says_so(made: Made, tmp_path: Path) -> None:
    cut = {"words": {**WORDS, "most": 2}, "boxes": {**BOXES, "most": 1}, "bytes": {**BYTES, "most": 2}}
    source = made({"input": cut, "target": LABEL})
    lengths = [[len(of) for of in x.values()] for x, _ in source.examples(tmp_path)]  # which `prepare` writes, too
    assert lengths[:4] == [[0, 0, 0], [1, 1, 1], [2, 1, 2], [2, 1, 2]]
    [(x, y)] = gate_batches(source, tmp_path, {"words": (2,), "boxes": (3, 2), "bytes": (2,)}, 0, 8, 1)
    assert (x["words"][:4].tolist(), y[3]) == ([[0, 0], [1, 0], [2, 2], [3, 3]], 3)
    np.testing.assert_array_equal(x["bytes"], x["words"])
    np.testing.assert_array_equal(x["boxes"][3], [[3, 3], [0, 0], [0, 0]])


def test_a_feature_of_varying_length_that_no_example_has_is_told_before_it_is_read_as_empty(
    made: Made, tmp_path: Path
) -> None:
    source = made({"input": {**WORDS, "feature": "wrods"}, "target": LABEL})
    with pytest.raises(UsageError, match="': none of the first 8 examples has the feature 'wrods'; expected examples"):
        source.prepare(tmp_path)


def test_files_are_read_one_after_the_other_or_side_by_side(made: Made, tmp_path: Path) -> None:
    source = made(ROWS, files=3, count=4)
    order = [int(x[0]) for x, _ in source.examples(tmp_path)]
    assert order == list(range(12))
    order = [int(x[0]) for x, _ in source.interleaved(tmp_path, 2, in_order=True)]
    assert order[:8] == [0, 4, 1, 5, 2, 6, 3, 7]
    assert sorted(int(x[0]) for x, _ in source.interleaved(tmp_path, 3, in_order=False)) == list(range(12))


@pytest.mark.parametrize(
    ("compression", "compress"), [("none", bytes), ("gzip", gzip.compress), ("zlib", zlib.compress)]
)
def test_how_many_examples_some_of_the_files_have_is_not_known(
    tmp_path: Path, compression: str, compress: Callable[[bytes], bytes]
) -> None:
    for number in range(3):
        (tmp_path / f"train-{number}").write_bytes(compress(struct.pack("<Q4x4s4x", 4, b"data")))
    (tmp_path / "README").write_text("Whose they are, and what one may do with them.")
    (tmp_path / "features.json").write_text(json.dumps({**ROWS, "compression": compression, "examples": 3}))
    patterns = ("train-*", "train-[01]")
    found = [load_source(f"tfrecord:{tmp_path}/{pattern}").info(tmp_path).examples for pattern in patterns]
    assert found == [3, None]


@pytest.mark.parametrize("said", [{"examples": 12}, {"examples": 9}, {}])
def test_a_prepared_folder_that_says_another_number_of_examples_than_its_shards_have_is_refused(
    tmp_path: Path, said: dict[str, int]
) -> None:
    shards = [{"file": f"part-{n}", "examples": 6, "bytes": 4, "sha256": ""} for n in range(2)]
    for shard in shards:
        (tmp_path / str(shard["file"])).write_bytes(b"data")
    (tmp_path / "features.json").write_text(json.dumps({**ROWS, **said, "shards": shards}))
    if said.get("examples") != 9:
        assert load_source(f"tfrecord:{tmp_path}").info(tmp_path).examples == 12
        return
    told = "its features.json says 9 examples, and its shards have 12; correct it, or prepare it again"
    for pattern in (tmp_path, tmp_path / "part-0"):
        with pytest.raises(UsageError, match=rf"^data: 'tfrecord:{pattern}': {told}$"):
            load_source(f"tfrecord:{pattern}")


def test_a_source_of_no_files_says_that_there_is_nothing_to_read_side_by_side(tmp_path: Path) -> None:
    with pytest.raises(
        Unsupported, match=r"^interleave: 'digits' is not read from several files; .* written: --shards"
    ):
        load_source("digits").interleaved(tmp_path, 2, in_order=True)


@pytest.mark.parametrize(("name", "compress"), [("gzip", gzip.compress), ("zlib", zlib.compress)])
def test_compression_is_as_described_and_said_where_it_is_not(
    images: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    (images / "part-0").write_bytes(compress((images / "part-0").read_bytes()))
    source = load_source(f"tfrecord:{images}/part-0")
    with pytest.raises(UsageError, match=f"part-0' is no such file: its compression is {name}, and its features.json"):
        source.prepare(images)
    (images / "features.json").write_text(json.dumps({**IMAGES, "compression": name}))
    source = load_source(f"tfrecord:{images}/part-0")
    assert len(list(source.examples(images))) == 12


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_file_that_is_cut_short_is_named_with_how_much_of_it_is_whole(images: Path, compression: str) -> None:
    whole = (images / "part-0").read_bytes()
    (images / "part-1").write_bytes((gzip.compress(whole) if compression == "gzip" else whole)[:-100])
    if compression == "gzip":
        (images / "part-0").write_bytes(gzip.compress(whole))
    (images / "features.json").write_text(json.dumps({**IMAGES, "examples": 24, "compression": compression}))
    source = load_source(f"tfrecord:{images}/part-*")
    source.prepare(images)
    with pytest.raises(
        UsageError, match=r"/part-1' is cut short or damaged: truncated record at byte [\d,]+, after 11 "
    ):
        gate_batches(source, images, (8, 8, 3), 2, 12, 2)


@pytest.mark.parametrize(
    ("described", "says"),
    [
        ({**ROWS, "input": {"feature": "rows", "encoding": "float", "shape": [3]}}, "Feature: rows .* is required"),
        ({**ROWS, "input": {"feature": "row", "encoding": "float", "shape": [4]}}, "Key: row"),
        ({**ROWS, "input": {"feature": "row", "encoding": "int64", "shape": [3]}}, "Data types don't match"),
        ({**ROWS, "input": {"feature": "pixels", "encoding": "image", "shape": [None, None, 3]}}, "[Uu]nknown image"),
        ({**ROWS, "input": {"feature": "pixels", "encoding": "raw", "shape": [2, 2, 1]}}, "12 values, but the"),
        ({**ROWS, "input": {**WORDS, "feature": "row"}}, "Data types don't match"),
        ({**ROWS, "input": {**WORDS, "feature": "tokens", "shape": [None, 5]}}, "divisible by 5, found 6"),
        ({**ROWS, "classes": 3}, "read: label is no class from 0 to 2: 3; expected"),
        ({**TOKENS, "vocabulary": 5}, "read: tokens has a token that is not from 0 to 4: 5; expected"),
    ],
)
def test_features_that_do_not_fit_are_told_in_one_line(
    made: Made, tmp_path: Path, described: dict[str, Any], says: str
) -> None:
    source = made(described, of=lambda k: 3 if k == 0 else 0)
    with pytest.raises(UsageError, match=says) as caught:
        source.prepare(tmp_path)
    assert str(caught.value).startswith(f"data: '{source.name}': an example cannot be read: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no '.*features.json', which says what the files hold; write one"),
        ("[", "the whole: Invalid JSON"),
        ('{"pythonClassName": "tensorflow_datasets.core.features"}', "--data tfds:NAME"),
        (json.dumps({**ROWS, "inputs": 1}), "inputs: Extra inputs are not permitted"),
        (json.dumps({**ROWS, "compression": "zip"}), "compression: Input should be 'none', 'gzip' or 'zlib'"),
        (json.dumps({**ROWS, "input": {**ROWS["input"], "encoding": "floats"}}), "input.encoding: Input should be"),
        (
            json.dumps({**ROWS, "input": {**WORDS, "shape": [3, None]}}),
            "input: .* first size .* of 'words' may be null",
        ),
        (json.dumps({**ROWS, "input": {"a": {**WORDS, "shape": [None, None]}}}), "input.a: .* only the first size of "),
        (json.dumps({**ROWS, "input": {**BYTES, "dtype": "uint32"}}), "input: .*'bytes' is uint32, and raw holds b"),
        (json.dumps({**ROWS, "input": {**ROWS["input"], "most": 2}}), "input: .* most cuts a first size that is nul"),
        (json.dumps({**IMAGES, "input": {**IMAGES["input"], "most": 2}}), "no image's: that of 'image' is another"),
        (json.dumps({"input": WORDS, "vocabulary": 9}), "target is missing.* only text of one length has none"),
        (
            json.dumps({**TOKENS, "input": WORDS, "kind": "text"}),
            'which text may not: pad it in .*"kind": "own", for a',
        ),
        (json.dumps({**ROWS, "input": {**BYTES, "shape": [None, 2, 3]}}), "'bytes' varies in length, which images may"),
        (json.dumps({**IMAGES, "kind": "own"}), "the image 'image' has no known size, which only those of kind images"),
        (json.dumps({"input": WORDS, "target": BOXES}), "'boxes' varies in length and is no input, .* weights of 0"),
        (json.dumps({"input": WORDS, "target": LABEL, "weights": BOXES}), "'boxes' varies in length and is no input"),
        (json.dumps({**ROWS, "target": None}), "target is missing"),
        (json.dumps({**ROWS, "target": ROWS["input"]}), "two tensors of an example are the same feature 'row'"),
        (json.dumps({**ROWS, "input": {"a": ROWS["input"], "a/b": PRICES["target"]}}), "'a' is a tensor, and others"),
        (json.dumps({**ROWS, "kind": "table", "input": {"a": ROWS["input"]}}), "table have one input and one target"),
        (json.dumps({**ROWS, "kind": "table", "weights": PRICES["target"]}), "table have one input and one target"),
        (json.dumps({**ROWS, "kind": "own", "target": {"a": LABEL}}), "classes are of one target, and there are"),
        (json.dumps(ROWS | {"target": PRICES["target"]}), "target of a table is a class: .*, or numbers: encoding"),
    ],
)
def test_a_description_that_is_missing_or_nonsense_is_told_with_the_key(
    tmp_path: Path, text: str | None, says: str
) -> None:
    (tmp_path / "0.tfrecord").touch()
    if text is not None:
        (tmp_path / "features.json").write_text(text)
    fault = unknown(f"tfrecord:{tmp_path}/*.tfrecord", Path())
    assert fault is not None
    assert fault.startswith("data: ")
    assert re.search(says, fault), fault
    assert data_gives(f"tfrecord:{tmp_path}/*.tfrecord") == "anything"  # another host may have it


def test_a_pattern_that_matches_nothing_or_files_of_several_folders_is_refused(tmp_path: Path) -> None:
    fault = unknown(f"tfrecord:{tmp_path}/*.records", Path())
    assert fault is not None
    assert f"'tfrecord:{tmp_path}/*.records' matches no file, seen from " in fault
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.tfrecord").touch()
    fault = unknown(f"tfrecord:{tmp_path}/**/*.tfrecord", Path())
    assert fault is not None
    assert "matches files in 2 folders, expected those of one" in fault


@pytest.mark.parametrize(
    ("described", "model", "says"),
    [
        ({"input": ROWS["input"], "target": LABEL}, "mlp", r"add classes to its features\.json$"),
        ({"input": IMAGES["input"], "target": LABEL}, "mnist_cnn", r"add classes to its features\.json$"),
        ({"input": TOKENS["input"]}, "lstm", "take one that tells the next token, as gpt$"),
        ({"input": TOKENS["input"]}, "gpt", None),
        (ROWS, "mlp", None),
    ],
)
def test_a_model_by_name_needs_to_know_how_many_outputs_it_has(
    made: Made, tmp_path: Path, described: dict[str, Any], model: str, says: str | None
) -> None:
    source = made(described)
    if says is None:
        assert workload_for(model, source, tmp_path)[0].name == model
        return
    with pytest.raises(UsageError, match=rf"'{model}' has an output for each: {says}") as caught:
        workload_for(model, source, tmp_path)
    assert "\n" not in str(caught.value)
