"""A script that marks its training step: each call is a step, and what the script does until the next is part of it."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.trial import script
from harness.trial.own_function import refuse_missing
from harness.trial.script import Script, mark_step

STEPS = """
    import sys, harness

    @harness.mark_step
    def step(number):
        done.append(f"step {number}")
        return number / 2

    done = sys.done
    done.append(__name__)
    for number in range(3):
        done.append(f"batch {number}")
        step(number)
"""


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process is the test's: a trial leaves with its script."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", sys.path)
    yield
    script._running.clear()


def written(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return str(folder / "train.py")


def test_a_call_is_a_step_and_the_script_goes_on_as_far_as_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(sys, "done", done, raising=False)
    step = Script(written(tmp_path, STEPS))
    assert done == ["__main__", "batch 0"]
    assert step() == 0.0
    assert done[2:] == ["step 0", "batch 1"]
    assert step() == 0.5
    assert done[4:] == ["step 1", "batch 2"]
    with pytest.raises(StopIteration):
        step()


ARGUMENTS = """
    import argparse, sys, harness

    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--name", default="")
    given = parser.parse_args()
    sys.done.append((given.epochs, given.name))
    step = harness.mark_step(lambda: float(given.epochs))
    while True:
        step()
"""


def test_what_follows_the_path_are_the_scripts_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(sys, "done", done, raising=False)
    path = written(tmp_path, ARGUMENTS)
    assert Script(f"{path} --epochs 3 --name 'two words.py'")() == 3.0
    assert done == [(3, "two words.py")]
    assert sys.argv == [path, "--epochs", "3", "--name", "two words.py"]


def test_a_script_that_lacks_an_argument_ends_with_the_code_of_its_parser(tmp_path: Path) -> None:
    path = written(tmp_path, ARGUMENTS)
    with pytest.raises(UsageError, match=rf"^step: '{path} --name x' ended with exit code 2 before its first step; "):
        Script(f"{path} --name x")


def test_of_a_script_with_arguments_the_file_must_be_there(tmp_path: Path) -> None:
    path = written(tmp_path, STEPS)
    refuse_missing("step", f"{path} --epochs 3")
    with pytest.raises(UsageError, match=r"^step: no script at 'nosuch\.py'$"):
        refuse_missing("step", "nosuch.py --epochs 3")


def test_by_itself_a_script_is_as_if_nothing_were_marked(tmp_path: Path) -> None:
    path = written(tmp_path, STEPS.replace("sys.done", "[]") + "    print(done)\n")
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert ran.stdout.strip().endswith("'batch 2', 'step 2']")


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("print('done')", "ended before its first step; expected one that calls a function that harness.mark_step"),
        ("raise OSError('no licence')", "raised OSError: no licence before its first step"),
        ("def broken(:", "raised SyntaxError: "),
        ("import sys\nsys.exit()", "ended before its first step"),
        ("import sys\nsys.exit(3)", "ended with exit code 3 before its first step; expected one that calls"),
    ],
)
def test_a_script_that_never_takes_a_step_is_refused_in_one_line(tmp_path: Path, text: str, how: str) -> None:
    with pytest.raises(UsageError) as refused:
        Script(path := written(tmp_path, text))
    assert str(refused.value).startswith(f"step: '{path}' {how}")
    assert "\n" not in str(refused.value)


def test_what_a_script_raises_later_is_raised_where_the_step_was_asked_for(tmp_path: Path) -> None:
    step = Script(
        written(
            tmp_path,
            """
            import harness

            step = harness.mark_step(lambda number: 1 / number)
            for number in (2, 1, 0):
                step(number)
            """,
        )
    )
    assert [step(), step()] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        step()


TWO_PARTS = """
    while True:
        d_step()
        g_step()
"""
WITHIN = """
    @harness.mark_step
    def whole():
        d_step()

    while True:
        whole()
"""


@pytest.mark.parametrize(("calls", "both"), [(TWO_PARTS, "'d_step' and 'g_step'"), (WITHIN, "'whole' and 'd_step'")])
def test_a_script_that_marks_parts_of_its_step_is_refused_where_each_would_count_as_a_step(
    tmp_path: Path, calls: str, both: str
) -> None:
    marked = """
    import harness

    @harness.mark_step
    def d_step():
        return 1.0

    @harness.mark_step
    def g_step():
        return 2.0
    """
    step = Script(written(tmp_path, f"{marked}\n{calls}"))
    with pytest.raises(UsageError) as refused:
        step()
    assert str(refused.value) == f"step: two functions are marked, {both}; mark the one that makes a whole step"


def test_a_step_that_is_made_and_marked_anew_is_refused_with_where_to_mark_it(tmp_path: Path) -> None:
    text = """
    import harness

    for _ in range(3):
        def train_step():
            return 1.0

        harness.mark_step(train_step)()
    """
    step = Script(written(tmp_path, text))
    with pytest.raises(UsageError, match=r"^step: 'train_step' is marked anew, as another function; mark it once, "):
        step()


def test_a_function_that_is_marked_anew_at_each_call_is_one_function(tmp_path: Path) -> None:
    text = """
    import harness

    class Trainer:
        def step(self):
            return 3.0

    trainer = Trainer()
    while True:
        harness.mark_step(trainer.step)()
    """
    step = Script(written(tmp_path, text))
    assert [step(), step(), step()] == [3.0] * 3


TRACED = """
    import harness

    @harness.mark_step
    def train_step():
        return 1.0

    def tracing():
        try:
            train_step()
        except Exception as error:  # as TensorFlow tells what was raised in a function that it traces
            raise RuntimeError(f"in user code:\\n\\n    {error}")

    train_step() if eager_first else None
    tracing()
"""


@pytest.mark.parametrize("first", [[], [False]], ids=["at once", "later"])
def test_a_mark_inside_of_what_is_traced_is_refused_with_where_to_mark(tmp_path: Path, first: list[bool]) -> None:
    path = written(tmp_path, TRACED.replace("eager_first", str(bool(first))))
    traced = iter([*first, True])
    refused = r"^step: 'train_step' is marked inside of tf\.function, .* above @tf\.function$"
    with pytest.raises(UsageError, match=refused):
        Script(path, lambda: next(traced))()


@pytest.mark.usefixtures("tf")
def test_of_a_mark_inside_of_tensorflows_function_the_same_is_said(tmp_path: Path) -> None:
    from harness.engines.tensorflow.own_reference import build_step

    text = """
    import tensorflow as tf, harness

    @tf.function
    @harness.mark_step
    def train_step(x):
        return tf.reduce_sum(x)

    train_step(tf.ones(3))
    """
    with pytest.raises(UsageError, match=r"^step: 'train_step' is marked inside of tf\.function, ") as refused:
        build_step(written(tmp_path, text))
    assert "\n" not in str(refused.value)


def test_it_finds_what_lies_beside_it_and_what_it_says_of_its_step_is_known(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("LOSS = 4.0", encoding="utf-8")
    step = Script(
        written(
            tmp_path,
            """
            import beside, harness

            @harness.mark_step
            def step():
                return beside.LOSS

            step.eager_reference, step.check = False, lambda: True
            while True:
                step()
            """,
        )
    )
    assert (step(), step.eager_reference, step.check()) == (4.0, False, True)
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "script"][-1], "it keeps no process"


def test_a_mark_on_what_is_no_function_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^function: given '5', expected a function that does one training step$"):
        mark_step(5)  # type: ignore[type-var]
