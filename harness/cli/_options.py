"""Flags and arguments of verbs as typer takes them. Imports little: every verb needs it."""

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from harness.cli._completion import RUN_HELP, run_ids, runs_of
from harness.errors import UsageError
from harness.visible import quoted

RunName = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=run_ids)]
ResultsFolder = Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RankUnproved = Annotated[
    bool, typer.Option("--rank-unproved", help="Take cells that could not be proved into the ranking, marked.")
]
"""The flag of the verbs that rank."""
FOLDER = Path("results")
"""The folder of runs where none is named."""
Flag = inspect.Parameter
"""A flag or an argument of a verb whose `command` takes `**given`: what its module lists as `FLAGS`."""


def option(name: str, kind: Any, text: str, default: Any = None, flag: str = "", **more: Any) -> Flag:
    """The flag `--name`, unless `flag` spells it; `text` is its help, and `more` is for typer.Option."""
    declared = typer.Option(flag or f"--{name.replace('_', '-')}", help=text, **more)
    return Flag(name, Flag.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


def argument(name: str, kind: Any, text: str, metavar: str, default: Any = None, **more: Any) -> Flag:
    """A word without a flag; `more` is for typer.Argument."""
    declared = typer.Argument(metavar=metavar, help=text, **more)
    return Flag(name, Flag.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


class Verb(TyperCommand):
    """A verb whose flags of one value take one: given two that differ, the option parser would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """UsageError, which names the flag, where one of one value is given two, or where nothing stands for one."""
        given = self._all_given(ctx, list(args))
        rest: list[str] = super().parse_args(ctx, args)  # which leaves for --help
        for flag in self.params:
            values = list(dict.fromkeys(given.get(flag.name or "", ())))
            if len(values) > 1 and not getattr(flag, "multiple", False):
                raise _given_two(flag, values)
            if "" in values and flag.name not in _keys():
                raise _given_nothing(flag)
        return rest

    def _all_given(self, ctx: Any, args: list[str]) -> dict[str, list[Any]]:
        """Every value of every flag of `args` and of the words without one, by name."""
        parser = type(self.make_parser(ctx))(ctx)
        add = parser.add_option

        def add_for_all(action: str = "store", **how: Any) -> None:
            add(action=action.replace("store", "append"), **how)

        setattr(parser, "add_option", add_for_all)  # noqa: B010  a flag says itself how it is parsed, through this
        for flag in self.get_params(ctx):
            flag.add_to_parser(parser, ctx)
        given = parser.parse_args(args)[0].items()
        return {name: values if isinstance(values, list) else [values] for name, values in given}


def _keys() -> Collection[str]:
    """Flags that are keys of a spec, which say themselves what an empty text is.

    Of any other it is a shell's variable that is not set.
    """
    from harness.spec.faults import Faults
    from harness.spec.sweep import Sweep

    return Sweep.model_fields.keys() | Faults.model_fields.keys()


def _given_two(flag: Any, values: list[Any]) -> UsageError:
    """That of a flag which has one value, or of which `--flag` and `--no-flag` are given."""
    name = max(flag.opts, key=len)
    if flag.secondary_opts:
        return UsageError(f"{name}: given beside {flag.secondary_opts[0]}; leave one of them out")
    return UsageError(f"{name}: given {' and '.join(map(quoted, values))}, expected one value")


def _given_nothing(flag: Any) -> UsageError:
    if flag.param_type_name == "argument":
        return UsageError(f"{(flag.metavar or flag.name).strip('[]')}: given '', expected a name or a path")
    default = "" if flag.required else "; leave the flag out for its default"
    return UsageError(f"{flag.opts[0]}: given '', expected a value{default}")


NAMES_MARK = "{names}"


def with_names(names: Callable[[str], str]) -> type[Verb]:
    """A verb in whose help NAMES_MARK is what `names` says of a flag, by the flag's name.

    They are looked up only where flags are described: that imports every entry of a registry.
    """

    class WithNames(Verb):
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


RESULTS = Flag("results", Flag.KEYWORD_ONLY, default=FOLDER, annotation=ResultsFolder)
LIMITS_FIRST = option(
    "limits", bool, "First measure again what this machine can do at most, which the report has.", False
)


def resume_option(text: str, kind: str) -> Flag:
    """`--resume` of a run of this kind."""
    return option("resume", str | None, text, metavar="RUN", autocompletion=runs_of(kind))
