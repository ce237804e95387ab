"""A sweep of several engines: what each is asked for, and one matrix of all."""

import itertools
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.spec.axes import TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.expand import Matrix, must_be_known, ordered
from harness.spec.pipeline import PIPELINE
from harness.spec.sweep import Sweep


def only_engine_of(sweep: Sweep) -> str:
    """The only engine of a spec; UsageError where it has several."""
    asked = sweep.asked("engine")
    if len(asked) != 1:
        raise UsageError(f"engine: given {', '.join(asked)}, expected one: only a sweep has several")
    return str(asked[0])


def each_engine(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> list[tuple[Sweep, Catalogue]]:
    """What of `sweep` each of its engines is asked for: of names those that it has, and its own where it has none.

    Names beside the registered ones, such as a user's own model, each is asked for. UsageError for a name that none of
    them has.
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
        beside = [name for catalogue in catalogues.values() for name in catalogue.beside(key)]
        must_be_known(
            key, sweep.asked(key), list(dict.fromkeys(itertools.chain(*of.values()))), *TABLE[key].own, beside
        )
    found = []
    for engine, catalogue in catalogues.items():
        others = {key: set().union(*(of[other] for other in of if other != engine)) for key, of in names.items()}
        has = {
            key: [value for value in sweep.asked(key) if value in of[engine] or value not in others[key]]
            for key, of in names.items()
        }
        lacks = {key for key, values in has.items() if sweep.asked(key) and not values}
        given = {key: getattr(sweep, key) for key in sweep.model_fields_set - lacks}
        own = {**given, **{key: values for key, values in has.items() if values}, "engine": [engine]}
        found.append((Sweep.model_validate(own), catalogue))
    return found


def merged(parts: Sequence[Matrix]) -> Matrix:
    """One matrix of the engines' own."""
    if len(parts) == 1:
        return parts[0]
    left_out = dict.fromkeys(item for part in parts for item in part.left_out)
    added = frozenset().union(*(part.added_base for part in parts))
    return Matrix(ordered(cell for part in parts for cell in part.cells), tuple(left_out), added)
