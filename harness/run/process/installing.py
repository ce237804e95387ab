"""An environment for an engine: a venv of the running Python in the user's cache folder, from the engine's pins."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import HarnessError, UsageError, not_one_of
from harness.files import descriptor_of
from harness.protocol.engine import Environment, Software
from harness.run.process.engines import SEAL, digest_of, environments, folder_of, python_of
from harness.run.process.interpreters import Interpreter, examine

UNFINISHED = ".new"
"""What the name of an environment ends with while it is being made. Python finds its packages wherever it lies."""


def install(name: str) -> tuple[Path, Interpreter]:
    """Make the environment of an engine anew; its folder, and its interpreter.

    UsageError for an engine that has none; HarnessError, one line, where it cannot be made: what was there before is
    then left as it was. It is made beside that, and takes its place once it is whole.
    """
    known = environments()
    if name not in known:
        raise not_one_of("engine", name, known)
    environment = known[name]
    folder = folder_of(name)
    with _alone(folder):
        fresh = folder.with_name(f"{name}{UNFINISHED}")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            _fill(fresh, environment)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    try:
        return folder, examine(str(python_of(folder)), name, Software(needs=environment.needs))
    except UsageError as error:
        raise HarnessError(f"engine: '{name}' was installed and cannot be used: {error}") from None


def _fill(folder: Path, environment: Environment) -> None:
    """The seal comes last: without it nobody takes the folder for an environment."""
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], "cannot make an environment")
    quietly = ["--quiet", "--disable-pip-version-check", "--no-input"]
    pip = [str(python_of(folder)), "-I", "-m", "pip", "install", *quietly]
    _run([*pip, "--constraint", str(environment.constraints), *environment.installs], "pip cannot install it")
    (folder / SEAL).write_text(f"{digest_of(environment)}\n", encoding="utf-8")


def _run(command: Sequence[str], what: str) -> None:
    """HarnessError with the last line of what the command said, where it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        wrong = [line for line in said if line.startswith("ERROR")] or said or ["it did not say why"]
        raise HarnessError(f"engine: {what}: {wrong[-1].removeprefix('ERROR: ')}")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While entered, nobody else installs there; UsageError where somebody does."""
    lock = folder.with_name(f"{folder.name}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = descriptor_of(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        raise HarnessError(f"engine: cannot write '{folder.parent}': {error.strerror or error}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"engine: another process is installing in '{folder}'; wait until it is done") from None
    finally:
        os.close(descriptor)
