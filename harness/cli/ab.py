"""`harness ab`: two sides measured alive together, and a verdict."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli._completion import told_names
from harness.cli._flags import key_flags, keys_given, run_to_resume
from harness.cli._options import RESULTS, argument, option, resume_option, with_names
from harness.errors import UsageError
from harness.looks import MAX_BLOCKS, MOST_BLOCKS, QUIET_BLOCKS
from harness.spec.sweep import OF_SWEEPS
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.record.reading import Run
    from harness.run.progress import Progress

VERB = "ab"
HELP = (
    "Decide A against B: two sides, alive together, taking turns, until a look is clear. Exit 1: B is slower or fails."
)
EXAMPLES = (
    "Example: harness ab --strategy mirrored --replicas 2 "
    "--a cross_device_op=auto --b cross_device_op=hierarchical_copy"
)


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.cli._measuring import progress_for
    from harness.record.reading import load_run
    from harness.report.kinds.ab import comparison_of
    from harness.run.resume import resume

    began = time.monotonic()
    flags = keys_given(given, without=OF_SWEEPS)
    progress = progress_for(given["quiet"], given["json"])
    results: Path = given["results"]
    earlier = run_to_resume(given, "strict")
    if earlier is None:
        run = _decide(flags, given, progress)
    else:
        resume("ab", earlier, progress)
        run = load_run(earlier)
    comparison = comparison_of(run, results)
    _tell(comparison, run.path, given["json"], time.monotonic() - began)
    return comparison.exit_code(given["strict"])


def _decide(flags: dict[str, str], given: dict[str, Any], progress: "Progress") -> "Run":
    from harness.analysis.comparison.margins import parse_share
    from harness.cli._sides import read_sides
    from harness.run.kinds.ab import decide
    from harness.run.kinds.decision import settings_for
    from harness.run.kinds.sides import same_commit

    results: Path = given["results"]
    specs = [spec for spec in (given["spec_a"], given["spec_b"]) if spec is not None]
    sides = read_sides(
        specs,
        flags,
        given["a"] or (),
        given["b"] or (),
        pythons=(given["python_a"], given["python_b"]),
        revisions=(given["rev_a"], given["rev_b"]),
    )
    if not given["quiet"] and (same := same_commit(sides)) is not None:
        sys.stderr.write(f"{same}\n")
    asked = (("--delta", given["delta"]), ("--epsilon", given["epsilon"]))
    delta, epsilon = (None if text is None else parse_share(key, text) for key, text in asked)
    settings = settings_for(results, delta, epsilon, _looks(given["looks"]), given["max_blocks"], given["time"])
    return decide(sides, settings, results, ["harness", *sys.argv[1:]], progress)


def _looks(text: str | None) -> tuple[int, ...]:
    """`5,8,12` as numbers; empty where nothing is given."""
    try:
        return tuple(int(part) for part in text.split(",")) if text is not None else ()
    except ValueError:
        raise UsageError(f"--looks: given '{text}', expected numbers of blocks such as 5,8,12") from None


def _tell(comparison: "Comparison", path: Path, json_out: bool, wall_s: float) -> None:
    """The verdict, and where its records are."""
    from harness.cli._table import surface
    from harness.report.comparison import renderer
    from harness.report.comparison.as_json import comparison_json
    from harness.run.progress import duration

    if json_out:
        whole = comparison_json(comparison)
        print(json_text({**whole, "wall_s": round(wall_s, 1), "path": str(path)}), end="")
        return
    print(renderer("terminal").render(comparison, surface()), end="")
    print(f"{duration(wall_s)} from start to verdict; records: {path}")
    print(f"report: python -m harness report {path}")


_MOST = f"Most blocks. Default: {MAX_BLOCKS}; {QUIET_BLOCKS} on a machine that validate found quiet."
_SPECS = "Two specs of one cell each, one a side; or one that both share."
COMMAND = with_names(told_names)
FLAGS = [
    argument("spec_a", Path | None, _SPECS, "[SPEC_A.toml]", show_default=False),
    argument("spec_b", Path | None, "", "[SPEC_B.toml]", show_default=False),
    option("a", list[str] | None, "A key of side A alone; env.NAME=VALUE too.", metavar="KEY=VALUE"),
    option("b", list[str] | None, "A key of side B alone; env.NAME=VALUE too.", metavar="KEY=VALUE"),
    option("python_a", str | None, "Interpreter of side A.", metavar="PYTHON"),
    option("python_b", str | None, "Interpreter of side B.", metavar="PYTHON"),
    option("rev_a", str | None, "Git revision of side A; default: as it is.", metavar="REV"),
    option("rev_b", str | None, "Git revision of side B; default: as it is.", metavar="REV"),
    option("delta", str | None, "Smallest difference that counts.", metavar="SHARE"),
    option("epsilon", str | None, "Margin of equivalence.", metavar="SHARE"),
    option("max_blocks", int | None, _MOST, min=2, max=MOST_BLOCKS, metavar="BLOCKS"),
    option("looks", str | None, "Blocks after which to look. Default: by --max-blocks.", metavar="5,8,12"),
    option("time", float | None, "Begin no block after so long.", min=1, metavar="SECONDS"),
    option("strict", bool, "Exit 3 when it ends undecided, or B is unproved and A proved.", False),
    RESULTS,
    resume_option("Go on with a run that was stopped.", "ab"),
    option("quiet", bool, "Print the verdict only.", False),
    option("json", bool, "Print one JSON object.", False),
    *key_flags(without=OF_SWEEPS),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]
