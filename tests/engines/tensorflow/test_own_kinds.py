"""Models and data of a user's own that say little of their sizes, types or losses are trained and proved as others."""

from pathlib import Path
from typing import Any

import pytest

from harness.run.process.zygote import Zygote
from tests.cli.owned import THREADS
from tests.cli.real import SMALL, only_run, run
from tests.engines.sweeps import must_have_passed_the_whole_gate, must_know_its_sight
from tests.run.process.clusters import measured

pytestmark = pytest.mark.slow
OWN, TRAINED = "tests.engines.tensorflow.own_kinds", "tests.engines.tensorflow.own_trained"
ALONE = {"strategy": "none", "replicas": 1, "batch_size": 12, "global_batch_size": 12}
MIRRORED = {"strategy": "mirrored", "replicas": 2, "batch_size": 12, "global_batch_size": 24}
WORKERS = {**MIRRORED, "strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1}
ASKED = [flag for flag in SMALL if not flag.startswith(("--model", "--data"))]
FIT = {**MIRRORED, "loop": "fit"}


@pytest.mark.parametrize(
    ("model", "data", "keys"),
    [
        (f"{OWN}:model_of_any_length", f"{OWN}:tokens", MIRRORED),
        (f"{OWN}:model_of_any_length", "text", ALONE),
        (f"{OWN}:model_of_a_product", f"{OWN}:numbers", MIRRORED),
        (f"{OWN}:model_of_a_product", f"{OWN}:numbers", FIT),
        (f"{OWN}:model_of_labels", f"{OWN}:several_labels", FIT),
        (f"{OWN}:model_of_prices", f"{OWN}:prices", MIRRORED),
        (f"{OWN}:model_of_two", f"{OWN}:balanced", WORKERS),
        (f"{TRAINED}:guide", f"{TRAINED}:rows", FIT),
        (f"{TRAINED}:of_two_targets", f"{TRAINED}:rows_of_two_targets", MIRRORED),
    ],
)
def test_what_the_data_or_the_models_own_step_say_is_not_asked_of_the_model(
    shared_zygote: Zygote, model: str, data: str, keys: dict[str, Any]
) -> None:
    record = measured(shared_zygote, windows=3, model=model, data=data, optimizer="sgd", **keys)
    must_have_passed_the_whole_gate(record)
    must_know_its_sight(record)


@pytest.mark.parametrize(
    ("model", "replicas"),
    [(f"{OWN}:model_of_any_size", {1}), (f"{OWN}:model_of_pixels", {1}), (f"{TRAINED}:variational", {1, 2})],
)
def test_images_are_brought_to_whatever_such_a_model_takes(model: str, replicas: set[int], tmp_path: Path) -> None:
    strategies = "none,mirrored" if 2 in replicas else "none"
    asked = [f"--strategy={strategies}", f"--replicas={max(replicas)}", f"--model={model}", "--data=digits", THREADS]
    done = run("sweep", *ASKED, *asked, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    trials = only_run(tmp_path / "results").trials
    assert {trial.cell.get("replicas") for trial in trials} == replicas
    for trial in trials:
        must_have_passed_the_whole_gate(trial)


@pytest.mark.parametrize(
    ("model", "data", "says"),
    [
        (
            "model_of_any_length",
            "synthetic",
            "inputs of shape (None, None), and the data are of shape (None,), expected",
        ),
        (
            "model_of_any_length",
            f"{OWN}:ragged",
            "(None, None), and the data are of shape (None,), expected sizes that",
        ),
        (
            "model_of_small_pixels",
            "digits",
            "model: takes images of int8, expected a type that has 0 to 255, or floats",
        ),
    ],
)
def test_what_neither_says_is_bad_usage_in_one_line(model: str, data: str, says: str, tmp_path: Path) -> None:
    done = run("sweep", *ASKED, "--strategy=none", f"--model={OWN}:{model}", f"--data={data}", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr
