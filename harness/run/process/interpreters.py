"""Another Python than the one that runs the harness: what it is, what it lacks, and what must not leak into it."""

import contextlib
import os
import platform
import re
import selectors
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ValidationError

from harness.arguments import path_of
from harness.environment.software import package_versions
from harness.errors import UsageError
from harness.protocol.engine import Software
from harness.visible import quoted

OLDEST = (3, 11)
ANSWER_LIMIT_S = 120.0
"""A cold network disk can take long to start even a Python."""
LARGEST_ANSWER = 2**20
"""Bytes of it, with what a site's own start-up says."""
_MARK = "harness:"
_QUESTION = f"""
import json, sys
answer = {{"version": list(sys.version_info[:3]), "packages": {{}}}}
if sys.version_info >= {OLDEST}:
    from importlib import metadata, util
    for argument in sys.argv[1:]:
        name, packages = argument.split("=")
        spec = util.find_spec(name)
        if spec is not None and spec.origin is not None:
            answer["packages"][name] = ""
            for package in packages.split(","):
                try:
                    answer["packages"][name] = metadata.version(package)
                    break
                except metadata.PackageNotFoundError:
                    pass
print({_MARK!r} + json.dumps(answer))
"""
"""Asks for the modules that the arguments name, each with the packages that may bring it (`MODULE=PACKAGE,PACKAGE`);
written so that even Python 2 answers with its version. Nothing large is imported. A folder without any module of its
own, which is only called like one, has no origin."""
_OURS_ALONE = ("VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PYTHONHOME", "PYTHONEXECUTABLE")
_INSTALLED = {"site-packages", "dist-packages"}


class _Answer(BaseModel):
    """To the question."""

    version: tuple[int, int, int]
    packages: dict[str, str]


@dataclass(frozen=True)
class Interpreter:
    """A Python that can run trials. `path` is absolute, its symbolic links kept: they are what makes it a venv."""

    path: str
    version: str
    packages: Mapping[str, str]
    """Versions of what trials need; empty where the package does not tell."""

    def title(self, other: "Interpreter", folder: Path, titles: Mapping[str, str]) -> str:
        """What tells it apart from another: `TensorFlow 2.21.0, Keras 3.15.1 (.venv-new/bin/python)`.

        `titles` are names of packages for people. Python's own version is named where the two differ in it, or where
        nothing else is known.
        """
        known = [f"{name} {self.packages[key]}" for key, name in titles.items() if self.packages.get(key)]
        if not known or self.version != other.version:
            known.insert(0, f"Python {self.version}")
        return f"{', '.join(known)} ({short_path(self.path, folder)})"


def our_interpreter(software: Software) -> Interpreter:
    """The one that runs the harness, with what it has of an engine's."""
    versions = package_versions()
    packages = {name: versions[name] or "" for name in software.titles if name in versions}
    return Interpreter(sys.executable, platform.python_version(), packages)


def examine(given: str, flag: str, software: Software) -> Interpreter:
    """The interpreter at `given`, a path or a name on the PATH, for trials of an engine with this software.

    UsageError, one line that begins with `flag`, when there is none, it is no Python, too old a Python, or
    it lacks what a trial needs; nothing heavy is imported to find out.
    """
    path = _located(given, flag)
    needed = software.needs
    modules = [f"{name}={','.join((name, *software.brought_by.get(name, ())))}" for name in needed]
    answer = _asked(path, given, flag, modules)
    named = ".".join(map(str, answer.version))
    if answer.version < OLDEST:
        raise UsageError(f"{flag}: '{given}' is Python {named}, expected {OLDEST[0]}.{OLDEST[1]} or newer")
    packages = answer.packages
    missing = [name for name in needed if name not in packages]
    install = f"{shlex.quote(given)} -m pip install"
    if missing:
        wanted = [name for name in missing if software.comes_with.get(name) not in missing]
        raise UsageError(f"{flag}: '{given}' cannot import {', '.join(missing)}; {install} {' '.join(wanted)}")
    for name, least in needed.items():
        if older(packages[name], least):
            raise UsageError(
                f"{flag}: '{given}' has {name} {packages[name]}, expected {least} or newer; "
                f"{install} --upgrade {software.comes_with.get(name, name)}"
            )
    return Interpreter(path, named, packages)


