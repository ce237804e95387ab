"""The gate for real: a git repository with a training step of a user's own, in two commits."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preloaded import handed_in
from tests.pytest_plugin.conftest import LOADED
from tests.run.repositories import Repo
from tests.undisturbed import undisturbed

pytest_plugins = ["pytester"]
STEP = """
import tensorflow as tf


def make_step():
    weight = tf.Variable(tf.ones((128, 128)) / 128)

    @tf.function
    def step():
        out = tf.ones((128, 128))
        for _ in range({times}):
            out = tf.matmul(out, weight)
        weight.assign(0.999 * weight)
        return tf.reduce_mean(out)

    return step
"""
TEST = """
import pytest

@pytest.mark.training_gate(step="tiny.step:make_step", examples=256, windows=5, max_warmup=0, window=0.05)
def test_the_step_is_no_slower(training_gate):
    assert training_gate.ratio is not None
"""
BLOCKS = 3
"""Of two, one of which was disturbed, t is 12.7; of three sixteen times as much work stayed undecided once."""
Gated = subprocess.CompletedProcess[str]
SETTINGS = ("--gate-delta", "10%", "--gate-epsilon", "30%")


@pytest.fixture
def project(tmp_path: Path) -> Repo:
    """A repository whose last commit makes a step compute a hundred times as much: three blocks tell, however busy."""
    repository = Repo.new(tmp_path / "project")
    repository.commit({"tiny/__init__.py": "", "tiny/step.py": STEP.format(times=2), "test_gate.py": TEST})
    repository.commit({"tiny/step.py": STEP.format(times=200), ".gitignore": "results/\n__pycache__/\n"})
    return repository


def arguments_of(*arguments: str, blocks: int = BLOCKS) -> list[str]:
    return [*LOADED, "-p", "no:cacheprovider", *SETTINGS, "--gate-max-blocks", str(blocks), *arguments]


def gate(project: Repo, *arguments: str, blocks: int = BLOCKS) -> Gated:
    """A pytest of the user's, in a process of its own."""
    command = [sys.executable, "-m", "pytest", *arguments_of(*arguments, blocks=blocks)]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)


def gate_here(pytester: pytest.Pytester, project: Repo, *arguments: str) -> Gated:
    """The same in this process, whose trials need not import TensorFlow."""
    with handed_in(), contextlib.chdir(project.root):
        ran = pytester.runpytest_inprocess(*arguments_of(*arguments))
    return Gated(arguments, ran.ret, str(ran.stdout), str(ran.stderr))


def must_fail(gated: Gated) -> None:
    assert gated.returncode == 1, gated.stdout + gated.stderr
    assert "tiny.step:make_step: slower" in gated.stdout


def must_pass(gated: Gated) -> None:
    assert gated.returncode == 0, gated.stdout + gated.stderr
    assert "1 passed" in gated.stdout


@pytest.mark.slow
def test_a_commit_that_makes_a_step_slower_fails_and_the_same_commit_does_not(project: Repo) -> None:
    before = project.state()
    must_fail(undisturbed(lambda: gate(project, "--gate-against", "HEAD~1"), must_fail))
    must_pass(undisturbed(lambda: gate(project, "--gate-against", "HEAD", blocks=2), must_pass))
    assert project.state()[:4] == before[:4], "HEAD, references, index and work trees are as they were"


@pytest.mark.slow
def test_a_stored_baseline_finds_the_same(project: Repo, pytester: pytest.Pytester) -> None:
    def saved_and_held_against() -> Gated:
        project.git("checkout", "--quiet", "HEAD~1")
        saved = gate_here(pytester, project, "--gate-save", "before")
        assert "saved: " in saved.stdout, saved.stdout + saved.stderr
        project.git("checkout", "--quiet", "main")
        return gate_here(pytester, project, "--gate-baseline", "before")

    must_fail(undisturbed(saved_and_held_against, must_fail))
