"""`tfds:NAME`, without a network."""

import io
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from harness.engines.tensorflow.data import DataInfo, load_source, tfds
from harness.engines.tensorflow.data.pipeline import gate_batches, pipeline
from harness.engines.tensorflow.data.store import import_tfds
from harness.engines.tensorflow.data_for_model import tokens_fault, workload_for
from harness.engines.tensorflow.preparing import describe
from harness.engines.tensorflow.sharded import make_ready, source_of
from harness.engines.tensorflow.tasks import TASKS
from harness.errors import HarnessError, Unsupported, UsageError
from harness.protocol.channel import Channel
from harness.protocol.messages import Request
from tests.record.examples import cell


class NoNetworkError(AssertionError):
    """The network was asked for."""


@pytest.fixture(autouse=True)
def no_network(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - sets TensorFlow up
    """Any use of the network fails the test, and nothing is remembered between tests."""

    def refuse(*_: Any, **__: Any) -> None:
        raise NoNetworkError

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    tfds._folder.cache_clear()


def test_a_prepared_data_set_is_read_without_a_network(digits_dir: Path) -> None:
    source = load_source("tfds:sklearn_digits")
    source.prepare(digits_dir)
    assert source.info(digits_dir) == DataInfo((8, 8, 1), 10, 1797)
    x, y = next(iter(pipeline(source, digits_dir, (28, 28, 1), 10, 4, seed=1)))
    assert (x.shape, y.shape) == ((4, 28, 28, 1), (4,))


def test_a_version_may_be_named_and_must_then_be_there(digits_dir: Path) -> None:
    assert load_source("tfds:sklearn_digits:2.0.0").info(digits_dir).examples == 1797
    with pytest.raises(HarnessError, match=r"^data: 'tfds:sklearn_digits:3\.0\.0' is not prepared under"):
        load_source("tfds:sklearn_digits:3.0.0").info(digits_dir)


def test_of_several_versions_the_highest_is_read(digits_dir: Path, tmp_path: Path) -> None:
    for version in ("2.0.0", "9.0.0", "10.0.0"):
        shutil.copytree(digits_dir / "sklearn_digits" / "2.0.0", tmp_path / "sklearn_digits" / version)
    assert tfds._folder(tmp_path, "sklearn_digits") == tmp_path / "sklearn_digits" / "10.0.0"


def test_a_file_that_is_missing_is_named(digits_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(digits_dir / "sklearn_digits", tmp_path / "sklearn_digits")
    shard = next(tmp_path.glob("sklearn_digits/2.0.0/*.tfrecord-00001-*"))
    shard.unlink()
    with pytest.raises(HarnessError, match=f"lacks the file '{shard}'; delete .* and run again$"):
        load_source("tfds:sklearn_digits").prepare(tmp_path)


@pytest.mark.parametrize("name", ["", "a,b", "mnist:latest", "../etc", "gs://bucket", "a/b/c", "kaggle:x"])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"^data: given 'tfds:.*', expected tfds:NAME"):
        load_source(f"tfds:{name}")


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^data: 'tfds:mnsit': .* has no 'mnsit'; did you mean 'mnist'\?$"):
        load_source("tfds:mnsit").prepare(tmp_path)


@pytest.mark.parametrize("name", ["mnist:9.9.9", "cifar10/nothing"])
def test_an_unknown_version_or_configuration_is_bad_usage_in_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"^data: 'tfds:{name}': .*(9.9.9|nothing)") as caught:
        load_source(f"tfds:{name}").prepare(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "sentiment140",
            r"gives inputs of string, expected numbers \(words as integer tokens\); make such of them in a",
        ),
        (
            "wikipedia/20230601.en",
            r"is no classification of images or text, and names no input and target; choose them in a",
        ),
    ],
)
def test_what_no_model_takes_is_refused_with_what_to_do_before_anything_is_downloaded(
    tmp_path: Path, name: str, says: str
) -> None:
    with pytest.raises(
        UsageError, match=f"^data: 'tfds:{name}' {says} function of your own, --data package.module:function$"
    ):
        load_source(f"tfds:{name}").prepare(tmp_path)


