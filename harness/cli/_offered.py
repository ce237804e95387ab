"""Flags and arguments of verbs as typer takes them. Imports little: every verb needs it."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from harness.cli._completion import RUN_HELP, run_ids, runs_of

RunName = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=run_ids)]
ResultsFolder = Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RankUnproved = Annotated[
    bool, typer.Option("--rank-unproved", help="Take cells that could not be proved into the ranking, marked.")
]
"""The flag of the verbs that rank."""
FOLDER = Path("results")
"""The folder of runs where none is named."""
Offered = inspect.Parameter
"""A flag or an argument of a verb whose `command` takes `**given`: what its module lists as `FLAGS`."""


def option(name: str, kind: Any, text: str, default: Any = None, flag: str = "", **more: Any) -> Offered:
    """The flag `--name`, unless `flag` spells it; `text` is its help, and `more` is for typer.Option."""
    declared = typer.Option(flag or f"--{name.replace('_', '-')}", help=text, **more)
    return Offered(name, Offered.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


def argument(name: str, kind: Any, text: str, metavar: str, default: Any = None, **more: Any) -> Offered:
    """A word without a flag; `more` is for typer.Argument."""
    declared = typer.Argument(metavar=metavar, help=text, **more)
    return Offered(name, Offered.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


NAMES_MARK = "{names}"


def with_names(names: Callable[[str], str]) -> type[TyperCommand]:
    """A command in whose help NAMES_MARK is what `names` says of a flag, by the flag's name.

    They are looked up only where flags are described: that imports every entry of a registry.
    """

    class WithNames(TyperCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._look_up()
            super().format_help(ctx, formatter)

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            self._look_up()
            return super().shell_complete(ctx, incomplete)

        def _look_up(self) -> None:
            for flag in self.params:
                text = getattr(flag, "help", None) or ""
                if NAMES_MARK in text:
                    setattr(flag, "help", text.replace(NAMES_MARK, names(flag.name or "")))  # noqa: B010  of typer's two kinds

    return WithNames


RESULTS = Offered("results", Offered.KEYWORD_ONLY, default=FOLDER, annotation=ResultsFolder)


def resume_option(text: str, kind: str) -> Offered:
    """`--resume` of a run of this kind."""
    return option("resume", str | None, text, metavar="RUN", autocompletion=runs_of(kind))
