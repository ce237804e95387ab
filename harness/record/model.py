"""What every part of a record is: it is read whole or not at all, and nothing changes it afterwards."""

from pydantic import BaseModel, ConfigDict


class RecordModel(BaseModel):
    """A part of a record, without keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
