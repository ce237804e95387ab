"""A sweep of several engines: what each is asked for, and one matrix of all."""

import itertools
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.spec.axes import TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.cell import trained
from harness.spec.expand import Matrix, by_table, must_be_known
from harness.spec.sweep import OTHER_WORKS, Sweep


def each_engine(sweep: Sweep, catalogues: Mapping[str, Catalogue]) -> list[tuple[Sweep, Catalogue]]:
    """What of `sweep` each of its engines is asked for: of names those that it has, and its own where it has none.

    Names beside the registered ones, such as a user's own model, each is asked for. UsageError for a name that none of
    them has.
    """
    if len(catalogues) == 1:
        return [(sweep, catalogue) for catalogue in catalogues.values()]
    if sweep.step or sweep.work in OTHER_WORKS:
        raise UsageError(f"engine: given {', '.join(catalogues)}, expected one: several train the same models only")
    keys = {key: axis.choices for key, axis in TABLE.items() if axis.choices and key in sweep.model_fields_set}
    names = {key: {e: [*getattr(of, choices)] for e, of in catalogues.items()} for key, choices in keys.items()}
    for key, of in names.items():
        must_be_known(key, sweep.asked(key), list(dict.fromkeys(itertools.chain(*of.values()))), *TABLE[key].own)
    found = []
    for engine, catalogue in catalogues.items():
        others = {key: set().union(*(of[other] for other in of if other != engine)) for key, of in names.items()}
        has = {
            key: [value for value in sweep.asked(key) if value in of[engine] or value not in others[key]]
            for key, of in names.items()
        }
        given = {key: getattr(sweep, key) for key in sweep.model_fields_set if has.get(key) != []}
        own = {**given, **{key: values for key, values in has.items() if values}, "engine": [engine]}
        found.append((Sweep.model_validate(own), catalogue))
    return found


def merged(parts: Sequence[Matrix]) -> Matrix:
    """One matrix of the engines' own."""
    if len(parts) == 1:
        return parts[0]
    cells = sorted((trained(cell) for part in parts for cell in part.cells), key=by_table)
    left_out = dict.fromkeys(item for part in parts for item in part.left_out)
    return Matrix(tuple(cells), tuple(left_out), frozenset().union(*(part.added_base for part in parts)))
