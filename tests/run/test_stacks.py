"""Of long stacks, where each thread is stays; of anything else, the end does."""

import re
import subprocess
import sys

import pytest

from harness.run.stacks import excerpt

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
