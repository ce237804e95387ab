"""`harness sweep`: measure a matrix of cells."""

import sys
from pathlib import Path
from typing import Any

from harness.cli._completion import told_names
from harness.cli._flags import key_flags, keys_given, read_values, run_to_resume
from harness.cli._options import LIMITS_FIRST, RESULTS, argument, option, resume_option, with_names
from harness.errors import Interrupted, UsageError
from harness.spec.sweep import sweep_from

VERB = "sweep"
HELP = "Measure every combination of the axes and record it. Without SPEC and flags: the default sweep."
EXAMPLES = (
    "Examples: harness sweep --dry-run\n\n"
    "harness sweep --strategy mirrored --replicas 1,2,4 --batch-size 64 --cross-device-op auto\n\n"
    "harness sweep --resume latest"
)


def command(**given: Any) -> int:
    """Run the verb; `given` holds the flags by key."""
    flags = keys_given(given)
    results: Path = given["results"]
    earlier = run_to_resume(given, "strict", "retry")
    from harness.cli import _measuring as measuring

    if earlier is not None:
        told = {key: given[key] for key in ("quiet", "strict", "retry")}
        return measuring.resume(earlier, json_out=given["json"], **told)
    if given["retry"]:
        raise UsageError("--retry: runs again what failed in an earlier run; name that with --resume RUN")
    values, source = read_values(given["spec"], flags)
    sweep = sweep_from(values, source)
    if given["dry_run"]:
        return measuring.dry_run(sweep, given["json"])
    told = {key: given[key] for key in ("quiet", "limits", "strict")}
    return measuring.measure(sweep, results, command=sys.argv, json_out=given["json"], **told)


COMMAND = with_names(told_names)
FLAGS = [
    argument("spec", Path | None, "A spec, see benchmarks/.", "[SPEC.toml]"),
    *key_flags(),
    RESULTS,
    resume_option("Run only what a run still misses.", "sweep"),
    option("retry", bool, "With --resume: also what crashed, hung or ran out of memory.", False),
    option("dry_run", bool, "Print the matrix, the order and an estimate.", False),
    LIMITS_FIRST,
    option("strict", bool, "Exit with 1 where a cell is wrong, crashes, hangs or runs out of memory.", False),
    option("quiet", bool, "Print the answer only.", False),
    option("json", bool, "Print one JSON object.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "Interrupted", "command", "read_values"]
