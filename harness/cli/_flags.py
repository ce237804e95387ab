"""Flags that are keys of a spec: one flag a key, so that the two spellings cannot drift apart."""

import inspect
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli._completion import values_of
from harness.errors import UsageError
from harness.spec.sweep import AXES, HELP, Sweep, load_sweep
from harness.spec.text import text_of, value_of


def option(name: str, default: Any, kind: Any, *declared: str, **info: Any) -> inspect.Parameter:
    """One keyword-only parameter that typer reads as a flag."""
    annotation = Annotated[kind, typer.Option(*declared, **info)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def key_flags(without: Collection[str] = ()) -> list[inspect.Parameter]:
    """A flag for every key of a spec but those named."""
    parameters = []
    for key in Sweep.model_fields:
        if key not in without:
            if Sweep.model_fields[key].annotation is bool:
                name = key.replace("_", "-")
                both = f"--{name}/--no-{name}" if Sweep.model_fields[key].default else f"--{name}"
                parameters.append(option(key, None, bool | None, both, help=HELP[key]))
                continue
            text = HELP[key] + (" (comma-separated)" if key in AXES else "")
            metavar = "A,B,…" if key in AXES else "VALUE"
            flag, complete = f"--{key.replace('_', '-')}", values_of(key)
            more = {} if complete is None else {"autocompletion": complete}
            parameters.append(option(key, None, str | None, flag, help=text, metavar=metavar, **more))
    return parameters


def signed(command: Any, parameters: list[inspect.Parameter]) -> None:
    """Give `command`, which takes `**given`, the flags that typer is to offer."""
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def keys_given(given: dict[str, Any], without: Collection[str] = ()) -> dict[str, str]:
    """The flags among `given` that are keys of a spec and were used; those in `without` are a verb's own."""
    keys = Sweep.model_fields.keys() - set(without)
    return {
        key: text_of(key, value) if isinstance(value, bool) else value
        for key, value in given.items()
        if key in keys and value is not None
    }


def refuse_beside_resume(given: dict[str, Any], without: Collection[str]) -> None:
    """UsageError for a flag beside --resume, which goes on as was planned; but for those in `without`."""
    for key, value in given.items():
        if key not in without and value not in (None, False, []):
            raise UsageError(f"--resume: goes on with a run as it was planned; it takes no --{key.replace('_', '-')}")


def read_values(spec: Path | None, flags: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The keys of SPEC with the flags laid over them, and what to call the source in an error."""
    if spec is None and not flags:
        spec = DEFAULT_SPEC
    values: dict[str, Any] = load_sweep(spec) if spec is not None else {}
    values.update({key: value_of(key, text) for key, text in flags.items()})
    return values, "sweep" if spec is None else str(spec) if not flags else f"{spec} and flags"


DEFAULT_SPEC = Path(__file__).parent.parent / "spec" / "default.toml"
