"""How each figure was computed: the protocol's formulas with this run's numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis import RunSummary
from harness.analysis.estimates.trend import LEVEL, MATTERS
from harness.analysis.estimates.windows import FENCE
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.record.validation import ValidationRecord
from harness.report.tables.validation import summary_words, turn_words
from harness.report.words.text import IN_THESE_MINUTES, listed, not_tried_again, percent, seconds, sentence, significant
from harness.visible import plural


@dataclass(frozen=True)
class Method:
    """One figure: its formula, and what went into it in this run."""

    figure: str
    formula: str
    here: str = ""


def methods(manifest: RunManifest, trials: Sequence[TrialRecord], summary: RunSummary) -> tuple[Method, ...]:
    """Every figure on the page, in the order of the page."""
    return (
        *_design(manifest, trials, summary),
        *_timing(manifest, trials, summary),
        *_estimates(),
        *_decisions(summary),
        _noise(summary),
    )


def _design(manifest: RunManifest, trials: Iterable[TrialRecord], summary: RunSummary) -> tuple[Method, ...]:
    ways = sorted({trial.interleaving for trial in trials})
    seeds = listed(dict.fromkeys(str(plan.seed) for plan in manifest.plans))
    seals = listed(plan.sha256[:12] for plan in manifest.plans)
    return (
        Method(
            "Trial, block, turns",
            "A trial is one fresh process of one cell. The trials of a block are alive together and take turns at "
            "the clock, one window each, in a seeded random order, round after round.",
            f"{recorded_words(summary)}. {plural(summary.blocks, 'block')}; interleaving: {listed(ways) or 'none'}; "
            f"seed {seeds or 'none'}; plan sealed before it ran, SHA-256 {seals or 'none'}…",
        ),
        Method(
            "Correctness gate",
            "Before timing: the exact sum over replicas through the batched gradient path, and two updates against "
            "a one-device reference. After timing: one more update against it, the reported loss, replicas agree, "
            "updates applied = scheduled. One failure makes the whole cell wrong: no throughput, no rank, no curve.",
            f"{plural(summary.counts.get('wrong_result', 0), 'cell')} failed it{_unproved_words(summary)}.",
        ),
    )


def _unproved_words(summary: RunSummary) -> str:
    """How many cells it could not prove; nothing where it proved all."""
    count = summary.counts.get("unproved", 0)
    return f"; {plural(count, 'cell')} passed it and {'is' if count == 1 else 'are'} unproved" if count else ""


def _warm_up(trials: Iterable[TrialRecord]) -> str:
    """How many windows of warm-up trials had: earlier versions ended it when a trial seemed steady."""
    found = sorted({trial.windows.measured_from for trial in trials if trial.measured and trial.windows is not None})
    if not found:
        return "no window"
    return plural(found[0], "window") if len(found) == 1 else f"{found[0]} to {plural(found[-1], 'window')}"


def _lasting(summary: RunSummary) -> str:
    """`84.1 ms to 151 ms (medians of cells)`; empty where no window was measured."""
    medians = [cell.measured.windows.window_s for cell in summary.cells if cell.measured and cell.measured.windows]
    ends = dict.fromkeys(seconds(of(medians)) for of in (min, max)) if medians else {}
    return f"{' to '.join(ends)} ({'medians of cells' if len(medians) > 1 else 'median'})" if medians else ""


def windows_words(manifest: RunManifest, summary: RunSummary) -> str:
    """How many windows were asked for, how long each was to be, and how long they were."""
    sweep, lasted = manifest.sweep, _lasting(summary)
    text = f"{plural(sweep.windows, 'window')} each, sized for {seconds(sweep.window)}"
    return f"{text}, which lasted {lasted}" if lasted else text


def _timing(manifest: RunManifest, trials: Sequence[TrialRecord], summary: RunSummary) -> tuple[Method, ...]:
    windows = [cell.measured.windows for cell in summary.cells if cell.measured and cell.measured.windows]
    sweep = manifest.sweep
    trends = sum(cell.measured.trend is not None for cell in summary.cells if cell.measured)
    measured = sum(cell.measured is not None for cell in summary.cells)
    steps = "no window was measured"
    if windows:
        low, high = min(item.steps[0] for item in windows), max(item.steps[1] for item in windows)
        steps = f"{low} to {high} steps a window, which last {_lasting(summary)}"
    count, outliers = sum(item.count for item in windows), sum(item.outliers for item in windows)
    return (
        Method(
            "Window",
            "Synchronise all replicas, t₀, K steps, synchronise, t₁. No window is dropped.",
            f"{sweep.windows} windows of {seconds(sweep.window)} a trial asked for; measured: {steps}.",
        ),
        Method(
            "Warm-up, and trends within trials",
            "The first windows of a trial are warm-up. A trend in the rest is looked for in all trials of a cell: the "
            "rank correlation of windows with their order, each divided by its group's median in the round. Student's "
            f"t over trials, {percent(LEVEL)} in all cells together (Holm). Told where it changes windows by "
            f"{percent(MATTERS)} or more.",
            f"{_warm_up(trials)} of warm-up a trial; a trend in {trends} of {plural(measured, 'cell')}.",
        ),
        Method(
            "Outlying windows",
            f"More than {FENCE} interquartile ranges beyond a quartile of the trial (Tukey): counted, never removed.",
            f"{outliers:,} of {plural(count, 'measured window')}.",
        ),
    )


def _estimates() -> tuple[Method, ...]:
    """The figures of a cell, and of one against another."""
    return (
        Method(
            "Throughput X",
            "Per trial τ = Σ window time ÷ Σ steps. Per cell over P trials y = ln τ: X = G·exp(−ȳ), 95 % interval "
            f"{IN_THESE_MINUTES} G·exp(−ȳ ± t(P−1)·s/√P), G the global batch. With one trial there is no interval.",
        ),
        Method(
            "Speed-up, and any ratio",
            "exp of the mean difference of ln X within groups that took turns, with a paired t interval; through the "
            "base case that ran in every group where two cells never met; Welch's t where neither is possible. Cells "
            "that are read together (the ranking, ops side by side, whether distributing pays): least squares of ln X "
            "= cell + group, with each cell's variance moderated by what all cells have in common (Smyth), and a noisy "
            "cell's own (Grubbs).",
        ),
        Method(
            "Efficiency E, resource-bounded E_r",
            "E(n) = X(n)·n₀ ÷ (n·X(n₀)), for weak scaling (per-replica batch fixed; MLPerf HPC uses the word "
            "otherwise) and strong scaling (global batch fixed). E_r(n) = X(n)·min(n₀, p) ÷ (min(n, p)·X(n₀)), p the "
            "number of processors that the replicas have between them.",
        ),
    )


def _decisions(summary: RunSummary) -> tuple[Method, ...]:
    """What is concluded of all cells of a ranking together."""
    rankings = [len(work.ranking) for work in summary.workloads]
    compared = listed(str(max(0, size - 1)) for size in rankings)
    return (
        Method(
            "Order, and cells that cannot be told apart from the fastest",
            "Ordered by ln X = cell + group (least squares), which takes out the machine's drift. A cell is told apart "
            "when it lies below the fastest with its whole interval: Hsu's "
            "comparison with the best, by Dunnett's one-sided 95 % limit for k − 1 comparisons and moderated variances "
            "(Smyth), of a noisier cell its own (Grubbs). The truly fastest cell is among those that are marked 95 "
            "times in 100 (simulated 94.5 or more, also where it alone scatters three times as much as the others).",
            f"Comparisons with the fastest: {compared or 'none'}.",
        ),
        Method(
            "What would separate two cells",
            "The fewest trials P with q·s/√P ≤ |d|, d the log ratio seen, s what a trial of each adds to it and q the "
            "limit above: enough in about half of such repetitions, if d is real.",
        ),
        Method(
            "Whether distributing pays",
            "Every cell with more than one replica against the fastest cell without a strategy, whatever its batch; "
            "p-values adjusted by Benjamini–Hochberg at 5 %. It pays if one is faster, does not if all are slower, "
            "and the interval of the best one's speed-up excludes 1; it is undecided otherwise. The speed-up of the "
            "fastest of them is averaged from blocks that did not choose it, and its interval allows for the choice "
            "(Dunnett).",
        ),
    )


def recorded_words(summary: RunSummary) -> str:
    """How many of the planned trials there are, and why not the rest."""
    recorded, never = summary.trials - summary.again, summary.not_run_again
    text = f"{recorded:,} of {plural(summary.planned, 'planned trial')} recorded"
    text += f", and {summary.again:,} run again" if summary.again else ""
    left = summary.planned - recorded - never
    why = [f"{left:,} did not run"] if left > 0 else []
    why += [not_tried_again(never)] if never else []
    return f"{text}; {listed(why)}" if why else text


def noise_words(summary: RunSummary) -> str:
    """How quiet the run was; empty when too few trials tell."""
    noise = summary.noise
    parts = []
    if noise.paired_deviation is not None:
        parts.append(f"paired {significant(100 * noise.paired_deviation, 2)} % ({plural(noise.pairs, 'pair')})")
    if noise.cell_deviation is not None:
        parts.append(f"unpaired {significant(100 * noise.cell_deviation, 2)} %")
    if noise.waiting_cpu_share is not None:
        parts.append(
            f"trials waiting for a turn used {significant(100 * noise.waiting_cpu_share, 2)} % of a processor each"
        )
    return "; ".join(parts)


def _noise(summary: RunSummary) -> Method:
    words = noise_words(summary)
    return Method(
        "Noise of this run",
        "Pooled standard deviation of ln(X/X_base) between blocks; unpaired: of ln X, with the machine's drift in it. "
        "Trials that wait for a turn should use no processor.",
        f"{words}." if words else "Too few trials to know.",
    )


def _found(record: ValidationRecord) -> str:
    said = [summary_words(record), *([turn_words(record)] if record.turns else [])]
    return " ".join(f"{sentence(words)}." for words in said)


def validated(record: ValidationRecord | None) -> Method:
    """What `validate` found on the machine that measured."""
    return Method(
        "How often a verdict is wrong here",
        "harness validate compares a cell with itself, and with itself slowed down on purpose, many times.",
        _found(record) if record else "No validation of this machine was found.",
    )
