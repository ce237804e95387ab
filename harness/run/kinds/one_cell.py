"""From the keys of a spec to one cell: what a side of a comparison is, before where it runs."""

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.arguments import is_number, is_text
from harness.errors import UsageError, nearest
from harness.run.request import asked_matrix
from harness.spec.collective import COLLECTIVE
from harness.spec.engines import unread
from harness.spec.reading import read_keys
from harness.spec.settings import SETTINGS
from harness.spec.sweep import AXES, Sweep, sweep_from
from harness.spec.text import ENVIRONMENT, text_of, value_from
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of
from harness.visible import names_secret, quoted, without_secrets

OF_THE_COMPARISON = {key: setting.of_sides for key, setting in SETTINGS.items() if setting.of_sides}
"""Keys of a spec that say how a sweep repeats its cells, and what says so in a comparison."""
ONE_FOR_BOTH = tuple(key for key, setting in SETTINGS.items() if setting.sets_rounds)
"""Keys that must be the same on both sides, which take their windows in the same rounds."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Given:
    """What one side was given for itself alone."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """KEY=VALUE, the keys those of a spec."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """env.NAME=VALUE, by NAME."""


def given_for(side: str, texts: Sequence[str]) -> Given:
    """Read what `--a` or `--b` was given, each `KEY=VALUE` or `env.NAME=VALUE`; UsageError names the flag."""
    flag = f"--{side}"
    given: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"{flag}: given {text!r}, expected KEY=VALUE, such as cross_device_op=auto")
        is_variable = key.startswith(ENVIRONMENT)
        name = _variable(flag, key, value) if is_variable else _key(flag, key.replace("-", "_"))
        value = value if is_variable else value.strip()
        if (earlier := given[is_variable].setdefault(name, value)) != value:
            raise UsageError(f"{flag}: {key}: given {quoted(earlier)} and {quoted(value)}, expected one value")
    refuse_what_is_of_the_comparison(given[False], flag)
    return Given(*given)


def texts_of(side: str, given: Mapping[str, Any] | None) -> list[str]:
    """`KEY=VALUE` of each key of a side, as the command line has them; UsageError for a value of another type."""
    keys = given or {}
    variables = {key: value for key, value in keys.items() if key.startswith(ENVIRONMENT)}
    for key, value in variables.items():
        if not (is_text(value) or is_number(value)):
            raise UsageError(f"{side}: {key}: given {quoted(value)}, expected a text")
    read = read_keys(Sweep, {key: value for key, value in keys.items() if key not in variables}, f"--{side}")
    return [f"{key}={variables[key] if key in variables else text_of(key, getattr(read, key))}" for key in keys]


def _key(flag: str, name: str) -> str:
    if name not in Sweep.model_fields:
        raise UsageError(f"{flag}: unknown key {name!r}{nearest(name, Sweep.model_fields)}")
    return name


def _variable(flag: str, key: str, value: str) -> str:
    name = key.removeprefix(ENVIRONMENT)
    if not _VARIABLE.fullmatch(name) or "\0" in value:
        raise UsageError(f"{flag}: given {key!r}, expected env.NAME=VALUE, such as env.TF_ENABLE_ONEDNN_OPTS=0")
    return name


def refuse_what_is_of_the_comparison(keys: Collection[str], flag: str = "") -> None:
    """UsageError for a key that says how often a cell is repeated: that is not a side's to say.

    `flag` is what the keys were given to; empty when each is a flag of its own.
    """
    for key in keys:
        if key in OF_THE_COMPARISON:
            name = f"{flag}: {key}" if flag else f"--{key.replace('_', '-')}"
            raise UsageError(f"{name}: {OF_THE_COMPARISON[key]}")


def one_cell(side: str, base: Mapping[str, Any], settings: Mapping[str, str], other: str = "") -> tuple[Sweep, Cell]:
    """The only cell of `base` with `settings` laid over it, and the sweep that it is all of.

    An axis that nobody gave takes the first of its default values. UsageError, which names the side,
    when a key is wrong, an axis was given several values, or the combination makes no sense. `other` is the side
    that shares `base`, if any.
    """
    with _naming(side):
        chosen = {**base, **{key: value_from(key, text) for key, text in settings.items()}}
    sweep = sweep_from(chosen, f"side {side}", unused=OF_THE_COMPARISON)
    with _naming(side):
        for axis in (key for key in Sweep.model_fields if key in AXES and key in chosen):
            if len(sweep.asked(axis)) > 1:
                raise UsageError(f"{axis}: given {text_of(axis, sweep.asked(axis))}, expected one value")
        several = (axis for axis in AXES if len(sweep.asked(axis)) > 1)  # no other becomes one that was given
        sweep = sweep.model_copy(update={axis: sweep.asked(axis)[:1] for axis in several})
        for key, told in unread(sweep, map(catalogue_of, sweep.asked("engine"))).items():
            if other and key not in settings:
                alone = f"--{other} {key}={text_of(key, getattr(sweep, key))}"
                raise UsageError(f"{told}, or give it to side {other} alone, where that reads it: {alone}")
        matrix = asked_matrix(sweep)
        for item in matrix.left_out:
            if any(key in item.reason for key in settings):
                raise UsageError(item.words)
        return sweep, _only(sweep, [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base])


def _only(sweep: Sweep, cells: Sequence[Cell]) -> Cell:
    """The one of `cells` that is meant: where a cut is asked for, the one that is cut and not the whole beside it."""
    meant = [cell for cell in cells if cell.get("cut")] if sweep.asked("cut") else cells
    if len(meant) != 1:
        labels = ", ".join(cell.label for cell in meant) or "what is cut off was left out"
        instead = "; leave out size or model" if sweep.work == COLLECTIVE else ""
        raise UsageError(f"that is {len(meant)} cells ({labels}), expected one{instead}")
    return meant[0]


@contextlib.contextmanager
def _naming(side: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"side {side}: {error}") from None


def check_turns(a: Sweep, b: Sweep) -> None:
    """UsageError when the sides cannot take turns because they would measure for different numbers of rounds."""
    for key in ONE_FOR_BOTH:
        mine, other = getattr(a, key), getattr(b, key)
        if mine != other:
            flag = f"--{key.replace('_', '-')}"
            raise UsageError(
                f"{key}: given {mine} for side a and {other} for side b, which take turns; give {flag} once"
            )


def differing(a: Sweep, b: Sweep) -> list[str]:
    """The keys that set two sides apart, in the order of the spec."""
    kept_out = {"name", *OF_THE_COMPARISON}
    return [key for key in Sweep.model_fields if key not in kept_out and getattr(a, key) != getattr(b, key)]


def words_of(sweep: Sweep, keys: Sequence[str]) -> list[str]:
    """`KEY=VALUE` of each key; an axis without a value, such as `num_packs`, is `KEY=default`."""
    return [f"{key}={without_secrets(text_of(key, getattr(sweep, key))) or 'default'}" for key in keys]


def variable_words(own: Mapping[str, str], other: Mapping[str, str], inherited: Mapping[str, str]) -> list[str]:
    """The environment variables that set a side apart, `NAME=VALUE` or `NAME not set`; of secrets which they are."""
    words = []
    for name in sorted({*own, *other}):
        mine, theirs = (given.get(name, inherited.get(name)) for given in (own, other))
        if mine is None or mine == theirs:
            words += [f"{name} not set"] if mine != theirs else []
        elif names_secret(name):
            which = "" if theirs is None else " to one value" if mine < theirs else " to another"
            words.append(f"{name} set{which}")
        else:
            words.append(f"{name}={mine}")
    return words
