"""`harness sweep`: measure a matrix of cells."""

import sys
from pathlib import Path
from typing import Any

from harness.cli._flags import ON_RESUME, key_flags, keys_given, read_values, refuse_beside_resume
from harness.cli._offered import RESULTS, argument, option, resume_option
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
    spec, resume = given["spec"], given["resume"]
    results: Path = given["results"]
    if resume is not None:
        refuse_beside_resume(given, without=(*ON_RESUME, "dry_run"))
        return _resume(resume, results, given)
    from harness.cli import _measuring as measuring

    values, source = read_values(spec, flags)
    sweep = sweep_from(values, source)
    if given["dry_run"]:
        return measuring.dry_run(sweep, given["json"])
    return measuring.measure(sweep, results, quiet=given["quiet"], json_out=given["json"], command=sys.argv)


def _resume(text: str, results: Path, given: dict[str, Any]) -> int:
    from harness.cli import _measuring as measuring

    if given["dry_run"]:
        raise UsageError("--dry-run: plans a new sweep; it does not go with --resume")
    return measuring.resume(text, results, quiet=given["quiet"], json_out=given["json"])


FLAGS = [
    argument("spec", Path | None, "A spec, see benchmarks/.", "[SPEC.toml]"),
    *key_flags(),
    RESULTS,
    resume_option("Run only what a run still misses.", "sweep"),
    option("dry_run", bool, "Print the matrix, the order and an estimate.", False),
    option("quiet", bool, "Print the answer only.", False),
    option("json", bool, "Print one JSON object.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "Interrupted", "command", "read_values"]
