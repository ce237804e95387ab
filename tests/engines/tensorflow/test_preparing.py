"""Examples of every kind of source come back from the TFRecord files that are written of them."""

import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import Source, load_source
from harness.engines.tensorflow.data.pipeline import gate_batches, pipeline
from harness.engines.tensorflow.data_for_model import workload_for
from harness.engines.tensorflow.preparing import prepare_files
from harness.engines.tensorflow.workloads import Vocabulary
from harness.errors import UsageError
from harness.protocol.preparing import Described, PrepareOrder, ReadingCompared, ShardPlan
from harness.record.tfrecords import Features, WrittenShard, side_file

MODULE = """
    import numpy as np
    import tensorflow as tf

    LEFT = iter([(np.float32(1), np.int64(0))] * 3)
    from_slices = tf.data.Dataset.from_tensor_slices

    def pairs(kind):
        x = np.arange(24).reshape(6, 2, 2) % 2 if kind == "bool" else np.arange(24).reshape(6, 2, 2) - 3
        return from_slices((x.astype(kind), np.linspace(0, 1, 6, dtype=np.float32)))

    def of_int8(): return pairs("int8")
    def of_bool(): return pairs("bool")
    def of_int16(): return pairs("int16")
    def of_int32(): return pairs("int32")
    def of_uint32(): return pairs("uint32")
    def of_float16(): return pairs("float16")
    def of_float32(): return pairs("float32")
    def of_float64(): return pairs("float64")
    def of_uint64(): return pairs("uint64")

    def uncounted():
        return pairs("float32").filter(lambda x, y: True)

    def endless():
        return pairs("float32").repeat()

    def other():
        return pairs("float32").map(lambda x, y: (x + 1, y))

    def none():
        return uncounted().take(0)

    def empty():
        return from_slices((np.zeros((0, 4)), np.zeros(0)))

    def batches(batch_size, shard):
        return pairs("float32").batch(batch_size, drop_remainder=True)

    def several():
        n = np.arange(6)
        inputs = {"user": n, "words": {"title": np.outer(n, [1, 2]), "tags": n.reshape(6, 1, 1) % 2 == 0}}
        return from_slices((inputs, (n.astype("float16"), np.outer(n, n[:3]).astype("float64"))))

    def weighted():
        return several().map(lambda x, y: ((x["user"], x["words"]["title"]), y[1], tf.cast(x["user"], tf.float32)))

    def weighted_each():
        return several().map(lambda x, y: (x, {"a": y[0], "b": y[1]}, {"a": y[0], "b": y[0]}))

    def several_of_uint64():
        return several().map(lambda x, y: ({"user": tf.cast(x["user"], tf.uint64), "words": x["words"]}, y))

    def numbered():
        return several().map(lambda x, y: ({"0": x["user"], "1": x["user"]}, y))

    def with_a_stroke():
        return several().map(lambda x, y: ({"a/b": x["user"]}, y))

    def of_varying_length():
        return several().map(lambda x, y: ({"user": x["user"], "some": tf.range(x["user"])}, y))

    def of_varying_width():
        return several().map(lambda x, y: ({"user": x["user"], "some": tf.range(x["user"])[None]}, y))

    def ragged():
        boxes = tf.RaggedTensor.from_row_lengths(np.arange(6, dtype=np.float32).reshape(3, 2), [2, 0, 1])
        inputs = {"words": tf.ragged.constant([[4, 5], [], [6]]), "boxes": boxes}
        return from_slices((inputs | {"flags": inputs["words"] == 5}, np.arange(3)))

    def tokens():
        return from_slices((np.arange(48).reshape(6, 8), np.arange(6) % 3))

    def sevens(first):
        return from_slices((tf.ragged.constant([[7] * first, [7] * (3 - first)], tf.int64), np.full(2, 7)))

    def ragged_alone():
        return ragged().map(lambda x, y: (x["words"], y))

    def twice_ragged():
        return from_slices((tf.ragged.constant([[[1], []], [[2, 3]]]), np.arange(2)))

    def alone():
        return several().map(lambda x, y: x)

    def ends():
        spec = (tf.TensorSpec((), tf.float32), tf.TensorSpec((), tf.int64))
        return tf.data.Dataset.from_generator(lambda: LEFT, output_signature=spec)
"""
Prepared = Callable[..., tuple[Features, Path]]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module `own_pairs`."""
    (tmp_path / "own_pairs.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_pairs", None)


@pytest.fixture
def pictures(tf: Any, tmp_path: Path) -> Path:
    """Five images of two classes, each of another size, as JPEG and PNG; and what is no image of a class."""
    for number, (folder, ending) in enumerate(
        [("cats", "jpg"), ("dogs", "png"), ("cats", "JPEG"), ("dogs", "jpg"), ("cats", "png")]
    ):
        image = np.full((8 + number, 6, 3), 20 * number, np.uint8)
        data = tf.io.encode_png(image) if ending == "png" else tf.io.encode_jpeg(image)
        (tmp_path / "pictures" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "pictures" / folder / f"{number}.{ending}").write_bytes(data.numpy())
    (tmp_path / "pictures" / "notes").mkdir()
    (tmp_path / "pictures" / "notes" / "read.me").touch()
    return tmp_path / "pictures"


def order(tmp_path: Path, source: str, **more: Any) -> PrepareOrder:
    known: dict[str, Any] = {"number": 0, "data_dir": str(tmp_path / "data"), "scratch": str(tmp_path), **more}
    return PrepareOrder(source=source, **known)


def described(tmp_path: Path, source: str) -> Features:
    return description(tmp_path, source).features


def description(tmp_path: Path, source: str) -> Described:
    answer = prepare_files(order(tmp_path, source, do="describe"))
    assert isinstance(answer, Described)
    return answer


@pytest.fixture
def prepared(tf: Any, tmp_path: Path) -> Prepared:  # noqa: ARG001
    """Writes a source's examples into two files, the second one first, and their features.json."""

    def prepare(source: str, folder: str = "files") -> tuple[Features, Path]:
        features = described(tmp_path, source)
        count = features.examples or 0
        target = tmp_path / folder
        target.mkdir()
        plans = [
            ShardPlan(file="0", first=0, examples=count // 3),
            ShardPlan(file="1", first=count // 3, examples=count - count // 3),
        ]
        for plan in reversed(plans):
            prepare_files(order(tmp_path, source, do="write", target=str(target), features=features, groups=((plan,),)))
            written = WrittenShard.model_validate_json(side_file(target, plan.file).read_bytes())
            assert (written.examples, written.bytes) == (plan.examples, (target / plan.file).stat().st_size)
        (target / "features.json").write_text(features.model_dump_json())
        return features, target

    return prepare


@pytest.mark.parametrize(
    ("source", "kind", "encoding"),
    [
        ("digits", "images", "raw"),
        ("photographs:5", "images", "image"),
        ("iris", "table", "float"),
        ("linnerud", "table", "float"),
        *((f"own_pairs:of_{kind}", "own", "raw") for kind in ("int8", "bool", "int16", "float16", "float64")),
        *((f"own_pairs:of_{kind}", "own", "int64") for kind in ("int32", "uint32")),
        ("own_pairs:uncounted", "own", "float"),
    ],
)
@pytest.mark.usefixtures("own")
def test_examples_come_back_as_they_were_in_their_order(
    prepared: Prepared, tmp_path: Path, source: str, kind: str, encoding: str
) -> None:
    features, target = prepared(source)
    assert (features.kind, features.input.encoding) == (kind, encoding)
    of, files = load_source(source), load_source(f"tfrecord:{target}/[01]")
    before, after = (
        list(each.examples(folder).map(lambda x, y, each=each: (each.decoded(x), y)).as_numpy_iterator())
        for each, folder in ((of, tmp_path / "data"), (files, tmp_path))
    )
    assert len(after) == features.examples
    for (one, y), (other, label) in zip(before, after, strict=True):
        assert (one.dtype, one.shape, y.dtype) == (other.dtype, other.shape, label.dtype if kind == "own" else y.dtype)
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(y, label)


def and_read(prepared: Prepared, tmp_path: Path, name: str) -> tuple[Source, Source]:
    """Pairs of one's own, and what was prepared of them, which say the same of themselves."""
    features, target = prepared(f"own_pairs:{name}")
    of, files = load_source(f"own_pairs:{name}"), load_source(f"tfrecord:{target}/[01]")
    assert (features.kind, files.gives, files.info(tmp_path)) == ("own", "own", of.info(tmp_path))
    return of, files


@pytest.mark.parametrize("source", ["several", "weighted", "weighted_each"])
@pytest.mark.usefixtures("own")
def test_several_inputs_targets_and_weights_come_back_in_their_structure(
    tf: Any, prepared: Prepared, tmp_path: Path, source: str
) -> None:
    of, files = and_read(prepared, tmp_path, source)
    examples, again = of.examples(tmp_path), files.examples(tmp_path)
    assert again.element_spec == examples.element_spec
    tf.nest.assert_same_structure(again.element_spec, examples.element_spec)
    for one, other in zip(examples, again, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)
    one, other = (next(iter(pipeline(each, tmp_path, shapes_of(each), 0, 4, seed=3))) for each in (of, files))
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def shapes_of(source: Source) -> Any:
    """Of its inputs, as a model takes them."""
    return source.info(Path()).shape


@pytest.mark.parametrize("name", ["of_varying_length", "ragged", "ragged_alone"])
@pytest.mark.usefixtures("own")
def test_inputs_of_varying_length_come_back_as_long_as_they_were(
    tf: Any, prepared: Prepared, tmp_path: Path, name: str
) -> None:
    of, files = and_read(prepared, tmp_path, name)
    for one, other in zip(of.examples(tmp_path), files.examples(tmp_path), strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)
    model = {place: tuple(size or 6 for size in shape) for place, shape in shapes_by_place(of).items()}
    taken = model.get("", model)
    one, other = (gate_batches(each, tmp_path, taken, 0, 3, 1) for each in (of, files))
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)
    one, other = (next(iter(pipeline(each, tmp_path, taken, 0, 2, seed=3))) for each in (of, files))
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)


