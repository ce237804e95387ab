"""What every part of a record is: it is read whole or not at all, and nothing changes it afterwards."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class RecordModel(BaseModel):
    """A part of a record, without keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def without_empty(written: dict[str, Any], key: str) -> dict[str, Any]:
    """What a part is written as, less a key that later versions added and that says nothing here: records and exports
    of what has no such thing stay as they were."""
    if not written.get(key):
        written.pop(key, None)
    return written
