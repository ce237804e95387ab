"""The command that measures a trial's cell again, with the same settings."""

import shlex
from collections.abc import Sequence

from harness.errors import UsageError
from harness.record.manifest import RunManifest
from harness.spec.axes import is_own_code
from harness.spec.recipe import KeyValue, flag_of, keys_of, settings_of
from harness.spec.text import value_from
from harness.spec.work import Cell
from harness.trial.engines import refused_by
from harness.visible import without_secrets


def repeat_commands(cells: Sequence[Cell], manifest: RunManifest) -> list[str | None]:
    """`python -m harness sweep …` for each cell, one trial of it and of its base case; None where no flags can say it.

    A name with a comma is no single value of a flag. But for sides, cells of one engine and device share their
    settings.
    """
    shared: dict[tuple[int, str, str], list[str] | None] = {}
    found: list[str | None] = []
    for cell in cells:
        sweep, engine = manifest.sweep_of(cell), manifest.engine_of(cell)
        key = (id(sweep), engine, cell.shape.device)
        if key not in shared:
            shared[key] = _words(settings_of(cell, sweep, engine, () if is_own_code(engine) else refused_by(engine)))
        own, settings = _words(keys_of(cell, sweep)), shared[key]
        whole = None if own is None or settings is None else [*own, *settings, "--trials 1"]
        found.append(None if whole is None else " ".join(["python -m harness sweep", *whole]))
    return found


def _words(flags: Sequence[KeyValue]) -> list[str] | None:
    """The flags as one types them; None where one of them would not be read back as what it says."""
    try:
        faithful = all(value_from(key, text) == value for key, text, value in flags)
    except UsageError:
        return None
    if not faithful or not all(text.isprintable() for _, text, _ in flags):
        return None
    return [shlex.join(map(without_secrets, flag_of(flag))) for flag in flags]
