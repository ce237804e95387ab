"""An environment for an engine: a venv of the running Python in the user's cache folder, from the engine's pins."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.environment import usable_cores
from harness.errors import HarnessError, UsageError, not_one_of
from harness.files import descriptor_of, lock_within
from harness.protocol.engine import Environment, Software, SourceBuild
from harness.run.interrupts import Interrupts
from harness.run.process.engines import SEAL, digest_of, environments, folder_of, python_of
from harness.run.process.interpreters import Interpreter, examine
from harness.run.process.scratch import scratch_folder
from harness.run.process.zygote import SLICE_S

UNFINISHED = ".new"
"""What the name of an environment ends with while it is being made. Python finds its packages wherever it lies."""
REPLACED = ".old"
"""What the name of the one before ends with until the new one stands in its place."""
WHEELS = ".wheels"
"""What the name of the folder beside it ends with, where what was built for it is kept."""
LOG = ".log"
"""What the name of the file beside it ends with, where all that a build said is kept that went wrong."""
_COMPLAINT = re.compile(r"CMake Error|\S error: ")
"""A line that begins with `error:` is of who started the compiler, and says only that it failed."""


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
            _put_back(folder)
            _fill(fresh, environment)
            _replace(folder, fresh)
        except OSError as error:
            reason = error.strerror or error
            raise HarnessError(f"engine: cannot install '{name}' in '{folder.parent}': {reason}") from None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    try:
        return folder, examine(str(python_of(folder)), name, Software(needs=environment.needs))
    except UsageError as error:
        raise HarnessError(f"engine: '{name}' was installed and cannot be used: {error}") from None


def _fill(folder: Path, environment: Environment) -> None:
    """The seal comes last: without it nobody takes the folder for an environment."""
    if environment.built:
        _must_have(environment.built)
    with contextlib.closing(scratch_folder()) as scratch:  # what a process leaves that is ended, too
        variables = {**os.environ, "TMPDIR": str(scratch.path)}
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], "cannot make an environment", variables)
        pip = [str(python_of(folder)), "-I", "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
        pinned = ["--constraint", str(environment.constraints)]
        _run([*pip, "install", *pinned, *environment.installs], "pip cannot install it", variables)
        if environment.built:
            kept = folder.parent / f"{folder.stem}{WHEELS}"
            wheel = _wheel(kept, environment, environment.built, pip, scratch.path)
            _run([*pip, "install", "--no-deps", str(wheel)], "pip cannot install it", variables)
    (folder / SEAL).write_text(f"{digest_of(environment)}\n", encoding="utf-8")


def _put_back(folder: Path) -> None:
    """Where an install that was killed has left what was there before aside, that is what is there."""
    old = folder.with_name(f"{folder.name}{REPLACED}")
    if not folder.exists() and (old / SEAL).is_file():
        old.rename(folder)


def _replace(folder: Path, fresh: Path) -> None:
    """Put `fresh` in the place of `folder`, which stays as it was where that raises OSError."""
    old = folder.with_name(f"{folder.name}{REPLACED}")
    if folder.exists():  # else an install that was killed here has left what was there before aside
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        with contextlib.suppress(OSError):  # there was none before
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _must_have(built: SourceBuild) -> None:
    """HarnessError where a command that builds it is not there."""
    missing = [tool for tool in built.tools if shutil.which(tool) is None]
    if missing:
        raise HarnessError(f"engine: '{built.package}' is built from source: install {' and '.join(missing)}")


def _wheel(kept: Path, environment: Environment, built: SourceBuild, pip: Sequence[str], scratch: Path) -> Path:
    """The package as it was built for this Python from these pins, by now or by an earlier install: building takes
    minutes. Those of other pins are thrown away."""
    own = kept / f"{sys.implementation.cache_tag}-{digest_of(environment)[:16]}"
    if not (found := list(own.glob("*.whl"))):
        made = _built(scratch, environment, built, pip, kept.with_suffix(LOG))
        shutil.rmtree(kept, ignore_errors=True)
        own.mkdir(parents=True)
        found = [_copied(wheel, own) for wheel in made]
    return found[0]


def _copied(file: Path, folder: Path) -> Path:
    """The same file in another folder, whole or not there: who is killed meanwhile leaves nothing of its name."""
    part = folder / f"{file.name}.part"
    shutil.copy2(file, part)
    return part.rename(folder / file.name)


def _built(scratch: Path, environment: Environment, built: SourceBuild, pip: Sequence[str], log: Path) -> list[Path]:
    """Fetch the source distribution, leave out of it what is to be, and make its wheel in the environment itself."""
    fetched, source, wheels = (scratch / name for name in ("fetched", "source", "wheels"))
    fetched.mkdir()
    alone = ["--no-deps", "--no-build-isolation"]
    asked = ["--no-binary", built.package, "--constraint", str(environment.constraints), built.package]
    variables = {"MAKEFLAGS": f"-j{usable_cores()}", **os.environ, "TMPDIR": str(scratch), **built.variables}
    _run([*pip, "download", *alone, "--dest", str(fetched), *asked], "pip cannot fetch its source", variables)
    shutil.unpack_archive(next(fetched.glob(f"{built.package}-*")), source)
    root = next(source.iterdir())
    for name, text in built.without.items():
        lines = (root / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (root / name).write_text("".join(line for line in lines if text not in line), encoding="utf-8")
    _run([*pip, "wheel", *alone, "--wheel-dir", str(wheels), str(root)], "cannot build it", variables, log)
    return list(wheels.glob("*.whl"))


def _run(
    command: Sequence[str], what: str, variables: Mapping[str, str] | None = None, log: Path | None = None
) -> None:
    """HarnessError with why, where the command fails; all that it said is then in `log`. It has the lock, too.

    What it has started, such as compilers, is of its session, and ends with it where this is interrupted.
    """
    with (
        Interrupts() as interrupts,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=variables,
            close_fds=False,
            start_new_session=True,
        ) as process,
    ):
        try:
            out, err = _said(process, interrupts)
        except BaseException:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.returncode:
        reason = f"engine: {what}: {_why(err or out)}"
        if log is not None:
            log.write_text(out + err, encoding="utf-8")
            reason = f"{reason}; all that was said is in '{log}'"
        raise HarnessError(reason)
    if log is not None:
        log.unlink(missing_ok=True)


def _said(process: subprocess.Popen[str], interrupts: Interrupts) -> tuple[str, str]:
    """All that it says until its end; Interrupted where the person asks to stop before that."""
    while True:
        interrupts.check()
        with contextlib.suppress(subprocess.TimeoutExpired):
            said = process.communicate(timeout=SLICE_S)
            interrupts.check()
            return said


def _why(said: str) -> str:
    """The first line by which CMake or a compiler complains, with the next where that has the reason; else the last of
    pip's own, or of all."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if _COMPLAINT.search(line):
            return f"{line} {after}" if line.endswith(":") else line
    wrong = [line for line in lines if line.startswith("ERROR")] or lines or ["it did not say why"]
    return wrong[-1].removeprefix("ERROR: ")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While entered, nobody else installs there; UsageError where somebody does."""
    with contextlib.ExitStack() as held:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            descriptor = descriptor_of(folder.with_name(f"{folder.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW)
            held.callback(os.close, descriptor)
            os.set_inheritable(descriptor, True)  # what this starts, and a kill of this leaves, keeps others out
            free = lock_within(descriptor, 0.0)
        except OSError as error:
            raise HarnessError(f"engine: cannot write '{folder.parent}': {error.strerror or error}") from None
        if not free:
            raise UsageError(f"engine: another process is installing in '{folder}'; wait until it is done")
        yield
