"""Sweeps over what `prepare` has written, and over files that they have written first, by real TensorFlow."""

import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from harness.record import Run
from tests.cli.prepared import features, with_numbers
from tests.cli.real import SMALL, only_run, run

pytestmark = pytest.mark.slow

MODULE = """
    import numpy as np
    import tensorflow as tf

    def of_float64():
        return tf.data.Dataset.from_tensor_slices((np.linspace(-1, 1, 192).reshape(64, 3), np.arange(64) % 2))

    def model():
        import keras
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])

    def several():
        x, y = np.linspace(-1, 1, 192, dtype=np.float32).reshape(64, 3), np.arange(64)
        inputs = {"user": y % 5, "features": x, "tags": tf.ragged.range(y % 4)}
        return tf.data.Dataset.from_tensor_slices((inputs, {"rating": x[:, 0], "liked": y % 2}, x[:, 1] + 2))

    def of_several():
        import keras
        user, features = keras.Input((), dtype="int32", name="user"), keras.Input((3,), name="features")
        tags = keras.Input((3,), dtype="int32", name="tags")
        of_tags = keras.layers.Flatten()(keras.layers.Embedding(4, 2)(tags))
        hidden = keras.layers.Concatenate()([keras.layers.Embedding(5, 4)(user), features, of_tags])
        outputs = {"rating": keras.layers.Dense(1)(hidden), "liked": keras.layers.Dense(1)(hidden)}
        model = keras.Model({"user": user, "features": features, "tags": tags}, outputs)
        liked = keras.losses.BinaryCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.05), loss={"rating": "mse", "liked": liked})
        return model
"""
SPREAD = ("--strategy=none,mirrored,multi_worker_mirrored", "--replicas=1,2", "--workers=1,2")
LEFT_OUT = "strategy=mirrored,multi_worker_mirrored replicas=1; strategy=multi_worker_mirrored workers=1"
"""So that it is alone, on two replicas, and on two workers with two each."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the module `own_numbers`."""
    return with_numbers(tmp_path_factory.mktemp("prepared"), MODULE)


