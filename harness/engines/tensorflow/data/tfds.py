"""`tfds:NAME`: a data set that tensorflow-datasets knows or that lies prepared on disk: images or text with classes, or
any input and target of numbers."""

import contextlib
import functools
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.own import fault_of_part, in_pairs
from harness.engines.tensorflow.data.store import (
    TRAIN,
    behind,
    forget,
    import_tfds,
    locked,
    not_prepared,
    opened,
    read,
    read_part,
    state_of_files,
    unusable,
)
from harness.engines.tensorflow.data.text import BYTES, TOKENS
from harness.engines.tensorflow.structures import PARTS, by_place, called, one_or_several
from harness.engines.tensorflow.workloads import Workload, load_workload
from harness.errors import HarnessError, UsageError, nearest
from harness.spec.axes import TFDS, is_own_code
from harness.spec.work import Cell

if TYPE_CHECKING:
    import tensorflow as tf

PREFIX = "tfds:"
NETWORK_TIMEOUT_S = 5.0
KINDS = {"images": "images with classes", "text": "text with classes", "own": "neither images nor text with classes"}
"""What is said of its examples."""
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class TfdsSource(Source):
    """The train split of a tensorflow-datasets data set: `mnist`, `cifar10:3.0.2`, `emnist/letters`.

    What its examples are is known once it is on disk, and was asked for anything.
    """

    gives = "anything"

    def __init__(self, dataset: str) -> None:
        """`dataset` is NAME, NAME/CONFIG or either with :VERSION; UsageError when it cannot be one."""
        if not re.fullmatch(TFDS, PREFIX + dataset):
            raise UsageError(
                f"data: given '{PREFIX}{dataset}', expected {PREFIX}NAME, {PREFIX}NAME/CONFIG or {PREFIX}NAME:1.2.3"
            )
        self.dataset = dataset
        self.name = PREFIX + dataset
        self.summary = f"the train split of '{dataset}' from tensorflow-datasets, downloaded once"
        self.workload: Workload | None = None
        """The model by name that it is for: what that does not take is refused before a download."""

    def are_for(self, cell: Cell) -> None:
        """From now on it refuses what the cell's model, where it is one by name, could not be trained on."""
        model = str(cell.get("model"))
        self.workload = None if is_own_code(model) else load_workload(model)

    def prepare(self, data_dir: Path) -> None:
        """Download and write the shards unless they are there; a prepared data set needs no network."""
        with locked(data_dir, re.sub(r"\W", "_", self.dataset)):
            _folder.cache_clear()  # another process may have prepared it since
            if _folder(data_dir, self.dataset) is None:
                _download(self, data_dir)
                _folder.cache_clear()
                forget()
        self._builder(data_dir)

    def info(self, data_dir: Path) -> DataInfo:
        """As its metadata on disk say."""
        builder = self._builder(data_dir)
        features, count = builder.info.features, builder.info.splits[TRAIN].num_examples
        if names := _classified(builder.info)[1]:
            given, label = names
            shape, vocabulary = ((TOKENS + 1,), BYTES) if self.gives == "text" else (features[given].shape, 0)
            return DataInfo(shape, features[label].num_classes, count, vocabulary)
        inputs = by_place(self.examples(data_dir).element_spec[0])
        return DataInfo(one_or_several({place: tuple(spec.shape) for place, spec in inputs.items()}), 0, count)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(image, label), (text as the bytes of a piece, label), or (input, target) as the user's own are, in file
        order."""
        builder = self._builder(data_dir)
        made = read(Path(builder.data_dir), *_classified(builder.info)[1])
        if self.gives == "text":
            return _in_pieces(made)
        return made if self.gives == "images" else in_pairs(made)

    def part(self, data_dir: Path, first: int, count: int) -> "tf.data.Dataset | None":
        """Of images, of which none before the first is decoded."""
        builder = self._builder(data_dir)
        if self.gives != "images":
            return super().part(data_dir, first, count)
        image, label = _classified(builder.info)[1]
        return read_part(Path(builder.data_dir), image, label, first, count)

    def state(self, data_dir: Path) -> str:
        """As its files' names, sizes and times tell."""
        return state_of_files(sorted(map(str, Path(self._builder(data_dir).data_dir).iterdir())))

    def _builder(self, data_dir: Path) -> Any:
        """The builder of the prepared files; HarnessError when one is missing."""
        folder = _folder(data_dir, self.dataset)
        if folder is None:
            raise not_prepared(self.name, data_dir)
        builder = opened(folder)
        if TRAIN not in builder.info.splits:
            has = ", ".join(builder.info.splits) or "no splits"
            raise HarnessError(f"data: '{self.name}' has {has}, expected a split called '{TRAIN}'")
        for file in builder.info.splits[TRAIN].filepaths:
            if not Path(file).is_file():
                raise HarnessError(f"data: '{self.name}' lacks the file '{file}'; delete '{folder}' and run again")
        self.gives = _kind(self, builder.info)
        return builder


