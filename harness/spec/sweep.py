"""A sweep: axes and settings. A TOML key and a flag of the same name mean the same thing."""

import itertools
import math
import re
import shlex
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import annotated_types
from pydantic import Field, create_model, field_validator

from harness.errors import UsageError
from harness.files import read_whole
from harness.registry import OWN_PATTERN, is_script, script_of
from harness.spec.address import split_address
from harness.spec.axes import OF_OWN_STEP, TABLE, Axes
from harness.spec.bounds import MOST_COMBINATIONS, MOST_TRIALS, check_product, check_records
from harness.spec.collective import COLLECTIVE, GRADIENTS, OF_COLLECTIVE, UNASKED
from harness.spec.entry import Asked, Spelling, closed_list
from harness.spec.pipeline import OF_PIPELINE, PIPELINE
from harness.spec.reading import Spec, read_keys
from harness.spec.settings import SETTINGS, Settings
from harness.spec.work import OwnStepCell
from harness.visible import quoted


def _asked() -> dict[str, Asked]:
    """Every key of a spec that takes a list, in the table's order, those of some strategies only behind the workers."""
    found: dict[str, Asked] = {}
    keys = list(TABLE)
    for key in sorted(keys, key=lambda key: keys.index("workers" if TABLE[key].takers else key)):
        axis = TABLE[key]
        kind = axis.value or Axes.model_fields[key].annotation
        found |= axis.kinds or {
            key: Asked(kind=kind, values=axis.asked, help=axis.help, spelling=axis.spelling, takers=axis.takers)
        }
    return found


def _least(key: str) -> str:
    """`, at least N` where a person would not guess the least value of a setting."""
    least = [limit.ge for limit in Settings.model_fields[key].metadata if isinstance(limit, annotated_types.Ge)]
    return "".join(f", at least {value}" for value in least if value not in (0, 1))


class OtherWork(NamedTuple):
    """A kind of work that a spec asks for by `work`, and that is no training."""

    own: Mapping[str, Asked]
    """Keys of a spec that only it has."""
    unasked: Mapping[str, Sequence[Any]]
    """What it has of keys that are not given, where a training has something else."""
    does: str
    """What it does in place of training."""


OTHER_WORKS = {
    COLLECTIVE: OtherWork(OF_COLLECTIVE, UNASKED, "sends buffers and trains nothing"),
    PIPELINE: OtherWork(OF_PIPELINE, {}, "draws batches in one process and trains nothing"),
}
"""By the value of `work`."""
OWN_OF_WORK = {key: asked for of in OTHER_WORKS.values() for key, asked in of.own.items()}
ASKED = _asked() | OWN_OF_WORK
"""Axes of a spec, by key."""
AXES: frozenset[str] = frozenset(ASKED)
"""Keys whose value is a list."""


def closed_values(key: str) -> tuple[str, ...]:
    """The values of an axis whose type allows no others, as a flag spells them; nothing for any other key."""
    return closed_list(ASKED[key].kind) if key in ASKED else ()


HELP: dict[str, str] = {
    "name": "name of the sweep, part of the run's id",
    **{key: asked.help for key, asked in ASKED.items()},
    **{key: setting.help + _least(key) for key, setting in SETTINGS.items()},
}
"""What each key of a spec is, for its flag."""
SPELLINGS: dict[str, Spelling] = {key: of.spelling for key, of in ASKED.items() if of.spelling is not None}
"""Keys whose values have commas or units of their own."""


