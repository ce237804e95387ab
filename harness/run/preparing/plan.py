"""What a call of `prepare` is to write into a folder, beside what lies there: what is whole there stays."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import to_json

from harness.errors import UsageError
from harness.protocol.preparing import Described
from harness.protocol.shards import unfinished, whole_at
from harness.record.files import LOCK_NAME
from harness.record.tfrecords import FEATURES, Feature, Features, OneOrSeveral, Preparation, Runners, by_its_place
from harness.run.preparing.asked import AskedFiles
from harness.spec.axes import is_own_code
from harness.spec.calls import own_text

SHARDS = 16
"""Files where nobody says how many, or one an example where there are fewer."""
TRIED_IN = ".tries"
"""The folder in the target in which several ways are timed."""
PLAN = ".plan.json"
"""What is being prepared here, until it is done: its features.json without what is not known yet."""
AS_READ = ("kind", "classes", "vocabulary", "names")
"""What a features.json says of how its files are read, which changes none of them: the user may say it otherwise."""

_Files = TypeVar("_Files", bound=Features)


class PreparePlan(Features):
    """What files are to hold before any is there. What a begun preparation was asked is compared with it."""

    source: str
    state: str = ""
    """Of the source, as `Preparation` has it."""
    count: int
    """Of files."""
    wall_s: float = 0.0
    """What the calls have taken that did not come to the end, up to the last file that each made whole."""
    cpu_s: float = 0.0
    ran: tuple[Runners, ...] = ()
    """Of those calls that made a file whole, in turn; once of several that follow one another with the same."""

    def ran_by(self, now: Runners) -> tuple[Runners, ...]:
        """With those of a call that goes on."""
        return self.ran if self.ran[-1:] == (now,) else (*self.ran, now)


def plan_for(asked: AskedFiles, described: Described) -> PreparePlan:
    """UsageError where the target holds something else, or the beginning of it, or examples that the source had another
    time."""
    known = whole_at(asked.target / FEATURES, Features)
    begun = whole_at(asked.target / PLAN, PreparePlan)
    there = len(known.shards) if known is not None else begun.count if begun is not None else None
    examples = described.features.examples or 0
    count = asked.shards or there or min(SHARDS, examples)
    if count > examples:
        raise UsageError(f"--shards: given {count}, expected at most {examples:,}, one for each example")
    asked_for = {"source": asked.source, "state": described.state, "count": count, "compression": asked.compression}
    if begun is not None:
        asked_for |= {"wall_s": begun.wall_s, "cpu_s": begun.cpu_s, "ran": begun.ran}
    plan = PreparePlan(**{**_known(described.features), **asked_for})
    if known is not None and known.preparation is not None:
        begun = plan_of(known, known.preparation)
    if begun is None:
        return plan
    if differs := _difference(begun, plan):
        raise UsageError(f"target: '{asked.target}' holds another data set: {differs}; name a new folder, or remove it")
    return plan.model_copy(update={"state": begun.state})  # empty where an earlier version has begun


def plan_of(features: Features, how: Preparation) -> PreparePlan:
    """The plan that leads to these files."""
    return PreparePlan(**_known(features), source=how.source, state=how.state, count=len(features.shards))


def _known(features: Features) -> dict[str, Any]:
    """What is known before any file is there."""
    return features.model_dump(exclude={"digest", "shards", "preparation"})


def as_read(there: Features, of: _Files) -> _Files:
    """What is known `of` files, with what the features.json that is `there` says of how they are read: its own kind and
    counts, where an input is cut off, and no target or weights where it leaves them out."""
    said = {key: getattr(there, key) for key in AS_READ}
    said |= {key: None for key in ("target", "weights") if getattr(there, key) is None}
    if _uncut(there.input) == _uncut(of.input):
        said["input"] = there.input
    return of.model_copy(update=said)


def _uncut(of: OneOrSeveral) -> dict[str, Feature]:
    return {place: one.model_copy(update={"most": 0}) for place, one in by_its_place(of).items()}


def check_target(target: Path) -> None:
    """UsageError where it has files, and they are nobody's that prepare has begun."""
    known = whole_at(target / FEATURES, Features)
    if (target / PLAN).exists() or (known is not None and known.preparation is not None):
        return
    # by one that was killed before it had a plan
    begun = {LOCK_NAME, TRIED_IN, *(path.name for path in unfinished(target))}
    if others := [path.name for path in target.iterdir() if path.name not in begun]:
        raise UsageError(
            f"target: '{target}' has files that prepare has not made, such as '{min(others)}'; name a new folder"
        )


def one_spelling(source: str) -> str:
    """The source's name, with parameters of the user's own function in the order of theirs; UsageError where one is no
    number."""
    return own_text("source", source) if is_own_code(source) else source


def _difference(there: PreparePlan, asked: PreparePlan) -> str:
    """The first key in which two plans differ, and how."""
    names = {"count": "shards"}
    there = there.model_copy(update={"source": one_spelling(there.source)})  # as it was given to an earlier version
    if there.state:  # by which other examples are told, whatever is said of how they are read
        asked = as_read(there, asked)
    for key in ("source", "count", *Features.model_fields):
        one, other = getattr(there, key), getattr(asked, key)
        if one != other:
            one, other = (value if isinstance(value, str) else to_json(value).decode() for value in (one, other))
            return f"its {names.get(key, key)} is {one}, and {other} is asked for"
    if there.state and there.state != asked.state:
        return (
            f"'{there.source}' has other examples, or files of other names, sizes or times, than when it was prepared"
        )
    return ""
