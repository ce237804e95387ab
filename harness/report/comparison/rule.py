"""How the verdicts were reached: the rule with this comparison's numbers, and the formulas with their sources."""

from harness.analysis.comparison import Comparison
from harness.analysis.comparison.margins import NOISE_FLOOR
from harness.analysis.estimates.verdict import Margins
from harness.record.validation import ValidationRecord
from harness.report.comparison.words import quantity_of_rows
from harness.report.tables.validation import pooled_rate
from harness.report.words.method import Method
from harness.report.words.text import listed, percent, significant
from harness.visible import plural, printable

CORRECTIONS = {"none": "none", "fdr": "Benjamini–Hochberg, false discovery rate 5 %", "holm": "Holm, 5 % in all"}


def margin_words(margins: Margins) -> str:
    """Both margins and where δ comes from."""
    measured = margins.source.startswith(NOISE_FLOOR)
    delta = _margin(margins.delta, measured)
    epsilon = _margin(margins.epsilon, measured and margins.epsilon == margins.delta)
    return printable(f"δ = {delta} (from {margins.source}), ε = {epsilon}")


def _margin(share: float, measured: bool) -> str:
    """Two digits of a measured one; a given one has no fewer than it was given in, to judge by it again."""
    rounded = significant(100 * share, 2)
    as_given = percent(share)
    return f"{rounded} %" if measured or percent(float(rounded) / 100) == as_given else as_given


def rule_sentences(comparison: Comparison) -> tuple[str, ...]:
    """How it was judged, short enough for a pull request."""
    return (
        f"{margin_words(comparison.margins)}. Slower or faster: the whole 95 % interval of the throughput ratio lies "
        "beyond δ. Equivalent: its 90 % interval lies within ε. Undecided: neither.",
        f"Intervals: {_methods(comparison)}. {_together(comparison)}",
        *_cited(comparison.validation),
    )


FORMULAS = {
    "Ratio of throughputs": "θ = ln X_B − ln X_A, X = G ÷ τ a trial, τ = Σ window time ÷ Σ steps. Above zero B is "
    "faster. The trial is the unit of replication, never the step or the window (Hoefler & Belli, SC15).",
    "Interval": "Sides that took turns in a block: d = θ of the block, d̄ ± t(n−1)·s_d/√n (Student 1908). At a look "
    "(repeated t): at that look's own confidence, so that the intervals of all looks hold the truth 95 times in 100 "
    "(Jennison & Turnbull 1989). Planned in two stages: the pilot's s₀ and t(n₀−1) with all n (Stein 1945). Sides that "
    "never met: x̄_B − x̄_A with Welch's standard error and Satterthwaite's degrees of freedom (Welch 1947).",
    "Verdict": "In this order. Invalid: a side failed its correctness gate or gave nothing to compare. Slower, "
    "faster: the whole 95 % interval of θ lies beyond −ln(1+δ) or +ln(1+δ). Equivalent: the 90 % interval lies within "
    "±ln(1+ε), which is two one-sided tests at 5 % (Schuirmann 1987). Undecided: none of these. No difference found "
    "is not the same as equivalent.",
    "Many comparisons": "Of each row p_different = 2·P(T ≤ −(|θ| − ln(1+δ))/SE) and p_equivalent = P(T ≤ −(ln(1+ε) − "
    "|θ|)/SE). Both are adjusted over all rows: Benjamini & Hochberg 1995 bounds the share of wrong alarms among the "
    "alarms, Holm 1979 the chance of a single one. A verdict needs an adjusted p of at most 0.05; the intervals that "
    "are printed are not adjusted.",
    "Second instrument": "CPU seconds {each}, user and system time of all processes of a trial, in the same windows "
    "and judged by the same rule. Wall time gives the verdict; where the two differ, the row says what that means.",
    "Validation": "The same cell as both sides, and slow-downs planted on purpose, decided many times on this machine.",
}
"""Each by its title, with its source."""


def methods(comparison: Comparison) -> tuple[Method, ...]:
    """Every formula behind the table, with its source and this comparison's numbers."""
    numbers = {
        "Interval": f"{_methods(comparison)}.",
        "Verdict": f"{margin_words(comparison.margins)}.",
        "Many comparisons": _together(comparison),
        "Second instrument": _cpu_known(comparison),
        "Validation": " ".join(_cited(comparison.validation))
        or "There is none of this machine yet: `python -m harness validate` makes one.",
    }
    each = quantity_of_rows(comparison.rows).each
    return tuple(
        Method(title, text.replace("{each}", each), numbers.get(title, "")) for title, text in FORMULAS.items()
    )


def _methods(comparison: Comparison) -> str:
    names = dict.fromkeys(
        row.verdicts.wall.estimate.method for row in comparison.rows if row.verdicts.wall.estimate is not None
    )
    words = ["no interval (one trial)" if name == "none" else name for name in names]
    if not words:
        return "none"
    if not comparison.of_one_run:
        return f"{listed(words)}; the two runs share no blocks"
    met = "some sides never met" if "Welch t" in names else "the sides took turns"
    return f"{listed(words)}; {met}"


def _together(comparison: Comparison) -> str:
    judged = sum(row.verdicts.wall.p_different is not None for row in comparison.rows)
    if judged <= 1:
        return f"{plural(judged, 'comparison')}: nothing to correct for."
    return f"{judged} comparisons were judged together; correction: {CORRECTIONS[comparison.correction]}."


def _cpu_known(comparison: Comparison) -> str:
    known = [row for row in comparison.rows if row.verdicts.cpu is not None]
    hosts = (
        "" if all(row.on_processors for row in known) else " On accelerators it is the host's, which is not their work."
    )
    return f"Recorded for {len(known)} of {plural(len(comparison.rows), 'comparison')}.{hosts}"


def _cited(validation: ValidationRecord | None) -> tuple[str, ...]:
    if validation is None:
        return ()
    floors = [
        f"{significant(100 * floor, 2)} % {kind}"
        for kind, floor in (
            ("taking turns", validation.floor()),
            ("at different times", validation.floor(unpaired=True)),
        )
        if floor is not None
    ]
    again = [effect for effect in validation.effects if effect.plant is None]
    alarms, holds = pooled_rate(effect.false_alarms for effect in again), pooled_rate(effect.holds for effect in again)
    counted = f"{plural(alarms.count, 'false alarm')} in {alarms.of} A/A, " if again else ""
    held = f"of whose intervals {holds.count} of {holds.of} hold 0, " if holds.of else ""
    quick = " (quick)" if validation.quick else ""
    return (
        printable(
            f"validate measured on this machine, run {validation.run_id}{quick}: {counted}{held}"
            f"noise floor {listed(floors) or 'not known'}."
        ),
    )