@pytest.fixture(scope="module")
def temporary(folder: Path) -> Path:
    """The temporary folder of the processes that the next two start."""
    made = folder / "temporary"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def photographs(folder: Path, temporary: Path) -> Path:
    """Prepared crops, compressed, in four files."""
    asked = ["photographs:64", "crops", "--shards=4", "--compression=gzip", "--data-dir=data"]
    with mock.patch.dict(os.environ, TMPDIR=str(temporary)):
        done = run("prepare", *asked, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "crops"


@pytest.fixture(scope="module")
def swept(folder: Path, photographs: Path, temporary: Path) -> Run:
    """A sweep over prepared files, alone, on two replicas and on two workers, without a cache, four side by side."""
    small = [flag for flag in SMALL if not flag.startswith("--data")]
    asked = [*SPREAD, f"--exclude={LEFT_OUT}", f"--data=tfrecord:{photographs.name}", "--cache=none"]
    asked += ["--interleave=4", "--intra-op-threads=2"]
    with mock.patch.dict(os.environ, TMPDIR=str(temporary)):
        done = run("sweep", *small, *asked, folder=folder)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


def test_training_on_prepared_files_passes_the_gate_alone_on_replicas_and_on_workers(swept: Run) -> None:
    cells = {tuple(trial.cell.get(key) for key in ("strategy", "replicas", "workers")) for trial in swept.trials}
    assert cells == {("none", 1, 1), ("mirrored", 2, 1), ("multi_worker_mirrored", 2, 2)}
    for trial in swept.trials:
        assert (trial.status, trial.reason) == ("ok", None)
        assert trial.checks.complete
        assert trial.executed.input[:3] == ["TensorSlice", "ParallelInterleave(4, 4 files, gzip)", "Map"]


@pytest.mark.usefixtures("swept")
def test_processes_that_end_at_once_leave_nothing_in_the_temporary_folder(temporary: Path) -> None:
    assert not list(temporary.iterdir()), "AutoGraph has written down a function of the harness's own"


OWN = {"of_float64": "model", "several": "of_several"}
"""Data of one's own, each with its model."""


@pytest.fixture(scope="module")
def own(folder: Path) -> dict[str, dict[str, Any]]:
    """The features.json of each, prepared."""
    for data in OWN:
        done = run("prepare", f"own_numbers:{data}", data, "--processes=1", folder=folder)
        assert done.returncode == 0, done.stderr
    return {data: features(folder / data) for data in OWN}


def test_examples_of_ones_own_are_described_by_their_types_and_places(own: dict[str, dict[str, Any]]) -> None:
    assert own["of_float64"]["input"]["encoding"] == "raw"
    several = own["several"]
    assert (several["target"]["liked"]["feature"], several["weights"]["feature"]) == ("target/liked", "weights")
    assert several["input"]["tags"]["shape"] == [None]


@pytest.mark.parametrize("work", ["training", "pipeline"])
@pytest.mark.usefixtures("own")
def test_examples_of_ones_own_are_trained_on_from_files_as_they_were(folder: Path, work: str) -> None:
    small = [flag for flag in SMALL if not flag.startswith(("--data", "--model", "--optimizer"))]
    models = ",".join(f"own_numbers:{model}" for model in OWN.values())
    data = ",".join(f"tfrecord:{target}" for target in OWN)
    others = "; ".join(
        f"data=tfrecord:{target} model=own_numbers:{other}"
        for target, model in OWN.items()
        for other in OWN.values()
        if other != model
    )
    asked = [f"--model={models}", f"--data={data}", f"--exclude={others}", f"--work={work}", f"--results={work}"]
    replicas = ["--strategy=none,mirrored", "--replicas=2"] if work == "training" else []
    done = run("sweep", *small, *asked, *replicas, folder=folder)
    assert done.returncode == 0, done.stderr
    proved = [trial for trial in only_run(folder / work).trials if trial.cell.tag == work]
    assert {(trial.cell.get("data"), trial.cell.get("replicas")) for trial in proved} == {
        (f"tfrecord:{target}", count) for target in OWN for count in ((1, 2) if replicas else (None,))
    }
    assert {(trial.status, trial.reason) for trial in proved} == {("ok", None)}


def test_a_sweep_over_shards_writes_what_prepare_writes_once_and_passes_every_gate(
    folder: Path, photographs: Path
) -> None:
    small = [flag for flag in SMALL if not flag.startswith("--data")]
    asked = ["--data=photographs:64", "--data-dir=data", "--cache=none", "--shards=0,4,65", "--compression=none,gzip"]
    several = "strategy=mirrored,multi_worker_mirrored shards=0,65"  # one replica has each of the files
    apart = "strategy=mirrored compression=none; strategy=multi_worker_mirrored compression=gzip"
    spread = [*SPREAD, f"--exclude={LEFT_OUT}; {several}; {apart}", "--results=written"]
    done = run("sweep", *small, *asked, *spread, "--intra-op-threads=2", folder=folder)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "'photographs:64' written into " in line]
    assert sorted("gzip" in line for line in told) == [False, True]
    [written] = (folder / "data" / "shards").glob("*/4-gzip-*")
    assert features(written)["digest"] == features(photographs)["digest"]
    inputs: dict[Any, set[str]] = {}
    refused = 0
    for trial in only_run(folder / "written").trials:
        files = trial.cell.data_files
        if files is not None and files.shards == 65:
            refused += 1
            assert trial.status == "unsupported"
            assert (trial.reason or "").endswith("shards: given 65, expected at most 64, one for each example")
            continue
        assert (trial.status, trial.reason, trial.checks.complete) == ("ok", None, True)
        where = tuple(trial.cell.get(key) for key in ("strategy", "replicas", "workers"))
        inputs.setdefault(where, set()).add(trial.executed.input[1])
    assert refused == 2
    assert inputs == {
        ("none", 1, 1): {"TFRecord(1 file)", "TFRecord(4 files)", "TFRecord(4 files, gzip)"},
        ("mirrored", 2, 1): {"TFRecord(4 files, gzip)"},
        ("multi_worker_mirrored", 2, 2): {"TFRecord(4 files)"},
    }


def test_a_file_of_others_that_is_cut_short_is_a_record_with_its_name(folder: Path, photographs: Path) -> None:
    others = folder / "others"
    shutil.copytree(photographs, others)
    described = features(others)
    for key in ("shards", "digest", "preparation"):
        del described[key]
    (others / "features.json").write_text(json.dumps(described))
    last = max(others.glob("*.tfrecord*"))
    last.write_bytes(last.read_bytes()[:-200])
    small = [flag for flag in SMALL if not flag.startswith("--data")]
    asked = ["--strategy=none,mirrored", "--replicas=2", "--cache=none", "--data=tfrecord:others", "--results=cut"]
    done = run("sweep", *small, *asked, folder=folder)
    assert done.returncode == 1, done.stderr
    trials = only_run(folder / "cut").trials
    assert {trial.cell.get("strategy") for trial in trials} == {"none", "mirrored"}
    for trial in trials:
        assert trial.status == "crashed"
        assert trial.reason is not None
        assert trial.reason.startswith(f"data: 'tfrecord:others': 'others/{last.name}' is cut short or damaged: ")
