"""A sweep of several engines: what each is asked for, and one matrix of all."""

import itertools
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.spec.axes import TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.collective import COLLECTIVE
from harness.spec.exclusions import WHY
from harness.spec.expand import Matrix, expand, ordered
from harness.spec.inputs import LeftOut, NothingLeft
from harness.spec.names import must_be_known, own_of
from harness.spec.pipeline import PIPELINE
from harness.spec.sweep import Sweep

DEVICE = "device"


def only_engine_of(sweep: Sweep) -> str:
    """The only engine of a spec; UsageError where it has several."""
    asked = sweep.asked("engine")
    if len(asked) != 1:
        raise UsageError(f"engine: given {', '.join(asked)}, expected one: only a sweep has several")
    return str(asked[0])


def each_engine(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> list[tuple[Sweep, Catalogue]]:
    """What of `sweep` each of its engines is asked for: of names those that it has, and its own where it has none.

    An engine without any of the devices, or without collectives where these are measured, is asked for nothing
    (`lacking`). Names beside the registered ones, such as a user's own model, each is asked for. UsageError for a name
    that none of them has.
    """
    if len(catalogues) == 1:
        return [(sweep, catalogue) for catalogue in catalogues.values()]
    if sweep.step or sweep.work == PIPELINE:
        raise UsageError(
            f"engine: given {', '.join(catalogues)}, expected one: several train the same models, or do collectives"
        )
    keys = {key: axis.choices for key, axis in TABLE.items() if axis.choices and key in sweep.model_fields_set}
    names = {key: {e: [*getattr(of, choices)] for e, of in catalogues.items()} for key, choices in keys.items()}
    for key, of in names.items():
        known = list(dict.fromkeys(itertools.chain(*of.values())))
        beside = [name for catalogue in catalogues.values() for name in catalogue.beside(key)]
        must_be_known(key, sweep.asked(key), known, *own_of(key, catalogues.values()), [*catalogues], beside)
    found = []
    for engine, catalogue in catalogues.items():
        others = {key: set().union(*(of[other] for other in of if other != engine)) for key, of in names.items()}
        has = {
            key: [value for value in sweep.asked(key) if value in of[engine] or value not in others[key]]
            for key, of in names.items()
        }
        lacks = {key for key, values in has.items() if sweep.asked(key) and not values}
        if DEVICE in lacks or not _sends(sweep, catalogue):
            continue
        given = {key: getattr(sweep, key) for key in sweep.model_fields_set - lacks}
        own = {**given, **{key: values for key, values in has.items() if values}, "engine": [engine]}
        found.append((Sweep.model_validate(own), catalogue))
    return found


def _sends(sweep: Sweep, catalogue: Catalogue) -> bool:
    """Whether an engine has collectives, where these are measured."""
    return sweep.work != COLLECTIVE or any(traits.collectives for traits in catalogue.strategies.values())


def lacking(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> list[LeftOut]:
    """Each device of `sweep` that one of several engines lacks, since on another it would answer another question, and
    each engine without collectives where these are measured."""
    if len(catalogues) == 1:
        return []
    silent = [
        LeftOut(f"engine {engine}", "it has no collectives by themselves")
        for engine, of in catalogues.items()
        if not _sends(sweep, of)
    ]
    return silent + [
        LeftOut(f"{engine} on {device}", f"engine '{engine}' runs on {', '.join(of.devices)} only")
        for engine, of in catalogues.items()
        for device in sweep.asked(DEVICE)
        if device not in of.devices
    ]


def matrix_of(parts: Sequence[tuple[Sweep, Catalogue]], lacks: Sequence[LeftOut] = ()) -> Matrix:
    """One matrix of what each engine is asked for, with what they are `lacking`.

    Of several an engine of which nothing is left is left out; NothingLeft where that is each.
    """
    alone = len(parts) == 1 and not lacks
    found, left_out = [], [*lacks]
    for own, catalogue in parts:
        try:
            found.append(expand(own, catalogue))
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
    here = {
        name: traits
        for name, traits in catalogue.strategies.items()
        if traits.devices is None or {*traits.devices} & {*sweep.asked(DEVICE)}
    }
    have = {
        "workers": [name for name, traits in here.items() if traits.multi_worker],
        "replicas": [name for name, traits in here.items() if traits.many_replicas_a_process],
    }
    for key, able in have.items():
        if min(sweep.asked(key)) > 1 and able:
            return "" if {*able} & {*sweep.asked("strategy")} else f"; several {key}: --strategy {' or '.join(able)}"
    return ""


def merged(parts: Sequence[Matrix]) -> Matrix:
    """One matrix of the engines' own."""
    if len(parts) == 1:
        return parts[0]
    left_out = dict.fromkeys(item for part in parts for item in part.left_out)
    added = frozenset().union(*(part.added_base for part in parts))
    return Matrix(ordered(cell for part in parts for cell in part.cells), tuple(left_out), added)
