"""A script of the user's own that marks its training step: it runs as it is, and waits before each call of that step.

The script is `__main__` in a thread of its own, which goes on when the next step is asked for, as far as the call after
it: what the script does between two calls, such as to fetch a batch, is part of the step. To hand over and back takes
some 0.03 ms.
"""

import functools
import queue
import runpy
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from harness.errors import UsageError
from harness.registry import script_of
from harness.visible import quoted

P = ParamSpec("P")
R = TypeVar("R")
_running: list["Script"] = []
"""The script that this process measures, if it does; a list, since the mark and the script are of one module."""


def mark_step(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator for the function that does one training step in a script, and returns its loss.

    By itself it changes nothing. Under `python -m harness sweep --step train.py` each call is one step that is timed,
    with all that the script does until the next. Attributes of what it returns say more: `check`, a function without
    arguments that is asked before and after timing whether all is well, and `eager_reference = False` of a step that
    cannot be compared with itself run uncompiled. UsageError for what is no function, and where the script calls two
    that are marked.
    """
    if not callable(function):
        raise UsageError(f"function: given {quoted(str(function))}, expected a function that does one training step")

    @functools.wraps(function)
    def marked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _running:
            return function(*args, **kwargs)
        _running[0].wait(marked)
        result = function(*args, **kwargs)
        _running[0].took(result)
        return result

    return marked


class Script:
    """The script of `train.py --epochs 3`, up to the first call of its marked step; each call of it is a step, and
    returns its loss.

    `traced` says of the code that asks whether a framework is tracing it, which calls a function once for all its
    steps. Raises UsageError where the script ends before, StopIteration where it ends later, and whatever it raises
    itself.
    """

    def __init__(self, text: str, traced: Callable[[], bool] = lambda: False) -> None:
        self.eager_reference, self.check = True, None
        self._path, self._arguments = script_of(text)
        self._traced = traced
        self._loss: Any = None
        self._marked: Any = None
        self._refused: UsageError | None = None
        self._may_go: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        _running[:] = [self]
        threading.Thread(target=self._run, name="script", daemon=True).start()
        if (end := self._came.get()) is not None:
            if end is self._refused:
                raise end
            how = f"raised {type(end).__name__}: {end}" if isinstance(end, Exception) else "ended"
            if isinstance(end, SystemExit) and end.code:  # 2 is that of argparse, which has told why
                how = f"ended with exit code {end.code}" if isinstance(end.code, int) else f"ended ({end.code})"
            expected = "expected one that calls a function that harness.mark_step marks"
            raise UsageError(f"step: '{text}' {how} before its first step; {expected}") from end
        self.eager_reference = getattr(self._marked, "eager_reference", True)
        self.check = getattr(self._marked, "check", None)

    def __call__(self) -> Any:
        """The next step, and what comes after it in the script."""
        self._may_go.put(None)
        end = self._came.get()
        if isinstance(end, Exception):
            raise end
        if end is not None:
            raise StopIteration
        return self._loss

    def wait(self, marked: Any) -> None:
        """In the script, before a step: until it is asked for. UsageError where another function was a step before, or
        is in one now, since each call of either would count; and where it is being traced."""
        if self._marked is not None and marked.__wrapped__ != self._marked.__wrapped__:
            first, other = (quoted(_name(one.__wrapped__)) for one in (self._marked, marked))
            if first == other:
                self._refuse(f"{first} is marked anew, as another function; mark it once, before the loop")
            both = f"{first} and {other}"
            self._refuse(f"two functions are marked, {both}; mark the one that makes a whole step")
        if self._traced():
            self._refuse(
                f"{quoted(_name(marked.__wrapped__))} is marked inside of tf.function, which calls it only while it is "
                "traced; mark the function outside: @harness.mark_step comes first, above @tf.function"
            )
        self._marked = marked
        self._came.put(None)
        self._may_go.get()

    def took(self, loss: Any) -> None:
        """In the script, after a step."""
        self._loss = loss

    def _refuse(self, why: str) -> NoReturn:
        """Kept, since a framework that is tracing makes another error of it."""
        self._refused = UsageError(f"step: {why}")
        raise self._refused

    def _run(self) -> None:
        path = Path(self._path).absolute()
        sys.argv, sys.path = [self._path, *self._arguments], [str(path.parent), *sys.path]
        try:
            runpy.run_path(str(path), run_name="__main__")
        except BaseException as end:  # noqa: BLE001  whatever ends the script is told to who asks for its next step
            self._came.put(self._refused or end)
        else:
            self._came.put(SystemExit())


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
