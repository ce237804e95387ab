"""What a process of `prepare` does with an order, whoever has started it.

Not in the module that is run: a function of `__main__` is sent to another process as a copy, with copies of what it
calls, and the sign of life that it gives by those nobody sees.
"""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import psutil

from harness.errors import HarnessError
from harness.protocol.preparing import ANSWER, FAULT, SIGN, PrepareOrder, Preparer
from harness.trial.engines import DEFAULT, engine_of
from harness.trial.sign_of_life import sign_of_life

LOOK_S = 0.2


def carry_out(text: str) -> None:
    """Do what the order `text`, as JSON, asks for in this process, and leave the answer or the fault in its folder.

    Raises the HarnessError too, so that who called this process stops the others.
    """
    order = PrepareOrder.model_validate_json(text)
    sign_of_life.tell_by(functools.partial(_sign, Path(order.scratch) / SIGN.format(order.number, os.getpid())))
    with keep_fault(Path(order.scratch)):
        found = cast(Preparer, engine_of(DEFAULT)).prepare_files(order)
        if found is not None:
            answer(order, found.model_dump_json())


def carry_out_for_another(text: str, driver: int) -> None:
    """The same in a process that Dask or Beam has started for the process `driver`, and that ends with it.

    Between the two there may be others, such as a shell: the kernel would tell of their end only.
    """
    of = psutil.Process(driver)

    def watch() -> None:
        with contextlib.suppress(psutil.Error):
            while of.is_running() and of.status() != psutil.STATUS_ZOMBIE:  # which it stays where nobody waits for it
                time.sleep(LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    carry_out(text)


def _sign(path: Path, done: int) -> None:
    with contextlib.suppress(OSError):  # a full disk, which is told by who writes files
        path.write_text(str(done), encoding="utf-8")


def answer(order: PrepareOrder, text: str = "null") -> None:
    """Leave the answer to an order in its folder; it is seen whole or not at all."""
    path = Path(order.scratch) / ANSWER.format(order.number)
    half = path.with_suffix(".part")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


@contextlib.contextmanager
def keep_fault(scratch: Path) -> Iterator[None]:
    """A HarnessError that is raised while it is entered is left in the folder, too."""
    try:
        yield
    except HarnessError as error:
        with contextlib.suppress(OSError):
            (scratch / FAULT).write_text(f"{error.exit_code} {error}", encoding="utf-8")
        raise