def unknown(name: str, data_dir: Path) -> str | None:
    """Why `tfds:NAME` cannot be had: it lies not under `data_dir`, and tensorflow-datasets does not know it. Of a
    function of the user's own nothing is known before it is loaded.

    Asks no network. Importing tensorflow-datasets and its builders takes a second of processor time, TensorFlow is not
    imported. HarnessError where it cannot be.
    """
    if not name.startswith(PREFIX):
        return None
    dataset = name.removeprefix(PREFIX)
    return None if (data_dir / _base_name(dataset)).is_dir() else _no_such(_base_name(dataset), name)


@functools.cache
def kind_by_code(name: str) -> str:
    """`images` or `text` where those are what `tfds:NAME` has by the code of tensorflow-datasets, else nothing. Asks no
    network; few of its builders import TensorFlow."""
    try:
        return _classified(_from_code(TfdsSource(name.removeprefix(PREFIX)), Path()).info)[0]
    except HarnessError:
        return ""


def _base_name(dataset: str) -> str:
    """NAME of NAME/CONFIG:VERSION."""
    return re.split(r"[/:]", dataset)[0]


def _no_such(base: str, name: str) -> str | None:
    """What is wrong with `name`, whose data set nobody knows; None where tensorflow-datasets has `base`."""
    known = _known()
    if base in known:
        return None
    return f"data: '{name}': tensorflow-datasets {import_tfds().__version__} has no '{base}'{nearest(base, known)}"


@functools.cache
def _known() -> tuple[str, ...]:
    """Names of the data sets that tensorflow-datasets can make."""
    return tuple(import_tfds().list_builders(with_community_datasets=False))


@functools.cache
def _folder(data_dir: Path, dataset: str) -> Path | None:
    """Where `dataset` lies prepared under `data_dir`, or None."""
    plain = _plain_folder(data_dir, dataset)
    if plain is not None:
        return plain
    tfds = import_tfds()
    from tensorflow_datasets.core.read_only_builder import builder_from_files

    try:  # knows the default configuration of a data set that has several
        return Path(builder_from_files(dataset, data_dir=str(data_dir)).data_dir)
    except tfds.core.DatasetNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise HarnessError(f"data: '{PREFIX}{dataset}' under '{data_dir}' cannot be read: {reason}") from error


def _plain_folder(data_dir: Path, dataset: str) -> Path | None:
    """`NAME[/CONFIG]/VERSION` where that settles it: asking tensorflow-datasets costs 0.5 s, in every trial."""
    name, _, version = dataset.partition(":")
    try:
        folders = [path for path in (data_dir / name).iterdir() if _VERSION.fullmatch(path.name)]
    except OSError:
        return None
    prepared = [path for path in folders if (path / "features.json").is_file() and version in ("", path.name)]
    return max(prepared, key=lambda path: [int(part) for part in path.name.split(".")], default=None)


def _classified(info: Any) -> tuple[str, tuple[str, ...]]:
    """Whether this is classification of `images` or `text`, and the names of the input and the label; nothing where it
    is neither."""
    features_of = import_tfds().features
    features = dict(info.features) if isinstance(info.features, features_of.FeaturesDict) else {}
    for kind, usual, of in (("images", "image", features_of.Image), ("text", "text", features_of.Text)):
        names = info.supervised_keys if len(info.supervised_keys or ()) == 2 else (usual, "label")
        if not all(isinstance(name, str) for name in names):
            continue
        given, label = map(features.get, names)
        if not (isinstance(given, of) and isinstance(label, features_of.ClassLabel)):
            continue
        if kind == "images" or given.shape == ():  # no tokens of an encoder's
            return kind, tuple(names)
    return "", ()


