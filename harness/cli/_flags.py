"""Flags that a table makes: one flag a key of a spec, so that the two spellings cannot drift apart."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from harness.cli._completion import values_of
from harness.cli._options import Flag, option
from harness.errors import UsageError
from harness.spec.sweep import AXES, HELP, Sweep, raw_keys
from harness.spec.text import text_of, value_from

ON_RESUME = ("resume", "results", "quiet", "json")
"""Flags that go with --resume of every kind of run."""
UNUSED: tuple[Any, ...] = (None, [], ())
"""What a flag has that nobody gave, by whether it may be given again and by the version of the option parser."""


def key_flags(without: Collection[str] = ()) -> list[Flag]:
    """A flag for every key of a spec but those named."""
    return [_key_flag(key) for key in Sweep.model_fields if key not in without]


def _key_flag(key: str) -> Flag:
    if Sweep.model_fields[key].annotation is bool:
        name = key.replace("_", "-")
        both = f"--{name}/--no-{name}" if Sweep.model_fields[key].default else ""
        return option(key, bool | None, HELP[key], flag=both)
    if key in AXES:
        text = f"{HELP[key]} (comma-separated)"
        return option(key, list[str] | None, text, metavar="A,B,…", autocompletion=values_of(key))
    return option(key, str | None, HELP[key], metavar="VALUE", autocompletion=values_of(key))


def keys_given(given: dict[str, Any], without: Collection[str] = ()) -> dict[str, str]:
    """The flags among `given` that are keys of a spec and were used; those in `without` are a verb's own.

    An axis that is given several times has the values of all. UsageError where they are then none of the axis.
    """
    keys = Sweep.model_fields.keys() - set(without)
    return {key: _text(key, value) for key, value in given.items() if key in keys and value not in UNUSED}


def _text(key: str, given: Any) -> str:
    """What a flag was given, as one text of its key."""
    if isinstance(given, list):
        return (
            given[0] if len(given) == 1 else text_of(key, [value for text in given for value in value_from(key, text)])
        )
    return text_of(key, given)


def run_to_resume(given: dict[str, Any], *beside: str) -> Path | None:
    """The folder of the run that --resume names; None without it.

    UsageError for a flag beside it, which goes on as was planned; but for those that go with every kind and `beside`.
    """
    if given["resume"] is None:
        return None
    for key, value in given.items():
        unused = value in UNUSED or (value is False and key not in Sweep.model_fields)  # --no-isolate is False and used
        if key not in (*ON_RESUME, *beside) and not unused:
            named = "SPEC" if key.startswith("spec") else f"--{key.replace('_', '-')}"
            raise UsageError(f"--resume: goes on with a run as it was planned; it takes no {named}")
    from harness.record.reading import resolve_run

    return resolve_run(given["resume"], given["results"])


def read_values(spec: Path | None, flags: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The keys of SPEC with the flags laid over them, and what to call the source in an error."""
    values, source = raw_keys(spec, {key: value_from(key, text) for key, text in flags.items()})
    return values, f"{source} and flags" if spec is not None and flags else source