@pytest.mark.usefixtures("own")
def test_tokens_of_ones_own_are_text_where_a_person_changes_their_description(
    prepared: Prepared, tmp_path: Path
) -> None:
    features, target = prepared("own_pairs:tokens")
    assert features.kind == "own"
    changed = {**json.loads((target / "features.json").read_text()), "kind": "text", "vocabulary": 48, "classes": 3}
    (target / "features.json").write_text(json.dumps(changed))
    source = load_source(f"tfrecord:{target}/[01]")
    assert workload_for("lstm", source, tmp_path)[0].name == "lstm"
    [(x, y)] = gate_batches(source, tmp_path, (8,), 3, 6, 1, Vocabulary(48))
    np.testing.assert_array_equal(x, np.arange(48).reshape(6, 8))
    np.testing.assert_array_equal(y, np.arange(6) % 3)
    (target / "features.json").write_text(json.dumps({**changed, "target": None, "classes": 0}))
    source = load_source(f"tfrecord:{target}/[01]")
    assert workload_for("gpt", source, tmp_path)[0].name == "gpt"
    [(x, y)] = gate_batches(source, tmp_path, (7,), 48, 6, 1, Vocabulary(48, next_token=True))
    np.testing.assert_array_equal(y, x + 1)


def shapes_by_place(source: Source) -> dict[str, Any]:
    shape = shapes_of(source)
    return {"": shape} if isinstance(shape, tuple) else shape


