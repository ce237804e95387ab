"""What kind of run a manifest describes: which verb made it, what it counts, and where its records are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

TRIALS_NAME = "trials.jsonl"
RECORDS_NAME = "records.jsonl"
"""Of kinds whose records are no trials and have no file name of their own."""


@dataclass(frozen=True)
class Kind:
    """One kind of run. Registries of run and report know what runs it and what shows it by `name`."""

    name: str
    verb: str | None
    """The verb that measures it and goes on with it; None where nothing was measured."""
    unit: str = "trials"
    """What one record is of, in the plural."""
    log: str = TRIALS_NAME
    """Name of the file with a line a record."""
    uncompared: str | None = "is a run of {verb}, not a sweep; `compare` takes sweeps"
    """Why its cells are not set beside those of another run or along an axis, behind the run's id; None where they are.
    `{run}` stands for that id."""

    own_verdict: bool = False
    """Whether such a run holds two sides, and with them a verdict of its own."""

    def refusal(self, run_id: str) -> str | None:
        """Why cells of the run `run_id` are not compared; None where they are."""
        why = self.uncompared
        return None if why is None else f"'{run_id}' {why.format(verb=self.verb, run=run_id)}"

    @property
    def has_trials(self) -> bool:
        """Whether its records are trials of cells, which have a throughput."""
        return self.log == TRIALS_NAME

    @property
    def measured(self) -> bool:
        """Whether such a run has measured anything: no verb has made a table that was imported."""
        return self.verb is not None


class Undertaking(ABC):
    """What a run set out to do: the part of the manifest that its kind has for itself."""

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """Of which kind a run with this part is."""

    def counted(self, cells: int) -> int:
        """What `list` counts as the cells of a run whose manifest holds `cells`."""
        return cells

    def cell_of(self, member: str) -> str:
        """The id of the cell that a member of a planned group is a trial of."""
        return member