@pytest.mark.parametrize(
    ("data", "gives", "refused", "taken"),
    [
        ("speech_commands", "neither images nor text with classes", ("mlp", "images or table"), "my:make"),
        ("imdb_reviews", "text with classes", ("mlp", "images or table"), "lstm"),
        ("mnist", "images with classes", ("lstm", "text"), "mlp"),
    ],
)
def test_a_model_by_name_is_refused_what_it_does_not_take_before_anything_is_downloaded(
    tmp_path: Path, data: str, gives: str, refused: tuple[str, str], taken: str
) -> None:
    model, takes = refused
    with pytest.raises(UsageError) as told:
        make_ready(cell(model=model, data=f"tfds:{data}"), tmp_path)
    assert str(told.value) == (
        f"data: 'tfds:{data}' gives {gives}, and model '{model}' takes {takes}; train one of your own, "
        "--model package.module:function"
    )
    with pytest.raises(NoNetworkError):
        make_ready(cell(model=taken, data=f"tfds:{data}"), tmp_path)


def test_a_model_is_left_out_where_a_set_is_known_to_have_other_examples_than_it_takes() -> None:
    assert tokens_fault("lstm", "tfds:mnist") == "it takes text, no images"
    assert tokens_fault("lenet", "tfds:imdb_reviews") == "it takes images, no text"
    assert tokens_fault("lstm", "tfds:imdb_reviews") is tokens_fault("lstm", "tfds:of_ones_own") is None
    assert tokens_fault("recommender", "tfds:imdb_reviews") == "it takes categories, no text"


def prepared(folder: Path, features: dict[str, Any], keys: Any, examples: list[dict[str, Any]]) -> None:
    """A data set called `made` of these features and supervised keys in `folder`."""
    package = import_tfds()

    class Builder(package.core.GeneratorBasedBuilder, skip_registration=True):  # type: ignore[name-defined,call-arg,misc]
        name = "made"
        VERSION = package.core.Version("1.0.0")

        def _info(self) -> Any:
            described = package.features.FeaturesDict(features)
            return self.dataset_info_from_configs(features=described, supervised_keys=keys, disable_shuffling=True)

        def _split_generators(self, _: Any) -> Any:
            return {"train": enumerate(examples)}

        def _generate_examples(self) -> Any:
            raise NotImplementedError

    Builder(data_dir=str(folder)).download_and_prepare(file_format="tfrecord")


def test_an_input_and_a_target_of_numbers_are_as_those_of_the_users_own(tmp_path: Path) -> None:
    of = import_tfds().features
    features = {"row": of.Tensor(shape=(3,), dtype=np.float32), "label": of.ClassLabel(num_classes=2)}
    prepared(tmp_path, features, ("row", "label"), [{"row": [k, k, k], "label": k % 2} for k in range(8)])
    source = load_source("tfds:made")
    assert source.gives == "anything"
    source.prepare(tmp_path)
    assert (source.gives, source.info(tmp_path)) == ("own", DataInfo((3,), 0, 8))
    [(x, y)] = gate_batches(source, tmp_path, (3,), 0, 8, 1)
    np.testing.assert_array_equal(x[:, 2], np.arange(8))
    np.testing.assert_array_equal(y, np.arange(8) % 2)
    with pytest.raises(UsageError, match=r"^data: 'tfds:made' gives other examples than model 'mlp' takes, expected a"):
        workload_for("mlp", load_source("tfds:made"), tmp_path)
    with pytest.raises(UsageError, match=r"^data: 'tfds:made' gives neither images nor text with classes, and model '"):
        make_ready(cell(model="mlp", data="tfds:made"), tmp_path)


LONG = bytes(range(1, 256)) * 5


