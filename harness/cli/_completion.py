"""What the shell may complete: run ids, and the names that a key of a spec takes. Imports little, and no TensorFlow."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import typer

RUN_HELP = "A run's folder, its id, the beginning of either, its name, 'latest', or 'latest~1' for the one before."


def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """`latest` and the runs of the results folder that the line names, newest first."""
    folder = ctx.params.get("results") or Path("results")
    try:
        entries = sorted(
            (entry.name for entry in Path(folder).iterdir() if (entry / "run.json").is_file()), reverse=True
        )
    except OSError:
        entries = []
    return [name for name in ("latest", *entries) if name.startswith(incomplete)]


def runs_of(kind: str) -> Callable[[typer.Context, str], list[str]]:
    """What completes `--resume` of the verb of a kind: `latest`, and the runs of that kind that can be read."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from harness.errors import StorageError
        from harness.record.reading import load_manifest

        def fits(name: str) -> bool:
            with contextlib.suppress(StorageError):
                return load_manifest(folder / name).kind == kind
            return False

        folder = Path(ctx.params.get("results") or "results")
        return [name for name in run_ids(ctx, incomplete) if name == "latest" or fits(name)]

    return complete


def strategies(incomplete: str) -> list[str]:
    """Strategies: a cell's name begins with one."""
    return [name for name in _names("strategy") if name.startswith(incomplete)]


def values_of(key: str) -> Callable[[str], list[str]] | None:
    """Completes comma-separated values of a key whose values are names; None for one that takes numbers or text."""
    from harness.spec.axes import TABLE
    from harness.spec.settings import SETTINGS
    from harness.spec.sweep import closed_values

    axis, setting = TABLE.get(key), SETTINGS.get(key)
    of_axis = closed_values(key) or (axis is not None and (axis.choices or axis.registry))
    if not of_axis and (setting is None or setting.registry is None):
        return None

    return several_of(lambda: _names(key))


def several_of(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completes a comma-separated list of some of `names`, which are asked for when they are needed."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = set(before.split(","))
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last) and name not in given]

    return complete


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completes one of `names`, which are asked for when they are needed."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def told_names(key: str) -> str:
    """The names that a key of a spec takes, in words; of cross-device ops with the strategies that take them."""
    return ", ".join(f"{name} ({', '.join(of)})" if of else name for name, of in _names(key).items())


def _names(key: str) -> Mapping[str, Iterable[str]]:
    """The names that a key takes, each with the strategies that it is for, where it is not for all."""
    from harness.registry import registered
    from harness.spec.axes import TABLE
    from harness.spec.settings import SETTINGS
    from harness.spec.sweep import closed_values

    entry = SETTINGS.get(key) or TABLE.get(key)
    if entry is not None and entry.registry is not None:
        return dict.fromkeys(registered(*entry.registry), ())
    registry = TABLE[key].choices if key in TABLE else None
    if registry is None:
        return dict.fromkeys(closed_values(key), ())
    from harness.trial.engines import catalogue_of

    entries = getattr(catalogue_of(), registry)
    return {name: getattr(entry, "strategies", None) or () for name, entry in entries.items()}
