"""A sweep of several engines: what each is asked for, and one matrix of all."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.errors import UsageError
from harness.spec import calls
from harness.spec.axes import ENGINE, TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.collective import COLLECTIVE
from harness.spec.entry import Registry
from harness.spec.exclusions import WHY
from harness.spec.expand import Matrix, expand, ordered
from harness.spec.inputs import LeftOut, NothingLeft
from harness.spec.names import must_be_known, own_of
from harness.spec.pipeline import PIPELINE
from harness.spec.settings import SETTINGS
from harness.spec.spelling import SPELT, spelt
from harness.spec.sweep import Sweep
from harness.spec.taken import keys_untaken, must_be_taken, with_names_of
from harness.spec.text import text_of
from harness.spec.work import Cell

DEVICE = "device"
_BETWEEN_PYTHONS = re.compile(r",(?=[\w.-]+=)")
"""What parts the interpreters of several engines; a path may have commas."""
OF_TRAININGS = tuple(key for key, axis in TABLE.items() if axis.choices and axis.apart)
"""Keys of which no value stands in for another where models are trained: device, model, data and optimizer."""


def engine_for(cell: Cell, sweep: Sweep) -> str:
    """The engine of a cell. A step of a user's own, and a run from when it was a setting, has it in its spec."""
    own, asked = cell.get("engine"), sweep.asked("engine")
    return str(asked[0] if own in (None, ENGINE) and len(asked) == 1 else own)


def interpreters_in(engine_python: str) -> list[tuple[str, str]]:
    """The interpreters given for engines, each by the engine's name as `NAME=PATH`."""
    return [(one.partition("=")[0], one) for one in _BETWEEN_PYTHONS.split(engine_python) if one]


def interpreters_for(engine: str, sweep: Sweep) -> str:
    """What of `engine_python` is for one of a sweep's engines. What a user's own is called nobody knows here: it is
    given all that is not for the others."""
    others = {*sweep.asked("engine")} - {engine}
    own = ":" in engine
    given = interpreters_in(sweep.engine_python)
    return ",".join(one for name, one in given if (name not in others if own else name == engine))


def only_engine_of(sweep: Sweep) -> str:
    """The only engine of a spec; UsageError where it has several."""
    asked = sweep.asked("engine")
    if len(asked) != 1:
        raise UsageError(f"engine: given {', '.join(asked)}, expected one: only a sweep has several")
    return str(asked[0])


