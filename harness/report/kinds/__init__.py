"""How a run of each kind is shown, one module a kind: a new kind is a new module here with a `KIND`.

`list` asks for all of them, so that their modules import at the top what costs little only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.errors import UsageError
from harness.record.manifest import RunManifest
from harness.record.reading import Run
from harness.registry import registered
from harness.report.kinds.base import PageRequest, Presentation
from harness.visible import printable

if TYPE_CHECKING:
    from harness.report.export.base import Exporter
    from harness.report.page.sections import Section

__all__ = ["PageRequest", "Presentation", "formats", "presentation_of", "presentations", "section_of"]


def presentations() -> Mapping[str, Presentation]:
    """Every kind of run that can be shown, by the name that manifests have for it."""
    return cast(Mapping[str, Presentation], registered(__name__, "KIND"))


def presentation_of(manifest: RunManifest) -> Presentation:
    """How the run of `manifest` is shown. UsageError for a kind that this harness does not have."""
    found = presentations().get(manifest.kind)
    if found is None:
        raise UsageError(f"RUN: '{manifest.run_id}' is a run of the kind '{manifest.kind}', which this harness lacks")
    return found


def formats() -> "dict[str, Exporter]":
    """Every format that a run of some kind can be exported in, in alphabetical order."""
    from harness.report.export import exporters

    own = {name: one for kind in presentations().values() for name, one in kind.exporters().items()}
    return dict(sorted({**own, **exporters()}.items()))


def section_of(other: Run, results: Path) -> "Section":
    """What a run shows on the page of another, and which run that is. UsageError where that is nothing."""
    from harness.report.page.sections import Part, Section

    of, run_id = presentation_of(other.manifest), printable(other.manifest.run_id)
    parts = of.parts_beside(other, results)
    if not parts:
        raise UsageError(f"--with: run {run_id} has no section for another page, expected explain or collectives")
    measured = f"Of run {run_id}, measured {other.manifest.created_utc[:16].replace('T', ' ')} UTC."
    slug = f"with-{'-'.join(run_id.split())}"
    return Section(slug, of.beside, "figures.html.j2", (Part(f"{slug}-run", "", (measured,), (), ()), *parts))
