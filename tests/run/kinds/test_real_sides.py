"""With real TensorFlow: each side trains its own revision's model, in its own interpreter."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

from harness.protocol.engine import IMPORT_S
from harness.record import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.kinds.sides import Side, side_records, side_zygotes, sides_of
from harness.run.process.zygote import Zygote
from harness.run.request import request_for
from harness.run.turns.live import Ended, LiveTrial, Slot
from tests.preloaded import handed_in
from tests.run.process.venvs import bare_venv, lend_packages
from tests.run.repositories import Repo

pytestmark = pytest.mark.slow

INPUTS, CLASSES = 64, 10
MODEL = """
import keras
def make_model():
    return keras.Sequential([
        keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense({units}, activation="relu"),
        keras.layers.Dense(10),
    ])
"""
KEYS = {
    "model": ["net:make_model"],
    "optimizer": ["sgd"],
    "data": ["synthetic"],
    "strategy": ["mirrored"],
    "replicas": [2],
    "window": 0.01,
}


def reduced_bytes(units: int) -> int:
    """Bytes of the gradients of a model with so many units, float32."""
    return 4 * (INPUTS * units + units + units * CLASSES + CLASSES)


def trial(side: Side, zygote: Zygote, folder: Path) -> TrialRecord:
    """One trial that proves its step and takes two turns."""
    slot = Slot("run", 0, "g", 0, 1, "none")
    request = request_for(side.cell, side.sweep, folder)
    live = LiveTrial(side.cell, slot, zygote, request, 120.0, Interrupts())
    live.start()
    with contextlib.suppress(Ended):
        live.set_up()
        live.measure_from(0)
        for number in range(2):
            live.take_turn(number)
        live.finish()
    return live.record()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A package of the user's whose model has 16 units at the tag `first` and twice as many on `main`."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    made = Repo.new(tmp_path / "my work")
    made.commit({"net/__init__.py": MODEL.format(units=16)})
    made.git("tag", "first")
    made.commit({"net/__init__.py": MODEL.format(units=32)})
    monkeypatch.chdir(made.root)
    return made


def test_two_revisions_of_a_model_are_trained_as_they_were_committed(repo: Repo, tmp_path: Path) -> None:
    before = repo.state()
    sides = sides_of(KEYS, [], [], revisions=("first", "main"))
    with side_zygotes(sides) as zygotes:
        one, two = (trial(side, zygotes[side.name], tmp_path) for side in sides)
        left = [list(Path(zygote.scratch, "tmp").rglob("*.py")) for zygote in zygotes.values()]
    assert [(record.status, record.reason) for record in (one, two)] == [("ok", None)] * 2
    assert sum(one.executed.pack_bytes) == reduced_bytes(16)
    assert sum(two.executed.pack_bytes) == reduced_bytes(32)
    assert one.cell_id == two.cell_id
    assert not any(path.exists() for paths in left for path in paths)
    assert [path.name for path in tmp_path.iterdir()] == ["my work"]
    assert repo.state() == before


@pytest.mark.usefixtures("repo")
def test_another_interpreter_trains_with_this_harness(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "venv of new")
    lend_packages(python)
    sides = sides_of(KEYS, [], [], pythons=(None, python))
    with handed_in(), side_zygotes(sides) as zygotes:
        records = [trial(side, zygotes[side.name], tmp_path) for side in sides]
        versions = [{**zygotes[side.name].versions, IMPORT_S: ""} for side in sides]
    assert [(record.status, record.reason) for record in records] == [("ok", None)] * 2
    kept = side_records(sides)
    assert kept[1].python == python
    assert versions[0] == versions[1]
    assert versions[0]["python"] == sys.version.split()[0]
    known = f"TensorFlow {versions[0]['tensorflow']}, Keras {versions[0]['keras']} ("
    assert kept[0].label.startswith(known)
