"""What the page says of preparing data and of TFRecord files: its commands are run in their order, its JSON is read."""

import re
import shlex
from pathlib import Path

import pytest

from harness.record.tfrecords import Features
from tests.cli.real import only_run, run
from tests.docs.printed import ROOT, commands, short

PAGE = ROOT / "docs" / "how-to.md"
PREPARE = [command for command in commands(PAGE) if command.startswith("python -m harness prepare ")]
READ = [command for command in commands(PAGE) if "tfrecord:" in command]
DESCRIBED = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
OWN = """
import numpy as np
import tensorflow as tf

def examples():
    return tf.data.Dataset.from_tensor_slices((np.eye(20, dtype=np.float32), np.arange(20)))
"""


LEFT_OUT = ("--exclude=strategy=mirrored replicas=1", "--exclude=interleave=2")
"""Of the commands that read, as good as what stays: one replica is as none, and two files side by side are as four."""


@pytest.mark.slow
def test_the_commands_prepare_and_read_what_they_have_prepared(tf: object, tmp_path: Path) -> None:
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "data.py").write_text(OWN)
    image = tf.io.encode_jpeg(tf.zeros((16, 16, 3), tf.uint8)).numpy()  # type: ignore[attr-defined]
    for number in range(64):
        (tmp_path / "my_images" / f"class_{number % 2}").mkdir(parents=True, exist_ok=True)
        (tmp_path / "my_images" / f"class_{number % 2}" / f"{number}.jpg").write_bytes(image)
    assert len(PREPARE) == 3
    for command in PREPARE:
        done = run(*shlex.split(command)[3:], folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^\d+\.\d s, \d+\.\d s of processor time", done.stdout, re.MULTILINE)
        assert "reading: source " in done.stdout
    for number, (command, left_out) in enumerate(zip(READ, LEFT_OUT, strict=True)):
        done = run(*short(command), left_out, f"--results={number}", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        for trial in only_run(tmp_path / str(number)).trials:
            assert (trial.status, trial.reason) == ("ok", None)
            assert any("TFRecord" in stage or "Interleave" in stage for stage in trial.executed.input)


def test_the_descriptions_are_of_the_kinds_that_the_page_says() -> None:
    kinds = [Features.model_validate_json(text) for text in DESCRIBED]
    assert [features.kind for features in kinds] == ["images", "text", "table", "own"]
    assert [features.input.dtype for features in kinds] == ["uint8", "int64", "float32", "int64"]