def older(version: str, least: str) -> bool:
    """Whether a version is before the least one, by as many numbers as that has; False where it has no numbers. What
    comes before a release, such as 11rc1, counts as that release."""
    released = re.match(r"\d+(\.\d+)*", version)
    numbers = released.group().split(".")[: least.count(".") + 1] if released else []
    return bool(numbers) and [*map(int, numbers)] < [*map(int, least.split("."))]


def _located(given: str, flag: str) -> str:
    try:
        return os.path.abspath(_file_at(given, flag))  # noqa: PTH100  Path.resolve would follow the link out of the venv
    except OSError as error:  # a longer name than there may be, a circle of links, a folder of somebody else's
        raise UsageError(f"{flag}: {quoted(given)}: {error.strerror}") from None


def _file_at(given: str, flag: str) -> Path:
    path = path_of(flag, given)
    with contextlib.suppress(FileNotFoundError):
        path.lstat()
    if os.sep not in given:
        found = shutil.which(given)
        if found is None and not path.exists():
            raise UsageError(f"{flag}: no '{given}' on the PATH; give the path of an interpreter")
        path = Path(found) if found is not None else path
    if path.is_dir():
        inside = next((name for name in ("bin/python", "python") if (path / name).is_file()), None)
        hint = f"; did you mean '{path / inside}'?" if inside else ", expected an interpreter such as .venv/bin/python"
        raise UsageError(f"{flag}: '{given}' is a folder{hint}")
    if not path.exists():
        raise UsageError(f"{flag}: no file at '{given}'")
    return path


def _asked(path: str, given: str, flag: str, modules: Sequence[str]) -> _Answer:
    wrong = f"{flag}: '{given}' is not a Python interpreter"
    try:
        out, errors = _printed([path, "-c", _QUESTION, *modules], inherited(path))
    except PermissionError:
        raise UsageError(f"{flag}: '{given}' may not be executed") from None
    except TimeoutError:
        raise UsageError(f"{wrong}: no answer within {ANSWER_LIMIT_S:g} s") from None
    except OSError:
        raise UsageError(wrong) from None
    for line in out.splitlines():  # a site's own start-up may print too
        if line.startswith(_MARK):
            try:
                return _Answer.model_validate_json(line.removeprefix(_MARK))
            except ValidationError:
                raise UsageError(wrong) from None
    said = errors.strip().splitlines()
    raise UsageError(f"{wrong}: {said[-1]}" if said else wrong)


def _printed(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What a command writes to standard output and standard error until it has closed both, or written too much; it is
    ended then. Raises OSError where it cannot be started, and TimeoutError."""
    with subprocess.Popen(
        command, env=environment, cwd=os.sep, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            return [text.decode(errors="replace") for text in _read(process.stdout, process.stderr)]
        finally:
            process.kill()


def _read(*streams: IO[bytes] | None) -> list[bytes]:
    deadline = time.monotonic() + ANSWER_LIMIT_S
    said = {stream.fileno(): b"" for stream in streams if stream is not None}
    with selectors.DefaultSelector() as waiting:
        for number in said:
            waiting.register(number, selectors.EVENT_READ)
        while waiting.get_map() and max(map(len, said.values())) < LARGEST_ANSWER:
            ready = waiting.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, LARGEST_ANSWER)
                said[key.fd] += chunk
                if not chunk:
                    waiting.unregister(key.fd)
    return list(said.values())


def inherited(python: str) -> dict[str, str]:
    """The variables that a process of the interpreter `python` gets from this one.

    For another interpreter than ours nothing that leads to our packages: what names our venv is gone, and so
    are installed packages on PYTHONPATH. A user's own folders stay on it.
    """
    environment = dict(os.environ)
    if python == sys.executable:
        return environment
    for name in _OURS_ALONE:
        environment.pop(name, None)
    entries = environment.pop("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in entries if entry and not _INSTALLED & set(Path(entry).parts)]
    return {**environment, "PYTHONPATH": os.pathsep.join(kept)} if kept else environment


def short_path(path: str, folder: Path) -> str:
    """`path` as a person tells it from another: relative to `folder`, from the home folder, or its end."""
    whole, home = Path(path), Path(os.path.expanduser("~"))  # noqa: PTH111  which never raises
    if whole.is_relative_to(folder):
        return str(whole.relative_to(folder))
    if home.is_absolute() and home != Path(home.root) and whole.is_relative_to(home):
        return str(Path("~", whole.relative_to(home)))
    return str(Path("…", *whole.parts[-3:])) if len(whole.parts) > 4 else path
