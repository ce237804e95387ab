"""`harness engine`: which engines are there and why not the rest, and an environment for one that is not."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli._options import AsJson
from harness.errors import UsageError, not_one_of
from harness.visible import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.protocol.engine import Engine
    from harness.run.process.engines import Home

VERB = "engine"
HELP = "List the frameworks that can train and say why not the rest, or install one in an environment of its own."
EXAMPLES = "Examples: harness engine list\n\nharness engine install jax"


LIST, INSTALL = "list", "install"


def command(
    action: Annotated[str, typer.Argument(metavar=f"{LIST}|{INSTALL}", help="What to do.", show_default=False)],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The engine to install.")] = None,
    json_out: AsJson = False,
) -> int:
    """Run the verb."""
    if action not in (LIST, INSTALL):
        raise not_one_of("engine", action, (LIST, INSTALL))
    if action == LIST:
        if name is not None:
            raise UsageError(f"engine list: takes no name, given '{name}'")
        return _list(json_out)
    if name is None:
        raise UsageError("engine install: expected the name of an engine; `harness engine list` has them")
    return _install(name, json_out)


def _list(json_out: bool) -> int:
    from harness.registry import registered
    from harness.run.process.engines import home_of, newer_words

    engines = registered("harness.engines", "ENGINE")
    homes = {name: home_of(engine) for name, engine in engines.items()}
    if json_out:
        print(json_text({name: _told(engines[name], home) for name, home in homes.items()}), end="")
        return 0
    width = max(map(len, homes))
    for name, home in homes.items():
        newer = "" if home.interpreter is None else newer_words(engines[name], home.interpreter.packages)
        print(f"{name:<{width}} {_line(name, home)}{newer and f'; {newer}'}")
    return 0


def _told(engine: "Engine", home: "Home") -> dict[str, Any]:
    from harness.run.process.engines import newer_than_tested

    found = home.interpreter
    return {
        "ready": found is not None,
        "python": None if found is None else found.path,
        "python_version": None if found is None else found.version,
        "packages": {} if found is None else _known(found.packages),
        "newer_than_tested": {} if found is None else newer_than_tested(engine, found.packages),
        "reason": home.why_not or None,
    }


def _line(name: str, home: "Home") -> str:
    from harness.run.process.engines import install_command

    if home.interpreter is None:
        return f"no   {home.why_not.removeprefix('is ')}; {install_command(name)}"
    versions = ", ".join(f"{package} {version}" for package, version in _known(home.interpreter.packages).items())
    where = "this interpreter" if home.ours else home.interpreter.path
    return f"yes  {versions}; Python {home.interpreter.version} ({where})"


def _known(packages: "Mapping[str, str]") -> dict[str, str]:
    return {package: version for package, version in packages.items() if version}


def _install(name: str, json_out: bool) -> int:
    from harness.run.process.installing import install

    began = time.monotonic()
    folder, interpreter = install(name)
    seconds = time.monotonic() - began
    versions = _known(interpreter.packages)
    if json_out:
        told = {"engine": name, "path": str(folder), "packages": versions, "wall_s": round(seconds, 1)}
        print(json_text(told), end="")
        return 0
    told_versions = ", ".join(f"{package} {version}" for package, version in versions.items())
    print(f"{name} is installed in {folder} ({told_versions}; {seconds:.0f} s)")
    return 0