def _in_pieces(made: "tf.data.Dataset") -> "tf.data.Dataset":
    """(text, label) with the bytes of the text as tokens, cut to a piece's, or filled up with zeros."""
    import tensorflow as tf

    def in_bytes(text: "tf.Tensor", label: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        piece = tf.io.decode_raw(text, tf.uint8, fixed_length=TOKENS + 1)
        return tf.ensure_shape(piece, [TOKENS + 1]), label

    return made.map(tf.autograph.experimental.do_not_convert(in_bytes))


def _kind(source: TfdsSource, info: Any) -> str:
    """What the examples are: images or text with labels, or an input and a target as of the user's own. UsageError
    where they are none of these, or such of the user's own for a model by name."""
    if kind := _classified(info)[0]:
        return kind
    _must_be_as_own(source, info)
    _must_be_taken(source, "own")
    return "own"


def _must_be_taken(source: TfdsSource, kind: str) -> None:
    """UsageError where examples of this kind are wanted for a model by name that takes others."""
    if (workload := source.workload) is not None and kind not in workload.takes:
        raise UsageError(
            f"data: '{source.name}' gives {KINDS[kind]}, and model '{workload.name}' takes "
            f"{' or '.join(workload.takes)}; train one of your own, --model package.module:function"
        )


def _must_be_as_own(source: TfdsSource, info: Any) -> None:
    """UsageError unless an input and a target are named, and are numbers."""
    import tensorflow as tf

    remedy = "of your own, --data package.module:function"
    if not info.supervised_keys:
        raise UsageError(
            f"data: '{source.name}' is no classification of images or text, and names no input and target; choose them "
            f"in a function {remedy}"
        )
    spec = tf.nest.map_structure(lambda name: info.features[name].get_tensor_spec(), info.supervised_keys)
    for of, has in zip(PARTS, spec, strict=False):
        for place, part in by_place(has).items():
            if fault := fault_of_part(part, of == "inputs"):
                raise UsageError(
                    f"data: '{source.name}' gives {called(of, place)} {fault}; make such of them in a function {remedy}"
                )


def _download(source: TfdsSource, data_dir: Path) -> None:
    """Download and prepare, everything that can be told before the download told before it."""
    import tensorflow as tf

    tfds = import_tfds()
    builder = _from_code(source, data_dir)
    _must_be_taken(source, _kind(source, builder.info))  # later each model says so itself: others may take them
    _check_manual_files(source, builder, data_dir)
    _check_network(source, builder)
    config = tfds.download.DownloadConfig(try_download_gcs=False)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # progress is for people, standard output for results
            builder.download_and_prepare(download_config=config, file_format="tfrecord")
    except (OSError, RuntimeError, ImportError, tf.errors.OpError, tfds.download.DownloadError) as error:
        fault = _fault(source, data_dir, behind(error))
        if fault is None:
            raise
        raise fault from error


def _fault(source: TfdsSource, data_dir: Path, error: Exception) -> HarnessError | None:
    """A failed download in a person's words; None for one that they cannot mend."""
    import tensorflow as tf

    tfds = import_tfds()
    # What requests and urllib3 raise derives from OSError, as does a full disk.
    from_network = type(error).__module__.startswith(("requests.", "urllib3."))
    if from_network or isinstance(error, ConnectionError | TimeoutError | tfds.download.DownloadError):
        return _no_download(source, error)
    if isinstance(error, ImportError):
        return _no_package(source, error)
    return unusable(data_dir, error) if isinstance(error, OSError | tf.errors.OpError) else None


def _from_code(source: TfdsSource, data_dir: Path) -> Any:
    """The builder that tensorflow-datasets itself has for the source."""
    tfds = import_tfds()
    try:
        return tfds.builder(source.dataset, data_dir=str(data_dir), try_gcs=False)
    except tfds.core.DatasetNotFoundError:
        name = _base_name(source.dataset)
        fault = _no_such(name, source.name)
        raise UsageError(
            fault or f"data: '{source.name}': tensorflow-datasets has '{name}', but not that version"
        ) from None
    except ImportError as error:
        raise _no_package(source, error) from error
    except (ValueError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"data: '{source.name}': {reason}") from error


def _check_manual_files(source: TfdsSource, builder: Any, data_dir: Path) -> None:
    """HarnessError when the data set must be downloaded by hand and was not."""
    manual = data_dir / "downloads" / "manual"
    if builder.MANUAL_DOWNLOAD_INSTRUCTIONS and not (manual.is_dir() and any(manual.iterdir())):
        raise HarnessError(
            f"data: '{source.name}' must be downloaded by hand: follow its page on "
            f"https://www.tensorflow.org/datasets/catalog/{builder.name} and put the files into '{manual}'"
        )


def _check_network(source: TfdsSource, builder: Any) -> None:
    """HarnessError within seconds where there is no network; tensorflow-datasets itself retries for minutes."""
    from urllib.request import getproxies  # with ssl, which a list of names needs not

    if getproxies():
        return  # then the proxy looks up names, and this machine may not be able to
    urls = [urlsplit(url) for url in builder.url_infos or {}]
    hosts = sorted({(url.hostname, url.port or (80 if url.scheme == "http" else 443)) for url in urls if url.hostname})
    failure: OSError | None = None
    for host in hosts[:3]:
        try:
            socket.create_connection(host, timeout=NETWORK_TIMEOUT_S).close()
        except OSError as error:
            failure = error
        else:
            return
    if failure is not None:
        raise _no_download(source, failure)


def _no_package(source: TfdsSource, error: ImportError) -> HarnessError:
    reason = str(error).partition("\n")[0]
    return HarnessError(f"data: '{source.name}' needs a package that is not installed: {reason}")


def _no_download(source: TfdsSource, error: Exception) -> HarnessError:
    reason = str(error).partition("\n")[0][:200]
    return HarnessError(
        f"data: '{source.name}' cannot be downloaded ({reason}); prepare it where there is a network and name that "
        "folder as data_dir, or use 'digits'"
    )
