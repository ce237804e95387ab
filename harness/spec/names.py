"""Names that must be known, and whose they are."""

import re
from collections.abc import Collection, Iterable, Sequence

from harness.errors import not_one_of
from harness.spec.axes import ENGINE, TABLE
from harness.spec.catalogue import Catalogue


def whose(engines: Sequence[str]) -> str:
    """Whose names a list has, where that is not TensorFlow alone."""
    return "" if [*engines] == [ENGINE] else f"engine {', '.join(engines)}"


def own_of(key: str, catalogues: Iterable[Catalogue]) -> tuple[str, str]:
    """How names of the user's own, and others that no registry has, are spelled for people, and as a pattern; nothing
    where none of the catalogues takes any."""
    return ("", "") if all(key in catalogue.closed for catalogue in catalogues) else TABLE[key].own


def must_be_known(
    key: str,
    given: Iterable[str],
    valid: list[str],
    or_like: str,
    pattern: str,
    engines: Sequence[str],
    beside: Collection[str] = (),
) -> None:
    """UsageError for a name that is not among those that the `engines` have, and not like a user's own; `beside` are
    such that they have as well and that are too many to list."""
    for name in given:
        if name in valid or (pattern and re.fullmatch(pattern, name)):
            continue
        raise not_one_of(key, name, [*valid, or_like] if or_like else valid, beside, whose(engines))
