"""Benchmark distributed training with TensorFlow: proof first, then numbers with intervals.

In a notebook: `import harness; frame = harness.load("latest")`. What `harness` offers is in `harness.api`; it is
loaded when it is first asked for, so that the import takes no time.
"""

from typing import TYPE_CHECKING, Any

from harness.version import __version__

if TYPE_CHECKING:
    from harness.api import (
        ab,
        compare,
        explain,
        load,
        load_cells,
        load_collectives,
        load_limits,
        load_parts,
        load_pipelines,
        load_windows,
        mark_step,
        read,
        runs,
        summary,
        sweep,
    )

__all__ = [
    "__version__",
    "ab",
    "compare",
    "explain",
    "load",
    "load_cells",
    "load_collectives",
    "load_limits",
    "load_parts",
    "load_pipelines",
    "load_windows",
    "mark_step",
    "read",
    "runs",
    "summary",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import harness.api

        return getattr(harness.api, name)
    raise AttributeError(f"module 'harness' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
