"""What of a spec its engines and their strategies take: of a key that they do not they know the default alone."""

from collections.abc import Callable, Sequence

from harness.errors import UsageError
from harness.spec.axes import CELL_KEYS, TABLE
from harness.spec.catalogue import Catalogue, StrategyTraits
from harness.spec.entry import Asked
from harness.spec.inputs import LeftOut
from harness.spec.names import whose
from harness.spec.sweep import ASKED, Sweep
from harness.spec.text import text_of
from harness.spec.work import CELL_KINDS, DistributedCell


def with_names_of(sweep: Sweep, catalogue: Catalogue) -> Sweep:
    """Where nobody asked for names and an engine lacks the defaults: as many of its own, its first."""
    own: dict[str, list[str]] = {}
    for key in (key for key, axis in TABLE.items() if axis.choices is not None and key not in sweep.model_fields_set):
        names, asked = list(getattr(catalogue, TABLE[key].choices or "")), sweep.asked(key)
        if names and not {*asked} <= {*names}:
            own[key] = names[: len(asked)]
    return sweep.model_copy(update=own)


def strategies_that(catalogue: Catalogue, can: Callable[[StrategyTraits], bool]) -> tuple[str, ...]:
    """The strategies whose traits `can` says yes to."""
    return tuple(name for name, traits in catalogue.strategies.items() if can(traits))


def must_be_taken(parts: Sequence[tuple[Sweep, Catalogue]]) -> None:
    """UsageError for all that is asked for of keys that none of a sweep's engines could take, or no strategy of theirs:
    of what each is asked for."""
    sweep, told = parts[0][0], keys_untaken(parts)
    asked = [(of, of.strategies[name]) for own, of in parts for name in _strategies(own, of) if name in of.strategies]
    for key, its in _given(sweep):
        able = _able(key, parts)
        if able and its.takers is not None and not any(of in able and its.takers.are(traits) for of, traits in asked):
            names = " or ".join(dict.fromkeys(name for of in able for name in strategies_that(of, its.takers.are)))
            told.append(f"{_so_far(sweep, key)} no strategy of this sweep {its.takers.words}{names and f': {names}'}")
    if told:
        raise UsageError("; ".join(told))


def keys_untaken(parts: Sequence[tuple[Sweep, Catalogue]]) -> list[str]:
    """What is wrong with what is asked for of each key that none of a sweep's engines could take."""
    sweep = parts[0][0]
    who = whose([engine for own, _ in parts for engine in own.asked("engine")])
    none = [key for key, _ in _given(sweep) if not _able(key, parts)]
    return [f"{_so_far(sweep, key)} {who} takes {_alone(sweep.work, key)}; leave it out" for key in none]


def _given(sweep: Sweep) -> list[tuple[str, Asked]]:
    """The keys of which more is asked for than where nobody says."""
    return [(key, its) for key, its in ASKED.items() if sweep.asked(key) not in ([], list(its.values))]


def _able(key: str, parts: Sequence[tuple[Sweep, Catalogue]]) -> list[Catalogue]:
    return [of for sweep, of in parts if of.takes(sweep.work, CELL_KEYS.get(key, key))]


def _so_far(sweep: Sweep, key: str) -> str:
    return f"{key}: given {text_of(key, sweep.asked(key))}, but"


def _strategies(sweep: Sweep, catalogue: Catalogue) -> Sequence[str]:
    """Those of an engine that a sweep asks for; of collectives all that have some, where it names none."""
    asked = with_names_of(sweep, catalogue).asked("strategy")
    return asked or strategies_that(catalogue, lambda traits: traits.collectives)


def untaken(catalogue: Catalogue, at: DistributedCell, engine: str) -> list[LeftOut]:
    """Why trials of the engine would refuse a combination, for each key that it is away from the default of and that
    they do not take; nothing where they take all."""
    fields = type(at).model_fields
    values = {key: getattr(at, key, field.default) for key, field in fields.items()}
    away = [key for key, field in fields.items() if values[key] != field.default]
    left_out = [
        LeftOut(f"{key} {text_of(key, values[key])}", f"engine '{engine}' takes {_alone(at.tag, key)}")
        for key in away
        if not catalogue.takes(at.tag, key)
    ]
    traits = catalogue.devices.get(at.device)
    refused = {key: why for key, why in traits.refuses.items() if key in away} if traits is not None else {}
    return left_out + [LeftOut(f"{at.device}, {key} {text_of(key, values[key])}", why) for key, why in refused.items()]


def _alone(work: str, key: str) -> str:
    """What is taken of a key by those who know its default alone."""
    field = CELL_KINDS[work].model_fields.get(key)
    return "none" if field is None else f"{text_of(key, field.default)} alone"
