"""What `report`, `show`, `export` and `list` need of a kind of run."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.errors import UsageError
from harness.record.manifest import RunManifest
from harness.record.reading import Run, RunListing

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter
    from harness.report.page.sections import Part, Section


OF_TRIALS = ("csv", "windows", "parquet", "windows-parquet")
"""Formats with a row a trial or a window, each with its side."""


@dataclass(frozen=True)
class PageRequest:
    """Where a page goes, and what beside the run is to be on it."""

    target: Path
    results: Path
    """The folder of runs, for the validation of the machine."""
    against: "Comparison | None" = None
    """The comparison with a base run. Only given for a kind that `takes_base`."""
    beside: RunManifest | None = None
    """A run of published figures to draw beside the measured ones; kinds without such a figure pass over it."""
    others: "Sequence[Section]" = ()
    """Of other runs of the same machine (`section_of`). Only given for a kind that `takes_base`."""


class Presentation(ABC):
    """How a run of one kind is shown. A module of this package has one as its `KIND`."""

    name: ClassVar[str]
    """The kind, as the manifest names it."""
    page_kind: ClassVar[str]
    """What its page says that it is, for the index of a folder of pages."""
    beside: ClassVar[str] = ""
    """The heading of what it shows on the page of another run."""
    takes_base: ClassVar[bool] = False
    """Whether its page can hold the comparison with another run, or the figures of an imported one."""

    @abstractmethod
    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """Write the page, whole or not at all; what it answers, in sentences. Raises StorageError."""

    @abstractmethod
    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """What `show` prints, lines that each end."""

    @abstractmethod
    def as_json(self, run: Run, results: Path) -> str:
        """What `show --json` prints: one JSON object."""

    def parts_beside(self, run: Run, results: Path) -> "tuple[Part, ...]":
        """Of the section that it has on the page of another run (`beside`); nothing where it has none."""
        del run, results
        return ()

    def exporters(self) -> "Mapping[str, Exporter]":
        """The formats that it can be exported in, by name."""
        from harness.report.export import exporters

        return exporters()

    def lacks_format(self, run: Run) -> str:
        """Why it has not the format asked for, which other kinds have."""
        has = ", ".join(self.exporters())
        return f"--format: '{run.path.name}' is a run of {run.manifest.what.kind.verb}; expected one of {has}"

    def listed(self, listing: RunListing) -> str:
        """What `list` says after the run's id and status."""
        trials, planned = listing.trials or 0, listing.planned or 0
        again = f" and {trials - planned} again" if trials > planned else ""
        unproved = f", {listing.unproved} unproved" if listing.unproved else ""
        cells = "1 cell" if listing.cells == 1 else f"{listing.cells} cells"
        return f"{min(trials, planned):>4} of {planned} {listing.unit}{again}{unproved}  {cells}"

    def each_side(self, run: Run) -> Mapping[str | None, Run]:
        """The run by itself, under None; of a kind with sides what each would be as a run, by its name."""
        return {None: run}

    def cell_rows(self, run: Run) -> list[dict[str, Any]]:
        """A row for each cell, as `harness.load_cells` has them."""
        from harness.analysis.summary import summarise
        from harness.report.export.rows import cell_rows

        return cell_rows(summarise(run.manifest, run.trials, run.rank_unproved))


class OfSides(Presentation):
    """A kind whose trials are of sides: one figure of a cell would average what was measured to be told apart."""

    by_side: ClassVar[str]
    """The command that has the figures of each side, `{run}` in it."""

    def exporters(self) -> "Mapping[str, Exporter]":
        """Those of trials and windows, whose rows name their side."""
        return {name: one for name, one in super().exporters().items() if name in OF_TRIALS}

    def lacks_format(self, run: Run) -> str:
        """See Presentation."""
        return f"{super().lacks_format(run)}, or for figures {self._command(run)}"

    def each_side(self, run: Run) -> Mapping[str | None, Run]:
        """UsageError that says what has the figures."""
        raise self._without_side(run)

    def cell_rows(self, run: Run) -> list[dict[str, Any]]:
        """None; UsageError that says what has the figures."""
        raise self._without_side(run)

    def _without_side(self, run: Run) -> UsageError:
        return UsageError(
            f"RUN: '{run.path.name}' is a run of {run.manifest.what.kind.verb}, whose cells have no figure without "
            f"their side; use {self._command(run)}, or harness.load for its trials"
        )

    def _command(self, run: Run) -> str:
        return f"`{self.by_side.format(run=run.path.name)}`"
