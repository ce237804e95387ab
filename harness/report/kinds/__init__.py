"""How a run of each kind is shown, one module a kind: a new kind is a new module here with a `KIND`.

`list` asks for all of them, so that their modules import at the top what costs little only.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from harness.errors import UsageError
from harness.record.manifest import RunManifest
from harness.registry import registered
from harness.report.kinds.base import PageRequest, Presentation

if TYPE_CHECKING:
    from harness.report.export.base import Exporter

__all__ = ["PageRequest", "Presentation", "formats", "presentation_of", "presentations"]


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
