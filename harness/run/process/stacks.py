"""The part of a process's last words that tells: of stacks the innermost frames, of anything else the end.

`faulthandler` writes a stack with its most recent call first and the main thread's stack last, so the end of what it
wrote is where every program begins, and not where this one hangs.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.visible import one_line

STACK = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
FRAME = "  "
"""What a line of a stack begins with."""
FEWEST = 4
"""Frames that every thread's stack gets, or else the one that matters has the room to itself."""
LONGEST_LINE = 300
"""Characters of other lines: after a fatal error, Python names every extension module in one."""


LOG_PREFIX = re.compile(r"^.*?\.(?:cc|cu|h):\d+\] ")
"""What a native library begins a line with: severity, time, thread and place."""
LONGEST_WORDS = 200
"""Characters of what a reason says besides."""


def last_words(text: str) -> str:
    """The last line that says something, to follow a reason: `: …`; nothing where there is none."""
    said = [one_line(LOG_PREFIX.sub("", line)) for line in text.splitlines() if not line.startswith(FRAME)]
    words = next((line for line in reversed(said) if line), "")
    return words and f": {words[:LONGEST_WORDS]}"


PLACE = re.compile(r'File "(.*)", line (\d+) in (.*)')
BY_DATA = re.compile(r"/(tensorflow/python/data/ops/from_generator_op|harness/engines/tensorflow/data/own)\.py$")
"""Files of who calls a user's data function, or the generator that it has made."""
BY_ANY = re.compile(r"/tensorflow/python/ops/script_ops\.py$")
"""That of who calls any Python code from a graph: what data functions map, and what models do."""
NEXT = re.compile(r"/tensorflow/python/data/ops/(multi_device_)?iterator_ops\.py$")
"""Files of who asks a pipeline for its next element."""


def at_data(text: str, data: str) -> str:
    """Where stacks show that a process waits for the data of this name, in words; nothing where they do not.

    Of a user's own function it is the place in its code, which TensorFlow calls in a thread of its own.
    """
    module, _, function = data.partition(":")
    own = tuple(f"/{module.replace('.', '/')}{end}" for end in (".py", "/__init__.py")) if function else ()
    waits = False
    for stack in _parted(text.splitlines())[1]:
        places = [found.groups() for frame in stack.frames if (found := PLACE.search(frame))]
        waits = waits or any(NEXT.search(file) for file, *_ in places)
        for number, (file, *_) in enumerate(places):
            mine = [place for place in places[:number] if "/tensorflow/python/" not in place[0]]
            if mine and (BY_DATA.search(file) or (BY_ANY.search(file) and mine[-1][0].endswith(own))):
                where, line, name = mine[-1]
                return f"the data function '{data}' does not come back from {name} ({where.rpartition('/')[2]}:{line})"
    return f"it waits for the next example of '{data}'" if waits else ""


SLICE_S = 0.5
USUAL_S = 2.0
LIMIT_S = 8.0
"""A stack is written character by character, which takes seconds where the processors are busy."""


def settled(read: Callable[[], str]) -> str:
    """What processes that were asked for their stacks have written, once no more of it comes.

    They get USUAL_S to begin, and LIMIT_S in all.
    """
    began, before = time.monotonic(), ""
    while True:
        time.sleep(SLICE_S)
        found, taken = read(), time.monotonic() - began
        begun = any(STACK.match(line) for line in found.splitlines())
        if taken >= LIMIT_S or (found == before and (begun or taken >= USUAL_S)):
            return found
        before = found


@dataclass
class _Part:
    """A stack, or lines that are none."""

    lines: list[str]
    frames: list[str] = field(default_factory=list)

    def text(self, frames: int) -> list[str]:
        """Its lines with the innermost `frames` of its frames."""
        left = len(self.frames) - frames
        return [*self.lines, *self.frames[:frames], *([f"  … {left} more"] if left > 0 else [])]


def excerpt(text: str, characters: int) -> str:
    """`text` in at most so many characters: the end, but of each stack the beginning.

    Where there is no room for a few frames of each stack, the main thread's is kept alone, or that of the thread that
    caused a fatal error.
    """
    if len(text) <= characters:
        return text
    before, stacks = _parted(text.splitlines())
    if not stacks:
        return text[-characters:]
    room = characters // 4
    head = "\n".join(before)[-room:]
    for chosen, fewest in ((stacks, FEWEST), ([_telling(stacks)], 1)):
        for frames in range(max(fewest, *(len(stack.frames) for stack in chosen)), fewest - 1, -1):
            found = "\n".join([head, *(line for stack in chosen for line in stack.text(frames))])
            if len(found) <= characters:
                return found.lstrip("\n")
    return "\n".join(_telling(stacks).text(1))[:characters]


def _parted(lines: Sequence[str]) -> tuple[list[str], list[_Part]]:
    """What comes before the first stack, and the stacks, each with what follows it."""
    before: list[str] = []
    stacks: list[_Part] = []
    for line in lines:
        if STACK.match(line):
            stacks.append(_Part([line]))
        elif not stacks:
            before.append(line)
        elif line.startswith(FRAME):
            stacks[-1].frames.append(line)
        elif line.strip():
            stacks.append(_Part([line[:LONGEST_LINE]]))
    return before, stacks


def _telling(stacks: Sequence[_Part]) -> _Part:
    """The stack of the thread that matters."""
    real = [stack for stack in stacks if stack.frames] or list(stacks)
    return next((stack for stack in reversed(real) if stack.lines[0].startswith("Current")), real[-1])