def each_engine(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> list[tuple[Sweep, Catalogue]]:
    """What of `sweep` each of its engines is asked for: of names those that it has, and its own where it has none.

    An engine without any of the devices, or of the models, data or optimizers of trainings, or without collectives
    where these are measured, or that refuses a setting, is asked for nothing (`lacking`). Names beside the registered
    ones, such as a user's own model, each is asked for. UsageError for a name that none of them has, for an axis that
    none of them takes, and for a setting that the only one refuses.
    """
    must_be_read(sweep, catalogues.values())
    if len(catalogues) == 1:
        alone = [(sweep, catalogue) for catalogue in catalogues.values()]
        must_be_set(sweep, catalogues.values(), [] if sweep.work == PIPELINE else keys_untaken(alone))
        return alone
    if sweep.step or sweep.work == PIPELINE:
        raise UsageError(
            f"engine: given {', '.join(catalogues)}, expected one: several train the same models, or do collectives"
        )
    for key, choices in _choices(sweep).items():
        known = list(dict.fromkeys(itertools.chain(*(getattr(of, choices) for of in catalogues.values()))))
        beside = [name for catalogue in catalogues.values() for name in catalogue.beside(key)]
        must_be_known(key, sweep.asked(key), known, *own_of(key, catalogues.values()), [*catalogues], beside)
    found: list[tuple[Sweep, Catalogue]] = []
    without: list[tuple[Sweep, Catalogue]] = []
    for engine, catalogue in catalogues.items():
        has = _has(sweep, engine, catalogues)
        lacks = {key for key, values in has.items() if sweep.asked(key) and not values}
        given = {key: getattr(sweep, key) for key in sweep.model_fields_set - lacks}
        own = {**given, **{key: values for key, values in has.items() if values}, "engine": [engine]}
        lacking_it = lacks & {*_irreplaceable(sweep)} or not _sends(sweep, catalogue) or _refused(sweep, catalogue)
        (without if lacking_it else found).append((Sweep.model_validate(own), catalogue))
    must_be_taken([*found, *without])
    return found


def _choices(sweep: Sweep) -> dict[str, Registry]:
    """Keys that are asked for by name, each with the registry of its names."""
    return {key: axis.choices for key, axis in TABLE.items() if axis.choices and key in sweep.model_fields_set}


def _has(sweep: Sweep, engine: str, catalogues: Mapping[str, Catalogue]) -> dict[str, list[str]]:
    """By key the values asked for that an engine takes, and those that no other engine takes either."""
    found = {}
    for key in _choices(sweep):
        faults = {
            value: {name: _fault(key, value, of) for name, of in catalogues.items()} for value in sweep.asked(key)
        }
        found[key] = [value for value, of in faults.items() if of[engine] is None or None not in of.values()]
    return found


def _fault(key: str, value: str, catalogue: Catalogue) -> str | None:
    """Why an engine does not take a value that is asked for by name, with or without parameters; None where it does."""
    known = [*getattr(catalogue, TABLE[key].choices or "")]
    try:
        must_be_known(key, [value], known, *own_of(key, [catalogue]), [], catalogue.beside(key))
    except UsageError:
        name = calls.name_of(value)
        return f"{key} '{name}' " + ("takes no parameters" if name in known else f"is not one of {', '.join(known)}")
    try:
        if key in SPELT:
            spelt(key, value, catalogue)
    except UsageError as error:
        return str(error)
    return None


def _irreplaceable(sweep: Sweep) -> Sequence[str]:
    """Keys of which another value than was asked for would answer another question."""
    return (DEVICE,) if sweep.work == COLLECTIVE else OF_TRAININGS


def _sends(sweep: Sweep, catalogue: Catalogue) -> bool:
    """Whether an engine has collectives, where these are measured."""
    return sweep.work != COLLECTIVE or any(traits.collectives for traits in catalogue.strategies.values())


def must_be_set(sweep: Sweep, catalogues: Iterable[Catalogue], besides: Sequence[str] = ()) -> None:
    """UsageError for the settings that trials of one of the engines would refuse; it says what is wrong `besides`."""
    refused = dict(pair for of in catalogues for pair in _refused(sweep, of))
    if refused:
        told = [f"{key}: given {text_of(key, getattr(sweep, key))}, but {why}" for key, why in refused.items()]
        raise UsageError("; ".join([*told, *besides]))


def must_be_read(sweep: Sweep, catalogues: Iterable[Catalogue]) -> None:
    """UsageError for a setting that no trial would read (`unread`)."""
    for told in unread(sweep, catalogues).values():
        raise UsageError(told)


def unread(sweep: Sweep, catalogues: Iterable[Catalogue]) -> dict[str, str]:
    """The settings of devices of which none is asked for, or no engine has it, each with what is said of it. Of a
    device by a name that nobody knows that is the first thing to say, and is said later."""
    asked, known = {*sweep.asked(DEVICE)}, {*itertools.chain(*(of.devices for of in catalogues))}
    found = {}
    for key, setting in SETTINGS.items():
        value, default = getattr(sweep, key), Sweep.model_fields[key].default
        misspelt = asked - known - {*setting.devices}
        if setting.devices and value != default and not misspelt and (asked & known).isdisjoint(setting.devices):
            readers = " or ".join(setting.devices)
            found[key] = f"{key}: given {text_of(key, value)}, but only trials on {readers} read it; leave it out"
    return found


def _refused(sweep: Sweep, catalogue: Catalogue) -> list[tuple[str, str]]:
    """The settings of a sweep that an engine's trials would refuse, each with the reason."""
    defaults = Sweep.model_fields
    return [(key, why) for key, why in catalogue.refuses.items() if getattr(sweep, key) != defaults[key].default]


def lacking(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> list[LeftOut]:
    """What was asked for that one of several engines lacks, and for which it must not take its own: each device, each
    model, data set and optimizer of trainings, collectives where these are measured, and settings that it refuses."""
    if len(catalogues) == 1:
        return []
    silent = [
        LeftOut(f"engine {engine}", "it has no collectives by themselves")
        for engine, of in catalogues.items()
        if not _sends(sweep, of)
    ]
    unplaced = [
        LeftOut(f"{engine} on {device}", f"engine '{engine}' runs on {', '.join(of.devices)} only")
        for engine, of in catalogues.items()
        for device in sweep.asked(DEVICE)
        if device not in of.devices
    ]
    unset = [
        LeftOut(f"engine {engine}, {key} {text_of(key, getattr(sweep, key))}", why)
        for engine, of in catalogues.items()
        for key, why in _refused(sweep, of)
    ]
    return [*silent, *unplaced, *unset, *_untrained(sweep, catalogues)]


def _untrained(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> Iterator[LeftOut]:
    """Each model, data set and optimizer of trainings that an engine lacks."""
    keys = [key for key in _choices(sweep) if key in _irreplaceable(sweep) and key != DEVICE]
    for engine, of in catalogues.items():
        has = _has(sweep, engine, catalogues)
        for key in keys:
            for value in (value for value in sweep.asked(key) if value not in has[key]):
                yield LeftOut(f"engine {engine}, {value}", _fault(key, value, of) or "")


def matrix_of(parts: Sequence[tuple[Sweep, Catalogue]], lacks: Sequence[LeftOut] = ()) -> Matrix:
    """One matrix of what each engine is asked for, with what they are `lacking`.

    Of several an engine of which nothing is left is left out; NothingLeft where that is each.
    """
    alone = len(parts) == 1 and not lacks
    found, left_out = [], [*lacks]
    for own, catalogue in parts:
        try:
            found.append(expand(own, catalogue, taken=not alone))
        except NothingLeft as nothing:
            if alone:
                raise NothingLeft(nothing.left_out, _instead(own, catalogue)) from None
            # what is excluded was heeded: `must_have_fitted` looks for it
            heeded = [item for item in nothing.left_out if item.reason == WHY]
            reasons = f"{nothing.reasons}{_instead(own, catalogue)}"
            left_out += [LeftOut(f"engine {only_engine_of(own)}", reasons), *heeded]
    if not found:
        raise NothingLeft(left_out)
    return found[0] if alone else merged([*found, Matrix((), tuple(left_out))])


def _instead(sweep: Sweep, catalogue: Catalogue) -> str:
    """The strategies that have the workers or the replicas asked for, where none of those that are asked for does."""
    sends = sweep.work == COLLECTIVE
    here = {
        name: traits
        for name, traits in catalogue.strategies.items()
        if traits.devices is None or {*traits.devices} & {*sweep.asked(DEVICE)}
        if traits.collectives or not sends
    }
    have = {
        "workers": [name for name, traits in here.items() if traits.multi_worker],
        "replicas": [name for name, traits in here.items() if traits.many_replicas_a_process],
    }
    asked = {*with_names_of(sweep, catalogue).asked("strategy")} or {*here}
    for key, able in have.items():
        counts = sweep.asked(key) or [1]
        several = max(counts) > 1 if sends else min(counts) > 1  # one alone trains, and has nobody to send to
        if several and able:
            return "" if {*able} & asked else f"; several {key}: --strategy {' or '.join(able)}"
    return ""


def merged(parts: Sequence[Matrix]) -> Matrix:
    """One matrix of the engines' own. What only some of them leave out has their names, since others may run it."""
    if len(parts) == 1:
        return parts[0]
    by: dict[LeftOut, list[str]] = {}
    engines = [", ".join(dict.fromkeys(str(cell.get("engine")) for cell in part.cells)) for part in parts]
    for engine, part in zip(engines, parts, strict=True):
        for item in part.left_out:
            by.setdefault(item, []).append(engine)
    everywhere = [engine for engine in engines if engine]
    left_out = [item if of == everywhere else _named(item, of) for item, of in by.items()]
    added = frozenset().union(*(part.added_base for part in parts))
    return Matrix(ordered(cell for part in parts for cell in part.cells), tuple(left_out), added)


def _named(item: LeftOut, engines: Sequence[str]) -> LeftOut:
    """With the engines that leave it out; without them where it names its own, or is looked for as it was asked for."""
    if "" in engines or item.reason == WHY:
        return item
    return LeftOut(f"{', '.join(engines)}: {item.combination}", item.reason)
