"""What a section of the report is: a title and a template of its own with what the template shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.analysis import RunSummary, WorkloadSummary
from harness.analysis.comparison import Comparison
from harness.record.kind import TRIALS_NAME
from harness.record.limits import LimitsRecord
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.record.validation import ValidationRecord
from harness.report.figures.svg import Picture
from harness.report.tables.overlay import Published
from harness.report.tables.table import Table
from harness.visible import printable


@dataclass(frozen=True)
class PageSource:
    """Everything that a page is made from. A section that needs more adds a field with a default."""

    manifest: RunManifest
    trials: Sequence[TrialRecord]
    summary: RunSummary
    validation: ValidationRecord | None = None
    """Of the machine that measured, cited where the method is described."""
    comparison: Comparison | None = None
    """With a base run, of which it is side A."""
    overlay: tuple[Published, ...] | None = None
    """Published series to draw beside the efficiencies; None is those that come with the package."""
    run_folder: str | None = None
    """The run's folder as the page sees it, for links to its traces; None is `../results/<run_id>`."""
    run_place: str | None = None
    """The run's folder as a command names it; None is `results/<run_id>`."""
    records: str = TRIALS_NAME
    """The file in it that has its trials."""
    output: Path | None = None
    """The file that the page becomes, for links to the documentation."""
    limits: LimitsRecord | None = None
    """What the machine that measured can do at most, where that is known."""
    others: tuple["Section", ...] = ()
    """What other runs of that machine show here."""

    @property
    def place(self) -> str:
        """The run's folder, to be read and to be typed."""
        return printable(self.run_place or f"results/{self.manifest.run_id}")


@dataclass(frozen=True)
class Section:
    """One section of the page, with its heading and its place in the list of contents."""

    slug: str
    """Unique on the page: the section's id, and how ids within it begin."""
    title: str
    template: str
    """A file in `templates/sections/`; it sees `content`, and what `report.html.j2` sees."""
    content: object
    scripts: tuple[str, ...] = ()
    """Files in `templates/scripts/` that it needs; each is in the page once, at its end."""


Make = Callable[[PageSource], Section | None]
"""Makes a section, or None when the run has nothing for it."""


@dataclass(frozen=True)
class Part:
    """What a section says of one workload: words, figures, then the table with every number."""

    slug: str
    heading: str
    """The workload; empty when there is only one."""
    words: tuple[str, ...]
    """What the data show, generated from them."""
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]
    open_table: bool = False
    """Whether the first table is unfolded from the start."""


PartOf = Callable[[WorkloadSummary, str], Part | None]
"""(workload, slug) to its part; None when it has nothing for the section."""


def by_workload(source: PageSource, slug: str, title: str, part_of: PartOf) -> Section | None:
    """A section with a part for each workload that has one, headed by the workload where there are several."""
    works = source.summary.workloads
    parts = []
    for index, work in enumerate(works):
        part = part_of(work, f"{slug}-w{index}")
        if part is not None:
            heading = printable(work.workload.label) if len(works) > 1 and not part.heading else part.heading
            parts.append(replace(part, heading=heading))
    return Section(slug, title, "figures.html.j2", tuple(parts)) if parts else None
