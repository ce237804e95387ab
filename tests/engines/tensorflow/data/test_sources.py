"""The registry of data sources."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines.tensorflow.data import load_source, sources, unknown
from harness.errors import UsageError
from harness.run.request import asked_matrix
from harness.spec.sweep import Sweep


def test_names_are_listed_without_importing_tensorflow_or_numpy() -> None:
    script = (
        "import sys, harness.engines.tensorflow.data as d, harness.engines.tensorflow.data.pipeline; "
        "assert d.sources(); "
        "d.load_source('tfds:mnist'); "
        "heavy = {'tensorflow', 'keras', 'numpy', 'tensorflow_datasets', 'sklearn'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_whether_a_data_set_is_known_is_told_without_tensorflow_and_tensorflow_datasets_is_asked_of_none_of_ours() -> (
    None
):
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from harness.run.request import asked_matrix\n"
        "from harness.spec.sweep import Sweep\n"
        "asked_matrix(Sweep(strategy=['none'], data=['digits', 'synthetic']))\n"
        "assert 'tensorflow_datasets' not in sys.modules\n"
        "asked_matrix(Sweep(strategy=['none'], data=['digits', 'tfds:mnist']))\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
def test_preloading_starts_no_thread_and_no_runtime_and_leaves_out_what_no_trial_uses() -> None:
    script = (
        "import importlib, os, sys\n"
        "from harness.engines.tensorflow.data import PRELOAD\n"
        "from harness.engines.tensorflow.engine import ENGINE, OPTIONAL, as_if_missing\n"
        "tasks = lambda: len(os.listdir('/proc/self/task'))\n"
        "with as_if_missing(OPTIONAL): import tensorflow\n"
        "before = tasks()\n"
        "for name in PRELOAD: importlib.import_module(name)\n"
        "ENGINE.preload()\n"
        "from tensorflow.python.eager import context\n"
        "assert tasks() == before, (before, tasks())\n"
        "assert not context.context()._initialized\n"
        "assert not sys.modules.keys() & set(OPTIONAL)\n"
        "for name in OPTIONAL[:2]: importlib.import_module(name)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"TF_CPP_MIN_LOG_LEVEL": "3"})


def test_only_synthetic_data_stay_on_the_device_and_fit_every_model() -> None:
    assert {name: source.gives for name, source in sources().items()} == {
        "breast_cancer": "table",
        "diabetes": "table",
        "digits": "images",
        "iris": "table",
        "linnerud": "table",
        "photographs": "images",
        "synthetic": "anything",
        "text": "text",
        "tokens": "text",
        "wine": "table",
    }
    assert [name for name, source in sources().items() if source.on_device] == ["synthetic"]


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"data: 'digit' is not one of .*digits, .*tfds:NAME.*'digits'\?"):
        load_source("digit")


def test_more_photographs_than_there_may_be_are_refused_with_the_most(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^data: 'photographs:100000' is not one of .*:NUMBER \(at most 99999\), "):
        asked_matrix(Sweep(strategy=["none"], data=["photographs:100000"]))
    told = "data: given 'photographs:100000', expected photographs:NUMBER (at most 99999)"
    assert unknown("photographs:100000", tmp_path) == told
    assert unknown("photographs:99999", tmp_path) is None