OF_STEP = ("step", "amount")
"""Keys of a training step of the user's own, whose cell has them."""
OF_OTHER_WORK = ("work", *OWN_OF_WORK, *OF_STEP)
"""Keys of work that is no training of a model, or that say which work it is."""
OF_SWEEPS = tuple(key for key, setting in SETTINGS.items() if setting.of_sides)
"""Keys that say how a sweep repeats its cells; they have no meaning where two sides are compared."""
NOT_OF_EXPLAIN = tuple(key for key in OF_SWEEPS if key not in ("trials", "trace", "exclude"))
"""Those of them that `explain` leaves out of a spec that sweeps use too."""
PROVING: dict[str, int] = {"trials": 1, "max_trials": 1, "windows": 5, "max_warmup": 0}
"""The settings of a run that proves cells and does not time them: enough for the whole correctness gate."""
OWN_FUNCTIONS = ("step", "check")
"""Keys whose value is a function of the user's own, or empty."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


class _Lists(Spec):
    name: Annotated[str, Field(pattern=NAME)] = "sweep"


if not TYPE_CHECKING:  # a type checker cannot know keys that a table makes; `Sweep.asked` reads them
    _Lists = create_model(
        "_Lists", __base__=_Lists, **{key: (list[of.kind], list(of.values)) for key, of in ASKED.items()}
    )


class Sweep(Settings, _Lists):
    """Every key of a spec. Lists are axes; the matrix is their product. Times are in seconds."""

    def asked(self, axis: str) -> list[Any]:
        """The values that are asked for of an axis, by its key in a spec (AXES)."""
        values: list[Any] = getattr(self, axis)
        return values

    @field_validator("listen")
    @classmethod
    def _listens_at_an_address(cls, value: str) -> str:
        if value:
            split_address("listen", value)
        return value

    @field_validator("slurm_args")
    @classmethod
    def _is_split_as_a_shell_does(cls, value: str) -> str:
        shlex.split(value)  # ValueError: No closing quotation
        return value

    @field_validator("step")
    @classmethod
    def _arguments_are_split_as_a_shell_does(cls, value: str) -> str:
        script_of(value)  # ValueError: No closing quotation
        return value


def _of_own_step(sweep: Sweep, values: dict[str, Any], source: str) -> Sweep:
    """`sweep`; of a training step of the user's own it has no axes but those of its process."""
    if not sweep.step:
        for key in OF_STEP[1:]:
            if key in values:
                raise UsageError(f"{source}: {key}: belongs to step, a step of your own; for a model give batch_size")
        return sweep
    for key in values:
        if key in AXES - OF_OWN_STEP:
            raise UsageError(
                f"{source}: {key}: a step of your own decides that itself; leave it out, or give model, not step"
            )
    if sweep.check:
        raise UsageError(
            f"{source}: check: is given a model's state, and what a step of your own trains is not known; "
            "let the step have a check()"
        )
    return sweep.model_copy(update={axis: [] for axis in AXES - OF_OWN_STEP})


def _expect_one_own_step(sweep: Sweep, source: str) -> None:
    """UsageError where a step of the user's own is asked for at several values of what its cell does not have."""
    for key in sorted(OF_OWN_STEP - OwnStepCell.model_fields.keys()) if sweep.step else ():
        if len(values := sweep.asked(key)) > 1:
            raise UsageError(
                f"{source}: {key}: given {quoted(values)}, expected one value: a step of your own is one cell"
            )


def _axes_of(work: str) -> frozenset[str]:
    """The keys of a spec whose values make the cells of a kind of work that is no training."""
    of_table = (axis.kinds or (key,) for key, axis in TABLE.items() if work in axis.works)
    return frozenset(itertools.chain(*of_table)).union(OTHER_WORKS[work].own)


def _of_work(sweep: Sweep, values: dict[str, Any], source: str) -> Sweep:
    """`sweep`; of work that is no training it has the axes of that work's cells alone."""
    for name, of in OTHER_WORKS.items():
        for key in of.own:
            if key in values and sweep.work != name:
                raise UsageError(f"{source}: {key}: belongs to {name}s: give work, too (--work {name})")
    other = OTHER_WORKS.get(sweep.work)
    if other is None:
        return sweep
    gradients = {GRADIENTS} if sweep.work == COLLECTIVE and values.get(GRADIENTS) else set()
    axes = _axes_of(sweep.work) | gradients
    for key in values:
        if key in AXES - axes or key in (*OF_STEP, "check"):
            raise UsageError(
                f"{source}: {key}: belongs to a training, and work is '{sweep.work}', which {other.does}; "
                "leave one of them out"
            )
    unasked = {key: list(of) for key, of in other.unasked.items() if not values.get(key)}
    if "workers" in values and "replicas" in unasked:
        unasked["replicas"] = [1]
    if gradients:  # sizes beside them are asked for
        unasked.pop("size", None)
    return sweep.model_copy(update={axis: [] for axis in AXES - axes} | unasked)


DEFAULT_SPEC = Path(__file__).parent / "default.toml"
LARGEST_SPEC = 2**20
"""Bytes of a spec; the largest in benchmarks/ has two thousand."""
MOST_DOTS = 48
"""Within a key. Reading one takes as long as their number squared."""
_KEY = re.compile(r"[ \t]*([A-Za-z0-9_-]+)[ \t]*=")
_QUOTED = re.compile(r""""(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?""")
_LONG_KEY = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_DOTS + 1}}}")


def sweep_from(values: Mapping[str, Any], source: str = "spec", unused: Collection[str] = ()) -> Sweep:
    """Validate `values` into a Sweep; raise UsageError with one line that names the key.

    Keys that are `unused` by the caller are validated like all others and then left out: a spec that one verb refuses
    is a wrong one for every verb.
    """
    sweep = _whole(dict(values), source)
    used = {key: value for key, value in values.items() if key not in unused}
    return sweep if len(used) == len(values) else _whole(used, source)


