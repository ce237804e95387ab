"""`harness faults`: what a killed worker, a frozen one, a cut link cost, by strategy and interval of checkpoints."""

import sys
from pathlib import Path
from typing import Any

from harness.cli._completion import told_names
from harness.cli._flags import UNUSED, run_to_resume
from harness.cli._options import RESULTS, argument, option, resume_option, with_names
from harness.errors import NothingMeasured
from harness.spec.faults import HELP_OF_FAULTS, LISTS, Faults, faults_from
from harness.spec.sweep import load_sweep
from harness.spec.text import value_from
from harness.visible import json_text

VERB = "faults"
HELP = "Kill workers, freeze them, cut links: what each strategy loses, and how soon it trains again, rightly."
EXAMPLES = "Example: harness faults --strategy multi_worker_mirrored --fault kill_worker --checkpoint-every 0,20"


def command(**given: Any) -> int:
    """Run the verb."""
    flags = {key: _text(given[key]) for key in Faults.model_fields if given[key] not in UNUSED}
    earlier = run_to_resume(given)
    if given["dry_run"]:
        return _dry_run(_settings(given["spec"], flags), given["json"])
    from harness.cli.show import tell
    from harness.record.fault_log import load_faults
    from harness.record.reading import load_run
    from harness.run.kinds.faults.progress import FaultLines
    from harness.run.kinds.faults.run import measure_faults
    from harness.run.resume import resume

    lines = FaultLines(quiet=given["quiet"] or given["json"])
    if earlier is None:
        path = measure_faults(_settings(given["spec"], flags), given["results"], ["harness", *sys.argv[1:]], lines)
    else:
        resume("faults", path := earlier, lines)
    tell(load_run(path), given["results"], given["json"])
    records = load_faults(path)
    if not any(record.measured for record in records):
        raise NothingMeasured.of(f"{record.status}: {record.reason}" for record in records)
    return 0


def _text(given: str | list[str]) -> str:
    """What a flag was given: of one that takes a list, and is given several times, all."""
    return given if isinstance(given, str) else ",".join(given)


def _settings(spec: Path | None, flags: dict[str, str]) -> Faults:
    values = load_sweep(spec) if spec is not None else {}
    values.update({key: value_from(key, text, Faults) for key, text in flags.items()})
    return faults_from(values, "faults" if spec is None else str(spec) if not flags else f"{spec} and flags")


def _dry_run(settings: Faults, json_out: bool) -> int:
    """Print the jobs, what makes no sense, and an estimate; write nothing."""
    from harness.run.kinds.faults.run import estimate_s
    from harness.run.kinds.faults.scenarios import inapplicable, plan_jobs
    from harness.run.process.preflight import refuse_missing_code
    from harness.run.progress import duration

    planned = plan_jobs(settings)
    refuse_missing_code(planned.cells, planned.sweep)
    cells = {cell.cell_id: cell for cell in planned.cells}
    expected = estimate_s(settings, planned.faults.jobs, cells)
    if json_out:
        plan = {
            **planned.faults.model_dump(mode="json"),
            "estimate_s": round(expected, 1),
            "sha256": planned.plan.sha256,
        }
        print(json_text(plan), end="")
        return 0
    print(f"{len(planned.faults.jobs)} jobs of {settings.steps} steps, about {duration(expected)}")
    for job in planned.faults.jobs:
        reason = inapplicable(cells[job.cell_id], job.fault)
        when = f" at step {job.fault_step}" if job.fault_step is not None else ""
        print(f"  repeat {job.repeat + 1}: {job.scenario}{f' (not run: {reason})' if reason else when}")
    print(f"seed {settings.seed}, plan {planned.plan.sha256[:12]}")
    return 0


def _told(key: str) -> str:
    """The names that a key takes; of strategies those that faults are done to, and why not to the others."""
    if key != "strategy":
        return told_names(key)
    from harness.trial.engines import catalogue_of

    strategies = catalogue_of().strategies
    able = ", ".join(name for name, traits in strategies.items() if not traits.no_faults)
    refused = [f"not {name}: {traits.no_faults}" for name, traits in strategies.items() if traits.no_faults]
    return "; ".join([able, *refused])


COMMAND = with_names(_told)
FLAGS = [
    argument("spec", Path | None, "A spec, see benchmarks/faults.toml.", "[SPEC.toml]"),
    *(
        option(key, (list[str] if key in LISTS else str) | None, text, metavar="VALUE")
        for key, text in HELP_OF_FAULTS.items()
    ),
    RESULTS,
    resume_option("Run only what a run still misses.", "faults"),
    option("dry_run", bool, "Print the jobs, their order and an estimate.", False),
    option("quiet", bool, "Print the result only.", False),
    option("json", bool, "Print one JSON object.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]
