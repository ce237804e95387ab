"""`harness ab`: two sides measured alive together, and a verdict."""

import inspect
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli._completion import runs_of
from harness.cli._flags import key_flags, keys_given, option, refuse_beside_resume, signed
from harness.errors import UsageError
from harness.stages import MAX_BLOCKS, PILOT_BLOCKS, pilot_within

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.record.reading import Run
    from harness.run.progress.base import Progress

VERB = "ab"
HELP = "Decide A against B: two sides, alive together, taking turns, until the plan is done. Exit 1: B is slower."
EXAMPLES = (
    "Example: harness ab --strategy mirrored --replicas 2 "
    "--a cross_device_op=auto --b cross_device_op=hierarchical_copy"
)
NOT_TAKEN = ("trials", "half_width", "max_trials", "live_trials", "trace")
"""Keys of a spec that have no meaning here."""
ON_RESUME = ("resume", "results", "strict", "quiet", "json")
"""Flags that go with --resume."""


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.cli._measuring import progress_for
    from harness.record.reading import load_run, resolve_run
    from harness.report.kinds.ab import comparison_of
    from harness.run.kinds.ab import AbRun
    from harness.run.runner import resume

    began = time.monotonic()
    flags = keys_given(given, without=NOT_TAKEN)
    progress = progress_for(given["quiet"], given["json"])
    results: Path = given["results"]
    if given["resume"] is not None:
        if given["spec_a"] is not None:
            raise UsageError("--resume: goes on with a run as it was planned; it takes no SPEC")
        refuse_beside_resume(given, without=ON_RESUME)
        path = resolve_run(given["resume"], results)
        resume(AbRun, path, progress)
        run = load_run(path)
    else:
        run = _decide(flags, given, progress)
    comparison = comparison_of(run, results)
    _tell(comparison, run.path, given["json"], time.monotonic() - began)
    return comparison.exit_code(given["strict"])


def _decide(flags: dict[str, str], given: dict[str, Any], progress: "Progress") -> "Run":
    from harness.analysis.comparison.margins import choose_margins, parse_share
    from harness.cli._sides import read_sides
    from harness.environment import hardware
    from harness.record.validation import find_validation
    from harness.run.kinds.ab import decide
    from harness.run.kinds.decision import WINDOWING, AbSettings

    results: Path = given["results"]
    specs = [spec for spec in (given["spec_a"], given["spec_b"]) if spec is not None]
    sides = read_sides(
        specs, flags, given["a"] or (), given["b"] or (), defaults=WINDOWING,
        pythons=(given["python_a"], given["python_b"]), revisions=(given["rev_a"], given["rev_b"]),
    )  # fmt: skip
    machine = hardware.facts().get("machine.id")
    validation = find_validation(results, machine if isinstance(machine, str) else None)
    asked = (("--delta", given["delta"]), ("--epsilon", given["epsilon"]))
    delta, epsilon = (None if text is None else parse_share(key, text) for key, text in asked)
    pilot, most = given["pilot_blocks"], given["max_blocks"]
    settings = AbSettings(
        choose_margins(validation, unpaired=False, delta=delta, epsilon=epsilon),
        pilot_blocks=pilot_within(most or MAX_BLOCKS) if pilot is None else pilot,
        max_blocks=max(MAX_BLOCKS, pilot or 0) if most is None else most,
        half_width=given["half_width"],
        time_s=given["time"],
    )
    return decide(sides, settings, results, ["harness", *sys.argv[1:]], progress)


def _tell(comparison: "Comparison", path: Path, json_out: bool, wall_s: float) -> None:
    """The verdict, and where its records are."""
    from harness.cli._table import surface
    from harness.report.comparison import renderer
    from harness.report.comparison.as_json import comparison_json
    from harness.run.progress.base import duration

    if json_out:
        whole = comparison_json(comparison)
        print(json.dumps({**whole, "wall_s": round(wall_s, 1), "path": str(path)}, indent=2, ensure_ascii=False))
        return
    print(renderer("terminal").render(comparison, surface()), end="")
    print(f"{duration(wall_s)} from start to verdict; records: {path}")
    print(f"report: python -m harness report {path}")


def _signature() -> list[inspect.Parameter]:
    def spec(name: str) -> inspect.Parameter:
        text = "Two specs of one cell each, one a side; or one that both share." if name == "spec_a" else ""
        kind = Annotated[Path | None, typer.Argument(metavar=f"[{name.upper()}.toml]", help=text, show_default=False)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)

    repeated = list[str] | None
    return [
        spec("spec_a"),
        spec("spec_b"),
        option("a", None, repeated, "--a", metavar="KEY=VALUE", help="A key of side A alone; env.NAME=VALUE too."),
        option("b", None, repeated, "--b", metavar="KEY=VALUE", help="A key of side B alone; env.NAME=VALUE too."),
        option("python_a", None, str | None, "--python-a", metavar="PYTHON", help="Interpreter of side A."),
        option("python_b", None, str | None, "--python-b", metavar="PYTHON", help="Interpreter of side B."),
        option("rev_a", None, str | None, "--rev-a", metavar="REV", help="Git revision of side A; default: as it is."),
        option("rev_b", None, str | None, "--rev-b", metavar="REV", help="Git revision of side B; default: as it is."),
        option("delta", None, str | None, "--delta", metavar="SHARE", help="Smallest difference that counts."),
        option("epsilon", None, str | None, "--epsilon", metavar="SHARE", help="Margin of equivalence."),
        _count("pilot_blocks", f"Blocks of the first stage. Default: {PILOT_BLOCKS}."),
        _count("max_blocks", f"Most blocks of both stages. Default: {MAX_BLOCKS}."),
        option("half_width", None, float | None, "--half-width", min=1e-4, max=0.9, help="Half-width to plan for."),
        option("time", None, float | None, "--time", min=1, metavar="SECONDS", help="Begin no block after so long."),
        option("strict", False, bool, "--strict", help="Exit 3 when it ends undecided."),
        option("results", Path("results"), Path, "--results", metavar="DIR", help="Folder that runs are kept in."),
        option(
            "resume",
            None,
            str | None,
            "--resume",
            metavar="RUN",
            help="Go on with a run that was stopped.",
            autocompletion=runs_of("ab"),
        ),
        option("quiet", False, bool, "--quiet", help="Print the verdict only."),
        option("json", False, bool, "--json", help="Print one JSON object."),
        *key_flags(without=NOT_TAKEN),
    ]


def _count(name: str, text: str) -> inspect.Parameter:
    return option(name, None, int | None, f"--{name.replace('_', '-')}", min=2, metavar="BLOCKS", help=text)


signed(command, _signature())

__all__ = ["EXAMPLES", "HELP", "VERB", "command"]