def _whole(values: dict[str, Any], source: str) -> Sweep:
    """`values` as a Sweep whose keys go together."""
    sweep = read_keys(Sweep, values, source)
    for key in OWN_FUNCTIONS:
        if (path := getattr(sweep, key)) and not (
            re.fullmatch(OWN_PATTERN, path) or (key == "step" and is_script(path))
        ):
            script = ", or a script's path, which ends with .py, and its arguments" if key == "step" else ""
            raise UsageError(f"{source}: {key}: given {quoted(path)}, expected package.module:function{script}")
    if sweep.half_width and sweep.max_trials < sweep.trials:
        raise UsageError(f"{source}: max_trials: given {sweep.max_trials}, expected at least trials ({sweep.trials})")
    if sweep.window >= sweep.timeout:
        raise UsageError(
            f"{source}: window: given {sweep.window:g} s, expected less than timeout ({sweep.timeout:g} s), after "
            "which a trial without a sign of life is ended"
        )
    if sweep.time and sweep.half_width:
        raise UsageError(f"{source}: time: a sweep with half_width is as long as its spread asks for; leave one out")
    sweep = _of_own_step(_of_work(sweep, values, source), values, source)
    counts = _counts(sweep)
    check_product(source, counts, "combinations", MOST_COMBINATIONS)
    check_product(source, {**counts, "trials": sweep.trials}, "trials", MOST_TRIALS)
    _expect_one_own_step(sweep, source)
    most = sweep.max_trials if sweep.half_width else sweep.trials
    check_records(source, math.prod(counts.values()) * most, sweep.max_warmup + sweep.windows)
    return sweep


def _counts(sweep: Sweep) -> dict[str, int]:
    """How many values each axis of the product has, 1 where the strategy chooses. An axis of several keys has those
    of all, and their names."""
    axes = [*(axis.kinds or (key,) for key, axis in TABLE.items()), *((key,) for key in OWN_OF_WORK)]
    given = [[key for key in keys if sweep.asked(key)] for keys in axes]
    return {" and ".join(keys): sum(len(sweep.asked(key)) for key in keys) for keys in given if keys}


def load_sweep(path: Path) -> dict[str, Any]:
    """The raw keys of a TOML spec, for `sweep_from` (flags are laid over them first).

    UsageError, of one line, where there is no such file, or it cannot be read.
    """
    try:
        text = read_whole(path, LARGEST_SPEC).decode("utf-8-sig")  # editors on Windows begin with a mark
    except FileNotFoundError:
        raise UsageError(f"SPEC: no file at '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"SPEC: cannot read '{path}': {reason}") from None
    plain = _QUOTED.sub("quoted", text)
    if long := _LONG_KEY.search(plain):
        line = plain.count("\n", 0, long.start()) + 1
        raise UsageError(f"SPEC: '{path}': line {line}: a key has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if "overwrite" in str(error) and (twice := _key_given_twice(text, str(error))):
            raise UsageError(f"SPEC: '{path}': {twice}: is given twice; keep one of them") from None
        raise UsageError(f"SPEC: '{path}' is not valid TOML: {error}") from None
    except ValueError:  # of a whole number that Python does not read: it has too many digits
        raise UsageError(f"SPEC: '{path}': {_longest_number_key(text)}: has too many digits") from None
    except RecursionError:
        raise UsageError(f"SPEC: '{path}': {_deepest_key(text)}: is nested too deeply") from None


def raw_keys(spec: Path | None, keys: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The raw keys of `spec` with `keys` laid over them, and what to call the source in an error.

    Without either those of the default sweep. UsageError when the spec cannot be read.
    """
    if spec is None and not keys:
        spec = DEFAULT_SPEC
    return {**({} if spec is None else load_sweep(spec)), **keys}, "sweep" if spec is None else str(spec)


def _key_given_twice(text: str, error: str) -> str | None:
    """The key in the line at which the spec's reader found, by its `error`, that it has a value already."""
    lines, at = text.splitlines(), re.search(r"at line (\d+)", error)
    # at the end of the document it says that instead
    line = lines[int(at[1]) - 1] if at else next(filter(str.strip, reversed(lines)), "")
    key = _KEY.match(line)
    return None if key is None else key[1]


def _deepest_key(text: str) -> str:
    """The key of a spec whose value opens the most brackets."""
    key, depth, found, most = "spec", 0, "spec", 0
    for line in text.splitlines():
        if depth <= 0 and "=" in line:
            key = line.partition("=")[0].strip()
        for letter in line:
            depth += (letter in "[{") - (letter in "]}")
            if depth > most:
                found, most = key, depth
    return found


def _longest_number_key(text: str) -> str:
    """The key of a spec at the first number of more digits than Python reads."""
    most = sys.get_int_max_str_digits()
    places = (found.start() for found in re.finditer(r"[0-9_]+", text) if len(found[0].replace("_", "")) > most)
    keys = re.findall(r"^\s*([^\s=#]+)\s*=", text[: next(places, 0)], re.MULTILINE)
    return keys[-1] if keys else "spec"