@pytest.mark.usefixtures("own", "tf")
def test_several_tensors_are_features_by_the_names_of_their_places(tmp_path: Path) -> None:
    features = described(tmp_path, "own_pairs:several")
    names = ["input/user", "input/words/tags", "input/words/title", "target/0", "target/1"]
    assert [one.feature for one in features.tensors] == names
    assert [one.encoding for one in features.tensors] == ["int64", "raw", "int64", "raw", "raw"]
    varying = described(tmp_path, "own_pairs:ragged").input
    found = {place: (of.encoding, of.shape) for place, of in varying.items()}
    assert found == {"words": ("int64", [None]), "boxes": ("float", [None, 2]), "flags": ("raw", [None])}
    assert Features.model_validate_json(features.model_dump_json()) == features


@pytest.mark.parametrize(
    "source",
    [
        *("digits", "text", "tokens", "photographs:5", "iris"),
        *(f"own_pairs:{name}" for name in ("of_float64", "several", "weighted", "weighted_each", "ragged")),
    ],
)
@pytest.mark.usefixtures("own", "few_pieces")
def test_prepared_files_are_prepared_again_as_they_are(prepared: Prepared, source: str) -> None:
    features, once = prepared(source)
    again, twice = prepared(f"tfrecord:{once}/[01]", "again")
    assert again == features
    for file in ("0", "1"):
        assert (twice / file).read_bytes() == (once / file).read_bytes()


