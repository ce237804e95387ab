"""How a trial that raised has ended: which status, which reason, and the evidence; and what no trial is begun for."""

import os
import sysconfig
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal, NamedTuple

from harness.errors import HarnessError, Unsupported
from harness.protocol.engine import Ending
from harness.spec.work import Cell

EVIDENCE_CHARACTERS = 4000


class WrongResult(Exception):
    """The gate found a wrong answer; there is nothing to time."""


class TrialEnd(NamedTuple):
    """What an Outcome says of a trial's end."""

    status: Literal["ok", "wrong_result", "unsupported", "out_of_memory", "crashed"]
    reason: str | None = None
    evidence: str | None = None
    may_pass: bool = False


def ending_of(error: Exception, classify: Callable[[Exception], Ending]) -> TrialEnd:
    """How a process ends by `error`, which is being handled; `classify` says what exceptions of the engine mean.

    Where the parent is gone (EOFError), nobody is left to tell, and the process ends here.
    """
    match error:
        case WrongResult():
            return TrialEnd("wrong_result", _beginning(str(error)))
        case Unsupported():
            return TrialEnd("unsupported", _beginning(str(error)), may_pass=error.may_pass)
        case HarnessError():
            return TrialEnd("crashed", _beginning(str(error)))
        case EOFError():
            os._exit(1)
    status, reason = classify(error)
    return TrialEnd(status, _beginning(reason), None if status == "unsupported" else traceback_without_paths())


def _beginning(reason: str) -> str:
    """No more of it than of evidence: a line may be an array of millions of numbers."""
    return reason if len(reason) <= EVIDENCE_CHARACTERS else f"{reason[: EVIDENCE_CHARACTERS - 1]}…"


def plain_ending(error: Exception) -> Ending:
    """(status, reason) for an exception that no framework has a meaning for; the reason is its first line."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    reason = f"{type(error).__name__}: {first}"
    if isinstance(error, MemoryError):
        return "out_of_memory", reason
    return ("unsupported" if isinstance(error, NotImplementedError) else "crashed"), reason


def traceback_without_paths() -> str:
    """The traceback being handled, its end, without where this machine keeps its files: records get sent around."""
    text = traceback.format_exc()
    for name in ("purelib", "platlib", "stdlib"):
        text = text.replace(sysconfig.get_path(name) + os.sep, "")
    return text.replace(str(Path.cwd()) + os.sep, "")[-EVIDENCE_CHARACTERS:]


def refuse_other_axes(cell: Cell, taken: Collection[str], title: str) -> None:
    """Unsupported where a key of `cell` is away from its default and not among those that the engine of a `title` has
    `taken` into account: it would be without effect, and the cell would have a name of its own all the same."""
    for key, field in type(cell).model_fields.items():
        if key not in taken and cell.get(key) != field.default:
            raise Unsupported(f"{key}: {title} has nothing that it would change; leave the flag out")
