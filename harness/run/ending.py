"""How a run of blocks ends: its manifest says so, whatever happened, and the person is told how to go on."""

import contextlib
from collections.abc import Callable, Iterator

from harness.errors import HarnessError, Interrupted, StorageError
from harness.record.store import RunStore
from harness.run.progress.base import Progress


@contextlib.contextmanager
def end_recorded(
    store: RunStore, progress: Progress, go_on: Callable[[], str], gave_up: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """`finished` when all that is done inside is done, `interrupted` when it is not, or when it `gave_up`.

    Raises Interrupted, with what `go_on` says, when the person asked to stop; any other HarnessError as it came.
    """
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        store.end("interrupted")
        raise Interrupted(f"interrupted; {go_on()}") from None
    except HarnessError:
        # nobody works on it any more, so it must not read as under way; a full disk may refuse even that
        with contextlib.suppress(StorageError):
            store.end("interrupted")
        raise
    finally:
        progress.finished()
    store.end("interrupted" if gave_up() else "finished")
