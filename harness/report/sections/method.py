"""How this was measured: the environment, and the formulas with the run's own numbers."""

from harness.record.manifest import RunManifest
from harness.report.method import methods, validated
from harness.report.sections.base import Section, Source
from harness.report.text import NOTHING, printable, size


def environment(source: Source) -> Section:
    """The machine and its software."""
    return Section("environment", "Environment", "environment.html.j2", _facts(source.manifest))


def method(source: Source) -> Section:
    """Every figure's formula."""
    told = (*methods(source.manifest, source.trials, source.summary), validated(source.validation))
    return Section("method", "How each figure was computed", "method.html.j2", told)


def _facts(manifest: RunManifest) -> list[tuple[str, str]]:
    facts = [("harness", manifest.harness_version), ("command", " ".join(manifest.command) or NOTHING)]
    for name, value in manifest.machine.facts.items():
        if value is None:
            shown = "not known"
        elif isinstance(value, bool):
            shown = "yes" if value else "no"
        elif name.endswith("_bytes") and isinstance(value, int):
            shown = size(value)
        else:
            shown = str(value)
        facts.append((name, shown))
    return [(printable(name), printable(shown)) for name, shown in facts]
