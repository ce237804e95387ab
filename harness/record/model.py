"""What every part of a record is: it is read whole or not at all, and nothing changes it afterwards."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class RecordModel(BaseModel):
    """A part of a record, without keys that it does not know.

    What checks a part is built when one is first made, which saves a tenth of a second wherever none is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def build(part: type[BaseModel]) -> None:
    """Build what checks each kind of `part` now, once, and not in each process that is forked from this one."""
    part.model_rebuild()
    for kind in part.__subclasses__():
        build(kind)


def without_empty(written: dict[str, Any], *later: str) -> dict[str, Any]:
    """What a part is written as, less the keys that later versions added and that say nothing here: records and exports
    of what has no such thing stay as they were."""
    return {key: value for key, value in written.items() if value or key not in later}
