"""`harness compare`: two runs, or one run along an axis, each difference with its interval and a verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from harness.cli._completion import one_of, run_ids
from harness.cli._options import RESULTS, Flag, argument, option
from harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.analysis.comparison.asked import ComparisonAsked

VERB = "compare"
HELP = (
    "Compare two runs cell by cell, or the cells of one run along an axis: is B faster or slower than A?\n\n"
    "Every cell that both runs have gets the ratio of its throughputs with a 95 % interval, and a verdict: faster, "
    "slower, equivalent, undecided or invalid. An ab run by itself shows its own verdict again.\n\n"
    "Exit codes: 0 nothing is slower; 1 something is slower, or was measured in A and in B is wrong or fails; 3 with "
    "--strict, something is undecided, unproved in B and proved in A, or measured in A and not in B; 4 nothing is "
    "valid, or the runs cannot be compared."
)
EXAMPLES = (
    "Examples: harness compare latest~1 latest --output change.md\n\n"
    "harness compare latest --along cross_device_op --format html --output ops.html"
)


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.cli._comparison import deliver, format_of
    from harness.record.reading import load_run, resolve_run

    chosen = format_of(given["format"], given["json"], given["output"])
    asked = _asked(given)
    results: Path = given["results"]
    a = load_run(resolve_run(given["run_a"], results))
    b = None if given["run_b"] is None else load_run(resolve_run(given["run_b"], results))
    nothing = "RUN_B: expected a second run, or --along AXIS to compare the cells of one run"
    comparison = asked.comparison(a, b, results, nothing)
    deliver(comparison, chosen, given["output"])
    return comparison.exit_code(given["strict"])


def _asked(given: dict[str, Any]) -> "ComparisonAsked":
    from harness.analysis.comparison import parse_share
    from harness.analysis.comparison.asked import ComparisonAsked
    from harness.analysis.estimates.verdict import correction_of
    from harness.run.request import names_for

    correction = correction_of("--correction", given["correction"])
    if given["run_b"] is not None and given["along"] is not None:
        raise UsageError("--along: compares cells of one run; it takes no RUN_B")
    if given["across_machines"] and given["run_b"] is None:
        raise UsageError("--across-machines: is for two runs; RUN_B names the other")
    if given["base"] is not None and given["along"] is None:
        raise UsageError("--base: is a value of the axis that --along names")
    shares = ((key, given[key]) for key in ("delta", "epsilon"))
    delta, epsilon = (None if text is None else parse_share(f"--{key}", text) for key, text in shares)
    across = given["across_machines"]
    return ComparisonAsked(given["along"], given["base"], delta, epsilon, correction, across, names_for=names_for)


def _axes() -> "Iterable[str]":
    from harness.analysis.comparison.axis import AXIS_NAMES

    return AXIS_NAMES


def _corrections() -> "Iterable[str]":
    from harness.analysis.estimates.verdict import Correction

    return get_args(Correction)


def _formats() -> "Iterable[str]":
    from harness.report.comparison import FORMATS

    return FORMATS


_RUN_A = "Side A, the one compared with: a folder, an id, the beginning of either, a name, 'latest' or 'latest~1'."
_RUN_B = "Side B, the one in question. Not with --along."
_BASE = "The value of AXIS that is side A. Default: the first in the spec; auto for cross_device_op."
_DELTA = (
    "Smallest difference that counts: 0.01 or 1%. Default: 1%, or the noise floor that validate measured on this "
    "machine if that is larger."
)
_CORRECTION = "For many comparisons at once: fdr (few of the alarms are false), holm (not one is), none."
_FORMAT = "terminal, markdown, json, html. Default: by the end of FILE's name, else terminal."
FLAGS = [
    argument("run_a", str, _RUN_A, "RUN_A", Flag.empty, show_default=False, autocompletion=run_ids),
    argument("run_b", str | None, _RUN_B, "RUN_B", show_default=False, autocompletion=run_ids),
    option(
        "along",
        str | None,
        "Compare RUN_A's cells that differ in this key only, such as cross_device_op.",
        metavar="AXIS",
        autocompletion=one_of(_axes),
    ),
    option("base", str | None, _BASE, metavar="VALUE"),
    option("delta", str | None, _DELTA, metavar="SHARE"),
    option(
        "epsilon",
        str | None,
        "Margin of equivalence, at least delta. Default: 3%, or delta if that is larger.",
        metavar="SHARE",
    ),
    option("correction", str, _CORRECTION, "fdr", metavar="NAME", autocompletion=one_of(_corrections)),
    option("across_machines", bool, "Compare although the machines differ in what decides speed.", False),
    option(
        "strict",
        bool,
        "Exit with 3 where none is slower and one is undecided, or B did not prove or measure it and A did.",
        False,
    ),
    option("format", str | None, _FORMAT, metavar="FORMAT", autocompletion=one_of(_formats)),
    option("output", Path | None, "Write there. Default: standard output.", metavar="FILE"),
    option("json", bool, "The same as --format json.", False),
    RESULTS,
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]
