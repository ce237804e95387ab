"""Of long stacks, where each thread is stays; of anything else, the end does."""

import re
import subprocess
import sys

import pytest

from harness.run.process import stacks
from harness.run.process.stacks import LIMIT_S, USUAL_S, at_data, excerpt, settled

DEEP = """
import faulthandler, os, signal, threading
faulthandler.enable(all_threads=True)
faulthandler.register(signal.SIGUSR1, all_threads=True)

def the_place_where_it_hangs():
    os.kill(os.getpid(), signal.{signal})

def deep(n):
    the_place_where_it_hangs() if n == 0 else deep(n - 1)

def waits(n):
    threading.Event().wait() if n == 0 else waits(n - 1)

for _ in range({threads}):
    threading.Thread(target=waits, args=(30,), daemon=True).start()
print("what it said before", file=__import__("sys").stderr)
deep(60)
"""
ROOM = 1500


def written(threads: int, by: str = "SIGUSR1") -> str:
    """What a process with deep stacks leaves on standard error."""
    code = DEEP.format(threads=threads, signal=by)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("threads", [0, 2, 40])
@pytest.mark.parametrize("by", ["SIGUSR1", "SIGSEGV"])
def test_the_innermost_frame_of_the_main_thread_is_kept(threads: int, by: str) -> None:
    text = written(threads, by)
    assert "the_place_where_it_hangs" not in text[-ROOM:]
    kept = excerpt(text, ROOM)
    assert len(kept) <= ROOM
    assert "in the_place_where_it_hangs" in kept
    assert "what it said before" in kept


def test_every_thread_keeps_its_innermost_frames_where_there_is_room() -> None:
    kept = excerpt(written(2), ROOM)
    assert kept.count("(most recent call first)") == 3
    assert len(re.findall(r"call first\):\n[^\n]* in wait\n", kept)) == 2
    assert " more\n" in kept


def test_what_has_room_is_kept_as_it_is_and_what_has_no_stacks_keeps_its_end() -> None:
    assert excerpt("short", 100) == "short"
    assert excerpt("0123456789" * 30, 15) == "567890123456789"


def test_no_stack_is_too_long_for_its_room() -> None:
    text = "Thread 0x01 (most recent call first):\n" + '  File "x", line 1 in ' + "y" * 500
    assert len(excerpt(text, 100)) <= 100


def test_stacks_are_waited_for_until_no_more_of_them_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = [0.0], []
    header = "Thread 0x01 (most recent call first):"
    monkeypatch.setattr(stacks, "SLICE_S", 0.5)
    monkeypatch.setattr(stacks, "USUAL_S", USUAL_S)
    monkeypatch.setattr("harness.run.process.stacks.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("harness.run.process.stacks.time.sleep", lambda s: clock.__setitem__(0, clock[0] + s))

    def slow(parts: list[str]) -> str:
        said.append(clock[0])
        return "\n".join(parts[: len(said)])

    assert settled(lambda: slow(["noise", header, "  one", "  two"])) == f"noise\n{header}\n  one\n  two"
    began = clock[0]
    assert settled(lambda: "noise alone") == "noise alone"
    assert clock[0] - began == USUAL_S, "who is stopped writes nothing"
    began = clock[0]
    settled(lambda: str(clock[0]))
    assert clock[0] - began == LIMIT_S


TF = "/env/site-packages/tensorflow/python"


def stack(*frames: str) -> str:
    """What Python writes of a thread, its innermost frame first."""
    return "\n".join(["Thread 0x01 (most recent call first):", *(f"  File {frame}" for frame in frames)])


STEP = stack(f'"{TF}/eager/execute.py", line 53 in quick_execute', '"/home/me/train.py", line 3 in <module>')
GENERATOR = stack(
    '"/env/site-packages/requests/api.py", line 9 in get',
    '"/home/me/reader.py", line 95 in rows',
    f'"{TF}/data/ops/from_generator_op.py", line 198 in generator_py_func',
    f'"{TF}/ops/script_ops.py", line 146 in _call',
)
MAPPED = stack(
    '"/home/me/my/data.py", line 12 in decode',
    f'"{TF}/autograph/impl/api.py", line 643 in wrapper',
    f'"{TF}/ops/script_ops.py", line 146 in _call',
)
CALLED = stack(
    '"/home/me/my/data.py", line 7 in examples',
    '"/env/site-packages/harness/engines/tensorflow/data/own.py", line 113 in _returned',
)
NATIVE = stack(
    f'"{TF}/data/ops/iterator_ops.py", line 826 in _next_internal', '"/home/me/train.py", line 3 in <module>'
)


@pytest.mark.parametrize(
    ("found", "place"),
    [
        (GENERATOR, "rows (reader.py:95)"),
        (MAPPED, "decode (data.py:12)"),
        (CALLED, "examples (data.py:7)"),
    ],
)
def test_a_data_function_that_does_not_come_back_is_named_with_the_place_in_its_code(found: str, place: str) -> None:
    for text in (f"{found}\n\n{STEP}", f"{NATIVE}\n{found}"):
        told = at_data(f"log\n{text}", "my.data:examples(rate=1)")
        assert told == f"the data function 'my.data:examples(rate=1)' does not come back from {place}"


def test_a_process_that_waits_for_an_example_says_so_and_one_that_computes_does_not() -> None:
    assert at_data(f"{STEP}\n{NATIVE}", "tfrecord:there/*") == "it waits for the next example of 'tfrecord:there/*'"
    assert at_data(STEP, "my.data:examples") == ""
    assert at_data(MAPPED, "another:examples") == ""  # the model calls Python code, too
    assert at_data("", "digits") == ""