def test_images_among_other_features_stay_the_bytes_that_they_are(tf: Any, prepared: Prepared, tmp_path: Path) -> None:
    images = [tf.io.encode_jpeg(np.full((16, 16, 3), 40 * k, np.uint8)).numpy() for k in range(6)]
    picture, row = {"feature": "p", "encoding": "image", "shape": [16, 16, 3]}, {"encoding": "float", "shape": [1]}
    of = {"input": {"picture": picture, "row": {"feature": "r", **row}}, "target": {"feature": "y", **row}}
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "features.json").write_text(json.dumps(of))
    with tf.io.TFRecordWriter(str(tmp_path / "theirs" / "0.tfrecord")) as out:
        for k, image in enumerate(images):
            example = tf.train.Example()
            example.features.feature["p"].bytes_list.value.append(image)
            for name in ("r", "y"):
                example.features.feature[name].float_list.value.append(k)
            out.write(example.SerializeToString())
    features, target = prepared(f"tfrecord:{tmp_path / 'theirs'}")
    assert features.input["picture"].encoding == "image"
    files = load_source(f"tfrecord:{target}/[01]")
    read = list(files.read(tmp_path, 1, True).as_numpy_iterator())
    assert [(x["picture"], *x["row"], *y) for x, y in read] == [(image, k, k) for k, image in enumerate(images)]


def test_a_folder_of_images_gives_each_with_the_class_of_its_folder_in_a_mixed_order(
    pictures: Path, prepared: Prepared, tmp_path: Path
) -> None:
    features, target = prepared(f"folder:{pictures}")
    assert (features.names, features.classes, features.examples) == (["cats", "dogs"], 2, 5)
    source = load_source(f"tfrecord:{target}/[01]")
    read = [(source.decoded(x).shape[0] - 8, int(y)) for x, y in source.examples(tmp_path)]
    assert sorted(read) == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)]
    assert [label for _, label in read] != sorted(label for _, label in read)


def test_a_file_that_is_no_image_is_named_when_it_is_prepared_and_when_it_is_decoded(
    pictures: Path, prepared: Prepared, tmp_path: Path
) -> None:
    cut = pictures / "dogs" / "1.png"
    cut.write_bytes(cut.read_bytes()[:30])
    source = load_source(f"folder:{pictures}")
    with pytest.raises(UsageError, match=r"/dogs/1.png' is no image that can be decoded, or is gone"):
        gate_batches(source, tmp_path, (8, 8, 3), 2, 5, 1)
    cut.write_bytes(b"words")
    with pytest.raises(UsageError, match=r"^source: example \d \('.*/dogs/1.png'\) is no JPEG or PNG; mend"):
        prepared(f"folder:{pictures}")


