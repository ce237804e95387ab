"""The examples of docs/extending.md: each is loaded by the registry, and all of them run in one sweep."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.own_engine import Means
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.registry import registered
from tests.synthetic import make_cell

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
EXAMPLES = {
    match["path"]: match["code"]
    for match in re.finditer(r"```python\n# (?P<path>harness/\S+\.py)\n(?P<code>.*?)```", PAGE, re.DOTALL)
}
AGREED = {
    "strategies": "STRATEGY",
    "cross_device": "OP",
    "workloads": "WORKLOAD",
    "data": "SOURCE",
    "devices": "DEVICE",
    "loops": "LOOP",
    "launchers": "LAUNCHER",
}


def test_there_is_one_example_for_each_registry() -> None:
    assert {Path(path).parent.name for path in EXAMPLES} == set(AGREED)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: Path(path).stem)
def test_an_example_registers_itself_without_importing_tensorflow(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = f"examples_of_{Path(path).stem}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / Path(path).name).write_text(EXAMPLES[path], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    top_level = [line for line in EXAMPLES[path].splitlines() if line.startswith(("import ", "from "))]
    assert not {"tensorflow", "keras"} & {line.split()[1].partition(".")[0] for line in top_level}
    found = registered(package, AGREED[Path(path).parent.name])
    name = Path(path).stem
    assert [registered_name.replace("-", "_") for registered_name in found] == [name]


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """A copy of the package with every example in it, the run kind's put there as the page says."""
    shutil.copytree(ROOT / "harness", tmp_path / "harness")
    for path, code in EXAMPLES.items():
        (tmp_path / path).write_text(code, encoding="utf-8")
    [copy] = re.findall(r"`(cp -r benchmarks/\S+ \.)`", PAGE)
    _, _, files, _ = copy.split()
    subprocess.run(["cp", "-r", str(ROOT / files), str(tmp_path)], check=True)
    return tmp_path


def test_beside_the_examples_what_holds_of_all_names_holds(extended: Path) -> None:
    shutil.copytree(ROOT / "tests", extended / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", extended)
    of_names = ("tests/test_registry.py", "tests/run/test_prove.py", "tests/analysis/test_levers.py")
    without = "not tensorflow and not slow and not engine"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", without, *of_names],
        cwd=extended,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(extended)},
        check=False,
    )
    assert done.returncode == 0, done.stdout


ASK = """
import json, sys
from pathlib import Path
from harness.cli import run
from harness.errors import Interrupted
from harness.run.kinds.disk import DiskLines, measure_disk

heard = []

class StopsAfterTwo(DiskLines):
    def say(self, text):
        heard.append(text)
        if len(heard) == 3:
            raise KeyboardInterrupt

try:
    measure_disk(5, Path("results"), ["harness", "disk"], StopsAfterTwo())
except Interrupted as told:
    print(told)
for line in sys.argv[1:]:
    print("$", line, flush=True)
    print("exit", run(line.split()), flush=True)
"""


