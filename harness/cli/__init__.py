"""The command line: one file a verb, errors caught once, here."""

import contextlib
import functools
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import typer

from harness.cli._options import Flag, Verb, option
from harness.cli._streams import standard_streams
from harness.errors import HarnessError, nearest
from harness.visible import message

HELP = """Benchmark distributed training with TensorFlow: which tf.distribute strategy, how many replicas,
what batch size and which cross-device op is fastest on this machine, with proof and intervals.

Start with `harness sweep`, then `harness report latest`."""
GROUPS = {
    "Measure": ("sweep", "faults", "validate", "doctor", "worker", "engine"),
    "Decide": ("ab", "compare", "explain"),
    "Look": ("report", "show", "history", "list"),
    "Keep": ("prepare", "export", "import"),
}
"""How help groups the verbs; one of which it does not know comes last."""


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """The application: every verb found in this folder, or only the one that `arguments` names.

    A module is called as its verb (`list_runs` for `list`, since a module of that name would hide the
    builtin); one that begins with an underscore is no verb.
    """
    app = typer.Typer(
        name="harness",
        help=HELP,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)  # so that a single verb is still called by its name
    panels = {verb: panel for panel, verbs in GROUPS.items() for verb in verbs}
    order = list(panels)
    found = [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]
    modules = sorted(found, key=lambda name: [*order, name.partition("_")[0]].index(name.partition("_")[0]))
    named = [name for name in modules if arguments and arguments[0] in (name, name.partition("_")[0])]
    for name in named or modules:
        module = importlib.import_module(f"{__name__}.{name}")
        kind = getattr(module, "COMMAND", Verb)
        panel = panels.get(module.VERB, "More")
        register = app.command(
            name=module.VERB, cls=kind, help=module.HELP, epilog=module.EXAMPLES, rich_help_panel=panel
        )
        register(_verb(module))
    return app


@functools.cache
def command_line(*verb: str) -> Any:
    """What parses and runs a command line: of all verbs, or of the one given. Made once a process, being dear."""
    return typer.main.get_command(build(verb))


def _verb(module: ModuleType) -> Callable[..., int]:
    """The module's command with the signature that typer reads: its own or its `FLAGS`, and --no-color.

    A signature is all that typer has for flags that are worked out: what its own options are made with is another
    thing in each version (`type=`, then a `type_descriptor=` of a private module). `run` has heeded --no-color already:
    it is here to be listed and completed.
    """

    @functools.wraps(module.command)
    def verb(**given: Any) -> int:
        del given["no_color"]
        code: int = module.command(**given)
        return code

    own = getattr(module, "FLAGS", None) or inspect.signature(module.command).parameters.values()
    no_color = option("no_color", bool, "Without colour, as with the variable NO_COLOR.", default=False)
    flags = [*(parameter.replace(kind=Flag.KEYWORD_ONLY) for parameter in own), no_color]
    verb.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    return verb


@contextlib.contextmanager
def _colours(arguments: Sequence[str]) -> Iterator[None]:
    """NO_COLOR is set while a command line with --no-color runs, its help included. See no-color.org."""
    if "--no-color" not in arguments or os.environ.get("NO_COLOR"):
        yield
        return
    os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        del os.environ["NO_COLOR"]


UsageFault: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""What the option parser raises for a bad command line. Typer carries its own copy of click or uses
the installed one, as its version goes; the class is the base of its public BadParameter either way."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code. A traceback never reaches a user for what a user did."""
    with _colours(arguments), standard_streams():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    command = command_line(*(arguments or _completed_verb())[:1])
    given = list(arguments) or ["--help"]
    from harness.run.interrupts import Raised

    try:
        with Raised():
            code = command.main(given, prog_name="harness", standalone_mode=False)
            sys.stdout.flush()
    except HarnessError as error:
        return _fail(str(error), error.exit_code)
    except UsageFault as error:
        return _fail(_in_one_line(error, list(command.commands)), 2)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except SystemExit as error:
        # How click leaves when nobody reads the help that it prints past our stream; 1 would mean a regression.
        if isinstance(error.__context__, BrokenPipeError):
            return 0
        raise
    if code == 130:  # some versions of the option parser make this of KeyboardInterrupt, and say nothing
        return _fail("interrupted", 130)
    return code if isinstance(code, int) else 0


def _completed_verb() -> list[str]:
    """The verb of the line that a shell asks to complete, so that no other verb's module is loaded."""
    words = os.environ.get("COMP_WORDS", "").split()
    return words[1:2] if "_HARNESS_COMPLETE" in os.environ and len(words) > 2 else []


def _in_one_line(error: Exception, verbs: Sequence[str]) -> str:
    said = str(getattr(error, "message", error))
    if said.startswith("No such command"):
        given = said.split("'")[1]
        return f"no verb '{given}'; expected one of {', '.join(verbs)}{nearest(given, verbs)}"
    if said.startswith("No such option"):
        given = str(getattr(error, "option_name", ""))
        close = list(getattr(error, "possibilities", None) or [])
        return f"no flag '{given}'" + (f"; did you mean '{close[0]}'?" if close else "; see --help")
    if getattr(error, "param", None) is not None and hasattr(error, "format_message"):
        return str(error.format_message())
    return said


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"harness: {message(text)}\n")
    return code
