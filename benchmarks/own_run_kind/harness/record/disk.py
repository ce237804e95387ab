"""A write that waited until it was on disk."""

from pydantic import BaseModel


class DiskWrite(BaseModel):
    """One write, by its number in the run."""

    number: int
    seconds: float
