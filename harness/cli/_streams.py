"""The standard streams of a verb: what is printed is visible, and a stream that takes no more is said once."""

import contextlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from harness.errors import StorageError
from harness.visible import no_command, printable, printable_in_colour

_COLOURING = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")
"""Variables with which help is coloured in a pipe too."""


def of_github() -> bool:
    """Whether this is a step of GitHub Actions, whose log is read for commands."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


class _Stream:
    """A standard stream, or the null device in the place of one that is closed."""

    def __init__(self, stream: TextIO, closed: bool) -> None:
        self._stream = stream
        self._closed = closed
        coloured = stream.isatty() or any(os.environ.get(name) for name in _COLOURING)
        shown = printable_in_colour if coloured else printable
        self._printable = (lambda text: no_command(shown(text))) if of_github() and not _is_file(stream) else shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def write(self, text: str) -> int:
        try:
            if self._closed and text:
                raise OSError("it is closed")
            self._stream.write(self._printable(text))
        except (OSError, ValueError) as error:
            self.failed(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self.failed(error)

    def failed(self, error: OSError | ValueError) -> None:
        raise NotImplementedError


class _Output(_Stream):
    """Standard output. Whoever asked for an answer has none when it cannot be written: StorageError.

    A reader that has had enough (head, less) is no fault: the verb goes on unread, for what its exit code says.
    """

    def failed(self, error: OSError | ValueError) -> None:
        if isinstance(error, BrokenPipeError):
            silence(self._stream)
            return
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(f"cannot write standard output: {reason}; send it somewhere else") from None


class _Errors(_Stream):
    """Standard error. Nobody can be told that it is full; what was asked for goes on."""

    def failed(self, error: OSError | ValueError) -> None:
        pass


class _Drawing(_Errors):
    """Standard error as a live table needs it, which moves the cursor, or commands to GitHub, and who makes the texts
    printable itself."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, closed=False)
        self._printable = lambda text: text


def drawing_stream() -> TextIO:
    """Standard error for what draws on a terminal, or commands GitHub's runner."""
    errors = sys.stderr
    return cast(TextIO, _Drawing(errors._stream)) if isinstance(errors, _Stream) else errors


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Standard output and error as said above, while a verb runs; what they cannot encode is escaped.

    Afterwards nothing is left in a stream that could not be written: Python would complain again at exit.
    """
    before = sys.stdout, sys.stderr
    streams = [_open(stream) for stream in before]
    sys.stdout = cast(TextIO, _Output(streams[0], before[0] is None))
    sys.stderr = cast(TextIO, _Errors(streams[1], before[1] is None))
    try:
        yield
    finally:
        # those that were closed are the null device from now on, so that no file gets their numbers
        sys.stdout, sys.stderr = streams
        for stream in streams:
            try:
                stream.flush()
            except (OSError, ValueError):
                silence(stream)


def _is_file(stream: TextIO) -> bool:
    """Whether it is a file, which is no log that is read for commands."""
    with contextlib.suppress(OSError, ValueError):
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    return False


def _open(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w")  # noqa: PTH123  open until the process ends
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def silence(stream: TextIO) -> None:
    """Let the null device take what is still written there."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as null:  # noqa: PTH123
        os.dup2(null.fileno(), stream.fileno())