def test_the_run_kind_is_measured_gone_on_with_and_known_to_every_verb(extended: Path) -> None:
    for room in ("cli", "record", "report/kinds", "run/kinds"):
        assert f"(../benchmarks/own_run_kind/harness/{room}/disk.py)" in PAGE
        assert (extended / "harness" / room / "disk.py").exists()
    lines = [
        "list --json",
        "disk --resume latest --json",
        "list",
        "show latest",
        "report latest",
        "export latest --format csv",
        "export latest --format parquet",
        "sweep --resume latest",
    ]
    done = subprocess.run(
        [sys.executable, "-c", ASK, *lines],
        cwd=extended,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(extended)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    [path] = (extended / "results").iterdir()
    said, *asked = done.stdout.split("$ ")
    way = f"python -m harness disk --resume results/{path.name}"
    assert said == f"interrupted; 2 writes are kept in results/{path.name}; go on with: {way}\n"
    told = {line: answer.partition("\n")[2].rpartition("exit ") for line, answer in zip(lines, asked, strict=True)}
    assert [int(answer[2]) for answer in told.values()] == [0, 0, 0, 0, 0, 0, 2, 2]
    [row] = json.loads(told["list --json"][0])
    assert (row["kind"], row["status"], row["trials"], row["planned"]) == ("disk", "interrupted", 2, 5)
    assert len(json.loads(told["disk --resume latest --json"][0])["seconds"]) == 5
    assert told["list"][0].splitlines()[1:] == [f"{path.name}  finished        5 of 5 writes"]
    assert told["show latest"][0].startswith("A durable write takes ")
    assert 'content="disk"' in (extended / "reports" / f"{path.name}.html").read_text()
    assert "<td>disk</td>" in (extended / "reports" / "index.html").read_text()
    rows = told["export latest --format csv"][0].splitlines()
    assert (rows[0], len(rows)) == ("number,seconds", 6)
    assert f"'{path.name}' is a run of disk; expected one of csv" in done.stderr
    assert f"'{path.name}' is a run of disk; go on with: {way}" in done.stderr
    assert len((path / "records.jsonl").read_text().splitlines()) == 5


def test_the_engine_goes_through_a_sweep_by_the_command_that_is_printed(tmp_path: Path) -> None:
    section = PAGE.partition("## An engine\n")[2].partition("\n## ")[0]
    [command] = re.findall(r"```console\n(python -m harness .*?)```", section, re.DOTALL)
    done = subprocess.run(
        [sys.executable, *command.split()[1:], "--windows", "5", "--window", "0.01", "--max-warmup", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = next((tmp_path / "results").glob("*/trials.jsonl")).read_text(encoding="utf-8").splitlines()
    trials = [json.loads(line) for line in lines]
    assert {trial["status"] for trial in trials} == {"ok"}, [(t["cell"], t["reason"]) for t in trials]
    assert {(t["cell"]["strategy"], t["cell"]["replicas"]) for t in trials} == {("none", 1), ("turns", 1), ("turns", 2)}


def test_the_engine_refuses_an_axis_that_would_be_without_effect() -> None:
    keys = {"device": "thread", "strategy": "none", "replicas": 1, "model": "mean", "data": "normal"}
    cell = make_cell("none", 1).model_copy(update={**keys, "optimizer": "descent", "loop": "plain"})
    request = Request(cell=cell, seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1)
    assert Means().trainer(request).ahead == 0
    other = request.model_copy(update={"cell": cell.model_copy(update={"cache": "none"})})
    with pytest.raises(Unsupported, match=r"^cache: a mean has nothing that it would change; leave the flag out$"):
        Means().trainer(other)


def add_axis(copy: Path) -> None:
    """As the page prints it."""
    [change] = re.findall(r"## An axis\n.*?```diff\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(["git", "apply", "-"], cwd=copy, input=change, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


ONE_OF_EACH = (
    "strategy=mirrored_reversed replicas=1; device=whole-cpu loop=in_graph",
    "cross_device_op=reduction_to_host loop=custom; cross_device_op=auto loop=in_graph strategy=mirrored_reversed",
    "examples=64 device=whole-cpu; examples=64 loop=in_graph; examples=64 strategy=mirrored_reversed",
)
"""What is left out of a sweep that has each example, and not with each of the others."""


@pytest.mark.slow
def test_a_sweep_runs_and_proves_all_examples_and_goes_over_the_added_axis(extended: Path) -> None:
    add_axis(extended)
    flags = {
        "strategy": "none,mirrored_reversed",
        "replicas": "1,2",
        "cross-device-op": "auto,reduction_to_host",
        "device": "virtual-cpu,whole-cpu",
        "model": "linear",
        "data": "stripes",
        "optimizer": "sgd",
        "loop": "custom,in_graph",
        "examples": "0,64",
        "exclude": "; ".join(ONE_OF_EACH),
        "intra-op-threads": "2",
        "batch-size": "8",
        "trials": "1",
        "windows": "5",
        "max-warmup": "0",
        "window": "0.02",
        "data-dir": str(extended / "data"),
        "results": str(extended / "results"),
    }
    command = [sys.executable, "-m", "harness", "sweep"]
    for key, value in flags.items():
        command += [f"--{key}", value]
    done = subprocess.run(command, cwd=extended, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # As plain JSON: this process does not know the new loop's name.
    lines = next((extended / "results").glob("*/trials.jsonl")).read_text(encoding="utf-8").splitlines()
    trials = [json.loads(line) for line in lines]
    assert {trial["status"] for trial in trials} == {"ok"}, [(t["cell"], t["reason"]) for t in trials]
    by_host = [t["executed"] for t in trials if t["cell"]["cross_device_op"] == "reduction_to_host"]
    assert len(by_host) == 1
    assert all("AddN" in executed["operations"] for executed in by_host)
    assert {t["cell"]["device"] for t in trials} == {"virtual-cpu", "whole-cpu"}
    assert {t["cell"]["loop"] for t in trials} == {"custom", "in_graph"}
    strategies = {(t["cell"]["strategy"], t["cell"]["cross_device_op"], t["cell"]["loop"]) for t in trials}
    assert {
        ("mirrored_reversed", "auto", "custom"),
        ("mirrored_reversed", "reduction_to_host", "in_graph"),
    } < strategies
    assert {(t["cell"]["examples"], "Take" in t["executed"]["input"]) for t in trials} == {(0, False), (64, True)}


@pytest.fixture
def with_axis(tmp_path: Path) -> Path:
    """A copy of package and tests with the axis in it that the page adds, as printed."""
    for folder in ("harness", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    add_axis(tmp_path)
    return tmp_path


def test_the_added_axis_passes_the_test_of_the_table(with_axis: Path) -> None:
    tests = ("tests/spec/test_axes.py", "tests/analysis/test_levers.py")
    command = [sys.executable, "-m", "pytest", *tests, "-k", "examples", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(with_axis)}
    done = subprocess.run(command, cwd=with_axis, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