def test_images_that_differ_in_size_and_are_decoded_already_lose_nothing(
    tf: Any, pictures: Path, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = load_source(f"folder:{pictures}")
    decoded = type("Decoded", (type(folder),), {"encoded": False, "decoded": lambda _, x: x})
    plain = decoded(str(pictures))
    part = type(folder).part
    monkeypatch.setattr(decoded, "part", lambda self, *of: part(self, *of).map(lambda x, y: (folder.decoded(x), y)))
    monkeypatch.setattr("harness.engines.tensorflow.preparing.load_source", lambda _: plain)
    features, target = prepared("any")
    assert (features.input.encoding, features.input.shape) == ("image", [None, None, 3])
    files = load_source(f"tfrecord:{target}/[01]")
    for (x, _), (data, _) in zip(plain.examples(tmp_path), files.examples(tmp_path), strict=True):
        assert data.numpy().startswith(b"\x89PNG")
        np.testing.assert_array_equal(x, files.decoded(data))
    assert tf.executing_eagerly()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("synthetic", "^source: 'synthetic' has no examples of its own"),
        ("own_pairs:endless", "^source: 'own_pairs:endless' never ends, expected one pass"),
        *((f"own_pairs:{name}", f"^source: 'own_pairs:{name}' has no examples$") for name in ("none", "empty")),
        *(
            (
                f"own_pairs:{name}",
                f"^source: 'own_pairs:{name}' gives no target, inputs of which more than the first .* train on it as",
            )
            for name in ("numbered", "with_a_stroke", "of_varying_width", "twice_ragged", "alone")
        ),
        ("own_pairs:several_of_uint64", "^source: its inputs 'user' are of uint64, expected one of int32, int64, "),
        (
            "own_pairs:batches",
            "^source: .own_pairs:batches. makes batches in an order of its own, expected a function without",
        ),
        ("own_pairs:of_uint64", "^source: its inputs are of uint64, expected one of int32, int64, "),
        ("own_pairs:raises", "^data: 'own_pairs:raises': module 'own_pairs' has no 'raises'$"),
    ],
)
@pytest.mark.usefixtures("own", "tf")
def test_what_has_no_pass_of_examples_that_can_be_kept_is_refused(tmp_path: Path, source: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        described(tmp_path, source)


@pytest.mark.usefixtures("own")
def test_a_number_of_examples_that_a_person_has_written_is_refused_where_there_are_others(
    prepared: Prepared, tmp_path: Path
) -> None:
    features, target = prepared("own_pairs:of_float64")
    (target / "features.json").write_text(features.model_copy(update={"examples": 5}).model_dump_json())
    with pytest.raises(UsageError, match=r"^source: 'tfrecord:.*' has 6 examples, and its features.json says 5; corre"):
        described(tmp_path, f"tfrecord:{target}/[01]")


@pytest.mark.usefixtures("own", "tf")
def test_examples_that_have_changed_are_told_from_those_of_as_many_and_the_same_shapes(tmp_path: Path) -> None:
    counted, again, changed = (
        description(tmp_path, f"own_pairs:{name}") for name in ("of_float32", "uncounted", "other")
    )
    assert counted.features == again.features == changed.features
    assert counted.state == again.state != changed.state
    cut, elsewhere = (description(tmp_path, f"own_pairs:sevens(first={first})") for first in (1, 2))
    assert cut.features == elsewhere.features
    assert cut.state != elsewhere.state


@pytest.mark.usefixtures("own")
def test_a_function_that_gives_its_examples_once_only_leaves_no_file(prepared: Prepared, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^data: 'own_pairs:ends' ended before its time, expected"):
        prepared("own_pairs:ends")
    assert list((tmp_path / "files").iterdir()) == []


def test_source_and_files_are_read_in_turns_over_the_same_examples(prepared: Prepared, tmp_path: Path) -> None:
    _, target = prepared("photographs:5")
    compared = prepare_files(order(tmp_path, "photographs:5", do="compare", target=f"{target}/[01]"))
    assert isinstance(compared, ReadingCompared)
    assert 1 <= compared.source.examples == compared.files.examples <= 5
    for speed in (compared.source, compared.files):
        assert len(speed.examples_per_s) == 5
        assert min(speed.examples_per_s) > 0
