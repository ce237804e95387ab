"""What of a spec its engines and their strategies take: of a key that they do not they know the default alone."""

from collections.abc import Callable, Sequence

from harness.errors import UsageError
from harness.spec.axes import CELL_KEYS, TABLE
from harness.spec.catalogue import Catalogue, StrategyTraits
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
    """UsageError for what is asked for of a key that none of a sweep's engines could take, or no strategy of theirs: of
    what each is asked for."""
    sweep = parts[0][0]
    asked = [(of, of.strategies[name]) for own, of in parts for name in _strategies(own, of) if name in of.strategies]
    for key, its in ASKED.items():
        if not (given := sweep.asked(key)) or given == list(its.values):
            continue
        told = f"{key}: given {text_of(key, given)}, but"
        able = [of for _, of in parts if of.takes(sweep.work, CELL_KEYS.get(key, key))]
        if not able:
            engines = [engine for own, _ in parts for engine in own.asked("engine")]
            raise UsageError(f"{told} {whose(engines)} takes {_alone(sweep.work, key)}; leave it out")
        if its.takers is not None and not any(of in able and its.takers.are(traits) for of, traits in asked):
            names = " or ".join(dict.fromkeys(name for of in able for name in strategies_that(of, its.takers.are)))
            raise UsageError(f"{told} no strategy of this sweep {its.takers.words}{names and f': {names}'}")


def _strategies(sweep: Sweep, catalogue: Catalogue) -> Sequence[str]:
    """Those of an engine that a sweep asks for; of collectives all that have some, where it names none."""
    asked = with_names_of(sweep, catalogue).asked("strategy")
    return asked or strategies_that(catalogue, lambda traits: traits.collectives)


def untaken(catalogue: Catalogue, at: DistributedCell, engine: str) -> LeftOut | None:
    """Why trials of the engine would refuse a combination: it is away from the default of a key that they do not take;
    None where they take all."""
    for key, field in type(at).model_fields.items():
        if not catalogue.takes(at.tag, key) and (value := getattr(at, key, field.default)) != field.default:
            return LeftOut(f"{key} {text_of(key, value)}", f"engine '{engine}' takes {_alone(at.tag, key)}")
    traits = catalogue.devices.get(at.device)
    for key, why in traits.refuses.items() if traits is not None else ():
        if (value := at.get(key)) not in (None, type(at).model_fields[key].default):
            return LeftOut(f"{at.device}, {key} {text_of(key, value)}", why)
    return None


def _alone(work: str, key: str) -> str:
    """What is taken of a key by those who know its default alone."""
    field = CELL_KINDS[work].model_fields.get(key)
    return "none" if field is None else f"{text_of(key, field.default)} alone"
