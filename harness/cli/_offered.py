"""Flags and arguments of verbs as typer takes them. Imports little: every verb needs it."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli._completion import runs_of

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


RESULTS = option("results", Path, "Folder that runs are kept in.", Path("results"), metavar="DIR")


def resume_option(text: str, kind: str) -> Offered:
    """`--resume` of a run of this kind."""
    return option("resume", str | None, text, metavar="RUN", autocompletion=runs_of(kind))
