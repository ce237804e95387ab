"""The sides of a comparison, from the flags and specs of the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.run.kinds.one_cell import refuse_what_is_of_the_comparison
from harness.run.kinds.sides import Both, Side, sides_of
from harness.spec.sweep import load_sweep
from harness.spec.text import value_from


def read_sides(
    specs: Sequence[Path],
    flags: Mapping[str, str],
    a: Sequence[str] = (),
    b: Sequence[str] = (),
    *,
    pythons: Both = (None, None),
    revisions: Both = (None, None),
) -> tuple[Side, Side]:
    """The two sides of `ab [SPEC [SPEC_B]] [flags] --a … --b … --python-a … --rev-a …`.

    One spec is for both sides, of two each is for one; `flags`, keys of a spec with their text, are laid over
    both, and `a` and `b`, each `KEY=VALUE` or `env.NAME=VALUE`, over one. UsageError in one line.
    """
    if len(specs) > 2:
        raise UsageError(f"SPEC: given {len(specs)} files, expected one for both sides or one for each")
    refuse_what_is_of_the_comparison(flags)
    common = {key: value_from(key, text) for key, text in flags.items()}
    bases: list[dict[str, Any]] = [load_sweep(spec) | common for spec in specs] or [common]
    return sides_of(bases[0], a, b, base_b=bases[-1], pythons=pythons, revisions=revisions, windowed=True)
