"""What a GPU did while a trial's windows were timed, as NVML told the parent."""

from typing import Annotated

from pydantic import Field, model_validator

from harness.record.bounds import Natural, Reported
from harness.record.model import RecordModel

Watts = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Joules = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class GpuRecord(RecordModel):
    """One of the trial's GPUs. Every list has a value a window of the trial, in their order.

    None is a window in which nothing was read: it was shorter than the time between two readings, or an update was
    proved before it. An empty list is what the card never told.
    """

    id: str
    """Which card: the `gpu.N.id` of the machine's facts."""
    sm_clock_mhz: list[Natural | None] = []
    """Mean over the readings within the window."""
    power_w: list[Watts | None] = []
    """Mean; of newer cards each reading is one over a second, by NVIDIA's documentation, which others had a part of."""
    temperature_c: list[Reported | None] = []
    """The highest."""
    memory_used_bytes: list[Natural | None] = []
    """The most, by all processes."""
    slowed: list[str | None] = []
    """Why its clock was held down at some reading, in words; empty where it was not."""
    energy_j: list[Joules | None] = []
    """By the card's own counter, from the parent's word to the trial's answer; none of windows under a second, which
    are short beside the counter's own steps."""
    process_memory_bytes: Natural | None = None
    """What the trial's own processes held of it after the last window, by the driver: TensorFlow counts neither CUDA's
    own memory nor its libraries'."""

    @property
    def windows(self) -> int | None:
        """Windows that its lists are of; None where all are empty."""
        return max(self._lengths(), default=None)

    def _lengths(self) -> set[int]:
        told = (self.sm_clock_mhz, self.power_w, self.temperature_c, self.memory_used_bytes, self.slowed, self.energy_j)
        return {len(values) for values in told if values}

    @model_validator(mode="after")
    def _lengths_agree(self) -> "GpuRecord":
        if len(self._lengths()) > 1:
            raise ValueError("the lists of a GPU differ in length")
        return self