def test_text_with_classes_is_its_bytes_in_pieces_as_the_text_of_our_own(tmp_path: Path) -> None:
    of, texts = import_tfds().features, [b"", "böse".encode(), b"good " * 300, LONG[:1025], LONG[:1026], b"x"]
    features = {"label": of.ClassLabel(names=["neg", "pos"]), "text": of.Text(), "more": of.Scalar(np.int64)}
    prepared(
        tmp_path,
        features,
        ("text", "label"),
        [{"text": text, "label": k % 2, "more": k} for k, text in enumerate(texts)],
    )
    trained = cell(model="lstm(tokens=8)", data="tfds:made")
    make_ready(trained, tmp_path)
    source = source_of(trained, tmp_path)
    workload, info = workload_for("lstm(tokens=8)", source, tmp_path)
    assert (source.gives, info) == ("text", DataInfo((1025,), 2, 6, 256))
    pieces = list(source.examples(tmp_path).as_numpy_iterator())
    assert [(len(piece), piece.dtype) for piece, _ in pieces] == [(1025, np.uint8)] * 6
    assert [piece.tobytes().rstrip(b"\0") for piece, _ in pieces] == [text[:1025] for text in texts]
    [(x, y)] = gate_batches(source, tmp_path, (8,), 2, 6, 1, workload.vocabulary)
    assert (x.shape, x.dtype, y.tolist()) == ((6, 8), np.int32, [0, 1, 0, 1, 0, 1])
    assert bytes(x[1].tolist()) == "böse".encode() + b"\0" * 3
    written = describe(source, tmp_path).features
    assert (written.kind, written.only_input.encoding, written.classes, written.vocabulary) == ("text", "raw", 2, 256)
    with pytest.raises(
        UsageError, match=r"^data: 'tfds:made' gives text with classes, and model 'mlp' takes images or"
    ):
        workload_for("mlp", load_source("tfds:made"), tmp_path)


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ({"parallel_calls": 2}, "parallel_calls"),
        ({"deterministic": False}, "deterministic"),
        ({"deterministic": False, "interleave": 2, "shards": 2}, None),
        ({"deterministic": False, "data_service": 2, "cache": "none"}, None),
        ({"deterministic": False, "parallel_calls": 1, "shards": 2}, "parallel_calls"),
        ({"shuffle_buffer": 2}, None),
    ],
)
def test_what_nobody_decodes_is_not_asked_how_it_is_decoded(
    tmp_path: Path, asked: dict[str, Any], key: str | None
) -> None:
    of = import_tfds().features
    features = {"row": of.Tensor(shape=(3,), dtype=np.float32), "label": of.ClassLabel(num_classes=2)}
    prepared(tmp_path, features, ("row", "label"), [{"row": [k, k, k], "label": k % 2} for k in range(8)])
    trained = cell(model="my:make", data="tfds:made", **asked)
    make_ready(trained, tmp_path)
    if key is None:
        assert source_of(trained, tmp_path).info(tmp_path).examples == 8
        return
    with pytest.raises(Unsupported) as refused:
        source_of(trained, tmp_path)
    told = "gives examples as the model takes them, and none is decoded"
    assert str(refused.value) == f"{key}: 'tfds:made' {told}: leave {key} out"


def test_several_inputs_keep_their_names_and_weights_are_weights(tmp_path: Path) -> None:
    of = import_tfds().features
    some = of.Tensor(shape=(None,), dtype=np.float32)
    features = {"user": of.Scalar(np.int64), "some": some, "weight": of.Scalar(np.float32)}
    examples = [{"user": k, "some": [1.0] * (k % 3), "weight": k / 2} for k in range(8)]
    prepared(tmp_path, features, ({"user": "user", "some": "some"}, "user", "weight"), examples)
    source = load_source("tfds:made")
    assert source.info(tmp_path) == DataInfo({"some": (None,), "user": ()}, 0, 8)
    [(x, y)] = gate_batches(source, tmp_path, {"some": (4,), "user": ()}, 0, 8, 1)
    np.testing.assert_array_equal(x["some"].sum(axis=1), np.arange(8) % 3)
    np.testing.assert_array_equal(y.targets, np.arange(8))
    np.testing.assert_array_equal(y.weights, np.arange(8) / 2)


def test_without_a_network_the_remedy_is_given_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    with pytest.raises(HarnessError, match=r"'tfds:mnist' cannot be downloaded \(.*unreachable\); prepare it where"):
        load_source("tfds:mnist").prepare(tmp_path)


def fails_with(error: Exception) -> Any:
    class Builder:
        def download_and_prepare(self, **_: Any) -> None:
            raise error

        info = None

    return Builder()


