"""How this was measured: protocol, seeds, order, noise, thresholds, versions, formulas; and the environment."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.analysis.estimates.intervals import CONFIDENCE
from harness.analysis.estimates.trend import LEVEL, MATTERS
from harness.analysis.estimates.verdict import DELTA, EPSILON
from harness.analysis.estimates.windows import FENCE
from harness.analysis.ranking import ALPHA
from harness.analysis.workers import STRAGGLES
from harness.environment import Fact, fact_words
from harness.record.engines import TOLD_BY_ENGINE
from harness.record.manifest import RunManifest
from harness.report.page.sections.base import PageSource, Section
from harness.report.words.method import Method, methods, noise_words, recorded_words, validated, windows_words
from harness.report.words.text import NOTHING, listed, percent, significant, size
from harness.visible import plural, printable


def environment(source: PageSource) -> Section:
    """The machine and its software."""
    return Section("environment", "Environment", "environment.html.j2", _facts(source.manifest))


@dataclass(frozen=True)
class Told:
    """The section on the method: what was set and found, then every formula."""

    facts: tuple[tuple[str, str], ...]
    thresholds: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    methods: tuple[Method, ...]


def method(source: PageSource) -> Section:
    """How this was measured, from the run."""
    manifest, summary = source.manifest, source.summary
    told = Told(
        facts=tuple(_design(source)),
        thresholds=tuple(_thresholds(source)),
        versions=tuple(_versions(manifest)),
        methods=(*methods(manifest, source.trials, summary), validated(source.validation)),
    )
    return Section("method", "How this was measured", "method.html.j2", told)


def _design(source: PageSource) -> Iterator[tuple[str, str]]:
    manifest, summary = source.manifest, source.summary
    yield (
        "protocol",
        f"{plural(summary.blocks, 'block')} of one fresh process a cell; live trials take turns at the clock, "
        f"after warm-up {windows_words(manifest, summary)}; every trial goes through the correctness gate, and "
        "what fails there has no figure",
    )
    yield "trials", recorded_words(summary)
    seeds = dict.fromkeys(f"{plan.seed} (stage {plan.stage})" for plan in manifest.plans)
    yield "seeds", listed(seeds) or "no plan was made"
    groups = sum(len(block) for plan in manifest.plans for block in plan.blocks)
    yield (
        "order",
        f"drawn from the seed for each of {plural(groups, 'group')} of trials, and again for each round of turns; "
        f"the plan was sealed before it ran (SHA-256 {listed(plan.sha256[:12] for plan in manifest.plans) or 'none'}…)",
    )
    yield "noise between blocks", noise_words(summary) or "too few trials to know"
    floor = source.validation.floor() if source.validation else None
    told = f"{significant(100 * floor, 2)} %" if floor is not None else "not measured: harness validate measures it"
    yield "noise floor of this machine", told


def _thresholds(source: PageSource) -> Iterator[tuple[str, str]]:
    yield "intervals", f"{percent(CONFIDENCE)}, Student's t over trials; one trial gives none"
    yield (
        "smallest difference that counts, δ",
        f"{percent(DELTA)}, or the machine's noise floor where that is larger (ab, compare, cross-device ops)",
    )
    yield "equivalent within, ε", f"{percent(EPSILON)} (ab, compare, cross-device ops, and the knee of batch size)"
    yield "told apart from the fastest", f"Dunnett's limit over all cells, one-sided, {percent(ALPHA)} in all"
    yield "distributing pays", f"false discovery rate {percent(ALPHA)} (Benjamini–Hochberg)"
    yield (
        "trend within trials",
        f"at {percent(LEVEL)} in all cells together, from {percent(MATTERS)} between the first window and the last",
    )
    yield "outlying window", f"beyond {FENCE} interquartile ranges: counted, kept"
    yield (
        "straggling worker",
        f"its own forward and backward more than {percent(STRAGGLES)} longer than the fastest's (Bonferroni over all "
        f"pairs of workers), or more than {percent(STRAGGLES)} behind it at the end of windows, and last in most "
        "of them beyond chance",
    )
    errors = [trial.checks.update_error for trial in source.trials if trial.checks.update_error is not None]
    if errors:
        yield (
            "update against the reference",
            f"the largest error here was {significant(max(errors), 2)} of what is allowed",
        )


def _versions(manifest: RunManifest) -> Iterator[tuple[str, str]]:
    yield "harness", manifest.harness_version
    yield "records", f"schema version {manifest.schema_version}"
    names = [name for name in manifest.facts if name.startswith(("package.", TOLD_BY_ENGINE))]
    for name in ("python.version", *names, "os.distribution", "os.release", "git.revision"):
        if manifest.facts.get(name) is not None:
            yield printable(name.removeprefix("package.")), printable(str(manifest.facts[name]))


def _facts(manifest: RunManifest) -> list[tuple[str, str]]:
    facts = [("harness", manifest.harness_version), ("command", " ".join(manifest.command) or NOTHING)]
    if manifest.hosts:
        facts.append(("hosts", ", ".join(manifest.hosts)))
    facts += [(name, _fact_text(name, value)) for name, value in manifest.facts.items()]
    return [(printable(name), printable(text)) for name, text in facts]


def _fact_text(name: str, value: Fact) -> str:
    """As everywhere, but bytes in units that are read more easily."""
    if name.endswith("_bytes") and isinstance(value, int) and not isinstance(value, bool):
        return size(value)
    return fact_words(value)
