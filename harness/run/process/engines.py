"""Which interpreter the trials of an engine run in: the user's, ours, or the one that `engine install` has made.

An engine that says no more than TensorFlow does (`harness.protocol.engine.Environment`) runs in ours.
"""

import contextlib
import hashlib
import platform
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from harness.errors import UsageError, not_one_of
from harness.files import default_data_dir, read_whole
from harness.protocol.engine import Engine, Environment, Software
from harness.registry import registered
from harness.run.process.interpreters import Interpreter, examine, older, our_interpreter
from harness.spec.engines import interpreters_in, only_engine_of
from harness.spec.sweep import Sweep
from harness.trial.engines import engine_of, environment_of, software_of

KEY = "engine_python"
MINOR = re.compile(r"\d+\.\d+")
SEAL = "harness-engine"
"""A file that stands in an environment once all of it is installed: the digest of the pins that it was made from."""
LARGEST_SEAL = 2**10


@dataclass(frozen=True)
class Home:
    """Where an engine's trials run: an interpreter, or the reason why there is none. `ours` is that of the harness."""

    interpreter: Interpreter | None = None
    ours: bool = False
    why_not: str = ""


def folder_of(name: str) -> Path:
    """The folder of the environment that `engine install` makes; UsageError where nobody knows whose home is meant."""
    try:
        return default_data_dir().absolute() / "engines" / name
    except RuntimeError as error:
        raise UsageError(f"engine: no folder for '{name}': {error}; set XDG_CACHE_HOME") from None


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "bin" / "python"


def digest_of(environment: Environment) -> str:
    """Of the pins, of what is asked for, and of what is built."""
    asked = repr(environment.installs) + (repr(environment.built) if environment.built else "")
    return hashlib.sha256(environment.constraints.read_bytes() + asked.encode()).hexdigest()


def python_for(sweep: Sweep, among: Collection[str] = (), name: str = "") -> str | None:
    """The path of the interpreter that trials of `sweep` by an engine, its only one where no name is given, run in;
    None is the one that runs the harness.

    UsageError where it is not there, with the command that makes it, and where the sweep names one for an engine that
    is neither this one nor `among` those that are measured beside it.
    """
    engine = engine_of(name or only_engine_of(sweep))
    given = _given(sweep, engine, among)
    if given is not None:
        return examine(given, f"{KEY}: {engine.name}", software_of(engine)).path
    home = home_of(engine)
    if home.interpreter is None:
        raise UsageError(f"engine: '{engine.name}' {home.why_not}; {install_command(engine.name)}")
    return None if home.ours else home.interpreter.path


def home_of(engine: Engine) -> Home:
    """Where the engine's trials run if the user does not say."""
    environment = environment_of(engine)
    if environment is None:
        return Home(our_interpreter(software_of(engine)), ours=True)
    here = versions_here(software_of(engine))
    if not _lacks(environment, here):
        return Home(Interpreter(sys.executable, platform.python_version(), here), ours=True)
    folder = folder_of(engine.name)
    if not folder.is_dir():
        return Home(why_not="is not installed")
    try:
        seal = read_whole(folder / SEAL, LARGEST_SEAL).decode()
    except (OSError, ValueError):
        return Home(why_not=f"was not installed to the end in '{folder}'")
    if seal.strip() != digest_of(environment):
        return Home(why_not=f"in '{folder}' was installed from the pins of another version of the harness")
    try:
        return Home(examine(str(python_of(folder)), engine.name, software_of(engine)))
    except UsageError as error:
        return Home(why_not=f"cannot be used as it is installed ({error})")


def versions_here(software: Software) -> dict[str, str]:
    """Versions of what an engine needs, as far as a package that is installed here brings it; nothing is imported.

    A folder or file of the working directory that is only called like it is found as a module, and is none.
    """
    found: dict[str, str] = {}
    for name in (name for name in software.needs if util.find_spec(name) is not None):
        for package in (name, *software.brought_by.get(name, ())):
            with contextlib.suppress(metadata.PackageNotFoundError):
                found.setdefault(name, metadata.version(package))
    return found


def newer_than_tested(engine: Engine, packages: Mapping[str, str]) -> dict[str, str]:
    """The engine's frameworks of which `packages` have a later minor version than its pins, each with the pinned one.

    None of TensorFlow, whose environment is the user's and has no pins.
    """
    environment = environment_of(engine)
    if environment is None:
        return {}
    lines = environment.constraints.read_text(encoding="utf-8").splitlines()
    pins = {name: version for name, equals, version in (line.partition("==") for line in lines) if equals}
    has = {name: MINOR.match(packages.get(name, "")) for name in software_of(engine).titles}
    return {name: pins[name] for name, minor in has.items() if minor and name in pins and older(pins[name], minor[0])}


def newer_words(engine: Engine, packages: Mapping[str, str]) -> str:
    """`torch 2.14.0 is newer than 2.13.0, with which engine 'torch' was tested`; empty where nothing is newer."""
    newer = newer_than_tested(engine, packages)
    told = ", ".join(f"{name} {packages[name]} is newer than {pinned}" for name, pinned in newer.items())
    return f"{told}, with which engine '{engine.name}' was tested" if told else ""


def environments() -> dict[str, Environment]:
    """What the engines of the house need that may have an interpreter of their own, by name."""
    every = {name: environment_of(engine) for name, engine in registered("harness.engines", "ENGINE").items()}
    return {name: found for name, found in every.items() if found is not None}


def with_interpreters(engines: Iterable[str]) -> set[str]:
    """The names of those that may have an interpreter of their own."""
    return {one.name for one in map(engine_of, engines) if environment_of(one) is not None}


def _lacks(environment: Environment, here: Mapping[str, str]) -> bool:
    return any(name not in here or older(here[name], least) for name, least in environment.needs.items())


def _given(sweep: Sweep, engine: Engine, among: Collection[str]) -> str | None:
    """The interpreter that the sweep names for its engine; None where it names none, or only for others `among`."""
    own = [engine.name] if environment_of(engine) is not None else []
    known = dict.fromkeys([*own, *environments(), *among])
    found: dict[str, str] = {}
    for name, text in interpreters_in(sweep.engine_python):
        _, _, path = text.partition("=")
        if not path:
            raise UsageError(f"{KEY}: given '{text}', expected NAME=PATH, such as jax=.venv-jax/bin/python")
        if name not in known:
            raise not_one_of(KEY, name, known)
        if name not in own and name not in among:
            raise UsageError(f"{KEY}: given for '{name}', and the engine is '{engine.name}'")
        if name in found:
            raise UsageError(f"{KEY}: given twice for '{name}', '{found[name]}' and '{path}', expected one")
        found[name] = path
    return found.get(engine.name)


def install_command(name: str) -> str:
    """What a person types."""
    return f"python -m harness engine install {shlex.quote(name)}"
