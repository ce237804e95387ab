"""What one trial has compiled, for the next of the same cell in a run."""

from pathlib import Path
from typing import Any


def share_compiled(scratch: Path) -> None:
    """Keep what is compiled in the run's folder for what trials share: the next trial of the cell reads it there.

    Compiling takes most of a trial's set-up. What is read is the machine code that was written.
    """
    import jax

    jax.config.update("jax_compilation_cache_dir", str(scratch / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def write_compiled_too(index: int) -> None:
    """Let the process of this number keep what it compiles, as JAX lets the first one alone.

    On processors JAX's keys have the process in them, so that no other process finds what the first has written. Where
    JAX writes by another name than it does now, the process compiles in every trial.
    """
    from jax._src import compiler, distributed

    write, joined = getattr(compiler, "_cache_write", None), distributed.global_state
    if index == 0 or write is None:
        return

    def written(*compiled: Any) -> None:
        joined.process_id = 0
        try:
            write(*compiled)
        finally:
            joined.process_id = index

    compiler._cache_write = written