def raised_again(cause: Exception) -> RuntimeError:
    """As tensorflow-datasets raises some exceptions."""
    error = RuntimeError("Failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (requests.ConnectionError("reset by peer"), r"'tfds:mnist' cannot be downloaded \(reset by peer\); prepare it"),
        (raised_again(requests.Timeout("too slow")), r"'tfds:mnist' cannot be downloaded \(too slow\); prepare it"),
        (
            raised_again(OSError(28, "No space left on device")),
            r"^data_dir: cannot write to '.*': No space left on dev",
        ),
        (ImportError("No module named 'cv2'"), r"'tfds:mnist' needs a package that is not installed: .*'cv2'$"),
    ],
)
def test_a_download_that_fails_half_way_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    monkeypatch.setattr(tfds, "_from_code", lambda *_: fails_with(error))
    for check in ("_kind", "_check_manual_files", "_check_network"):
        monkeypatch.setattr(tfds, check, lambda *_: None)
    monkeypatch.setattr(tfds, "_folder", lambda *_: None)
    monkeypatch.setattr(tfds._folder, "cache_clear", lambda: None, raising=False)
    with pytest.raises(HarnessError, match=message) as caught:
        load_source("tfds:mnist").prepare(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_must_be_downloaded_by_hand_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"by hand: .*catalog/imagenet2012 and put the files into '.*manual'"):
        load_source("tfds:imagenet2012").prepare(tmp_path)


def test_info_before_prepare_says_so(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"^data: 'tfds:mnist' is not prepared under"):
        load_source("tfds:mnist").info(tmp_path)


PAIR = """
import keras

def of_a_pair():
    inputs = [keras.Input((3,), name=name) for name in ("one", "other")]
    return keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()(inputs)))
"""


def test_what_a_set_gives_a_model_of_ones_own_is_known_before_the_run_where_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = import_tfds().features
    (tmp_path / "of_pairs.py").write_text(PAIR)
    monkeypatch.syspath_prepend(tmp_path)
    trained = cell(model="of_pairs:of_a_pair", data="tfds:made")
    threads = {"intra_op_threads": 1, "inter_op_threads": 1}
    request = Request(cell=trained, seed=1, data_dir=str(tmp_path), window_s=0.1, **threads)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert TASKS["preflight"](request, Channel(theirs)).status == "ok"
        features = {"row": of.Tensor(shape=(3,), dtype=np.float32), "label": of.ClassLabel(num_classes=2)}
        prepared(tmp_path, features, ("row", "label"), [{"row": [k, k, k], "label": k % 2} for k in range(8)])
        tfds._folder.cache_clear()
        told = TASKS["preflight"](request, Channel(theirs))
    assert told.status == "crashed"
    assert told.reason is not None
    assert told.reason.startswith("data: 'tfds:made' gives inputs of the shape (3,) and the model takes {")


@pytest.mark.parametrize("keys", [("image", "label"), None])
def test_a_part_of_the_images_is_read_without_decoding_those_before_it(tmp_path: Path, keys: Any) -> None:
    of, draws = import_tfds().features, np.random.default_rng(1)
    features = {
        "image": of.Image(shape=(None, None, 3)),
        "label": of.ClassLabel(num_classes=3),
        "more": of.Scalar(np.int64),
    }
    images: list[Any] = [draws.integers(0, 256, (4 + k, 5, 3), np.uint8) for k in range(8)]
    prepared(
        tmp_path / "whole", features, keys, [{"image": x, "label": k % 3, "more": k} for k, x in enumerate(images)]
    )
    images[0] = io.BytesIO(b"no image")
    prepared(
        tmp_path / "begun", features, keys, [{"image": x, "label": k % 3, "more": k} for k, x in enumerate(images)]
    )
    source = load_source("tfds:made")
    whole = source.examples(tmp_path / "whole")
    examples = list(whole.as_numpy_iterator())
    for place, first, count in [("whole", 0, 8), ("whole", 6, 9), ("begun", 1, 4)]:
        part = source.part(tmp_path / place, first, count)
        assert part.element_spec == whole.element_spec
        read = list(part.as_numpy_iterator())
        assert len(read) == min(count, 8 - first)
        for (x, y), (there, label) in zip(read, examples[first:], strict=False):
            np.testing.assert_array_equal(x, there)
            assert y == label
