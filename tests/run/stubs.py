"""Stands in for TensorFlow and Keras, so that real zygotes start at once; and a model that says where it came from."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.messages import Request
from harness.run.process.preflight import preflight
from harness.run.process.zygote import Zygote
from tests.record.examples import cell

KERAS = """
__version__ = "0.2"
class Model:
    name, input_shape, output_shape, trainable_variables = "model", (None, 1), (None, 1), ("weight",)
class KerasTensor:
    def __init__(self, shape): self.shape, self.dtype = shape, "float32"
class tree:  # of what is one tensor
    def flatten_with_path(structure): return [((), structure)]
    def map_shape_structure(make, shape): return make(shape)
"""
STUBS = {
    "tensorflow.py": "__version__ = '0.1'\n",
    "keras.py": KERAS,
    "tensorflow_datasets/__init__.py": "",
    "tensorflow_datasets/core/__init__.py": "",
    "tensorflow_datasets/core/reader.py": "",
}
WITNESS = """
import json, keras, os, pathlib, sys, tempfile
def make_model():
    import harness
    told = {
        "file": __file__, "folder": os.getcwd(), "path": sys.path, "temporary": tempfile.gettempdir(),
        "harness": harness.__file__, "prefix": sys.prefix, "environment": dict(os.environ),
        "size": getattr(sys.modules.get(__name__), "SIZE", None),
    }
    pathlib.Path(os.environ["WITNESS"]).write_text(json.dumps(told))
    return keras.Model()
"""
"""A module with a `make_model` that writes down where it is."""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stubs first on the path of every process that is started from now on; their folder."""
    place = folder / "stubs"
    for name, text in STUBS.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(place))
    monkeypatch.setenv("WITNESS", str(folder / "witness.json"))
    return place


def told_by(zygote: Zygote, model: str = "witness:make_model") -> dict[str, Any]:
    """What the user's own model says when it is built in a process of `zygote`; raises what `preflight` does."""
    request = Request(cell=cell(model=model), seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=4)
    witness = Path(os.environ["WITNESS"])
    witness.unlink(missing_ok=True)
    preflight(zygote, [request], limit_s=60)
    told: dict[str, Any] = json.loads(witness.read_text())
    return told
