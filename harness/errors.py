"""The one root exception. It is raised where a fault is understood and caught once, in `cli`.

Exit codes: 0 done, 1 a regression or nothing measured, 2 bad usage or spec, 3 undecided under `--strict`,
4 the environment or the results cannot be used, 130 interrupted and resumable.
"""

import difflib
from collections import Counter
from collections.abc import Iterable
from typing import Self

MOST_ENDS = 3
"""Of a run in which nothing was measured, as many reasons are read in one line."""


class HarnessError(Exception):
    """A fault that a person can mend; its text is the one line they read."""

    exit_code = 4


class UsageError(HarnessError):
    """A flag, a spec or an argument is wrong: the text names the key, the value and what is expected."""

    exit_code = 2


class StorageError(HarnessError):
    """The results place cannot be read or written. `run` names a run to go on with once that is mended."""

    exit_code = 4

    def __init__(self, text: str, run: str | None = None) -> None:
        super().__init__(text)
        self.run = run

    def __str__(self) -> str:
        """The text, and how to go on."""
        text = super().__str__()
        return f"{text}, then go on with --resume {self.run}" if self.run else text


class NothingMeasured(HarnessError):
    """A run came to its end, and none of its trials has a figure."""

    exit_code = 1

    @classmethod
    def of(cls, ends: Iterable[str]) -> Self:
        """With the ends that most of its trials came to; `ends` has each one's."""
        every = Counter(ends)
        counts, total = every.most_common(), every.total()
        several = [f"{end} ({count} of {total} trials)" for end, count in counts[:MOST_ENDS]]
        left = len(counts) - MOST_ENDS
        more = [f"and {left} other reason{'s' if left > 1 else ''}"] if left > 0 else []
        told = "; ".join([*several, *more]) if len(counts) > 1 else next((end for end, _ in counts), "no trial was run")
        return cls(f"nothing was measured: {told}")


class Interrupted(HarnessError):
    """The person asked to stop; everything measured so far is on disk."""

    exit_code = 130


class Unsupported(Exception):
    """A trial's cell cannot run here; the text is the reason that the engine or the machine gave.

    `may_pass`: the reason may be gone at another time, such as a device that somebody else holds.
    """

    def __init__(self, text: str, may_pass: bool = False) -> None:
        super().__init__(text)
        self.may_pass = may_pass


class Unprovable(Exception):
    """There is nothing to hold a trial's updates against, which says nothing against them; the text is the reason."""


def nearest(given: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the valid name closest to `given`, or an empty string.

    Closest is one that is `given` but for case and what stands before a colon, as `keras:ResNet50` is `resnet50`.
    """
    names = list(valid)
    same = [name for name in names if name.rpartition(":")[2].lower() == given.lower()]
    match = same or difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    return f"; did you mean '{match[0]}'?" if match else ""


def not_one_of(key: str, given: str, valid: Iterable[str], beside: Iterable[str] = (), whose: str = "") -> UsageError:
    """The error for a name that is not in a closed set; `beside` are valid too, and too many to list. `whose` the set
    is, where it is not the only one."""
    names = list(valid)
    of = f" ({whose})" if whose else ""
    return UsageError(f"{key}: '{given}' is not one of {', '.join(names)}{of}{nearest(given, [*names, *beside])}")
