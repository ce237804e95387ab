"""`harness doctor`: what this machine can run, why not the rest, and what makes its timings bad."""

from typing import Annotated, Any

import typer

from harness.visible import json_text

VERB = "doctor"
EXAMPLES = "Examples: harness doctor\n\nharness doctor --json | jq '.warnings'"
HELP = "Say what this machine can run and why not the rest, and which settings make timings bad."


def command(
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from harness.environment import describe
    from harness.run.doctor import examine
    from harness.trial.engines import catalogue_of

    machine = describe()
    if json_out:
        answer: dict[str, Any] = {
            "tried": [vars(finding) for finding in examine(catalogue_of())],
            "warnings": list(machine.warnings),
            "facts": dict(machine.facts),
        }
        print(json_text(answer), end="")
        return 0
    print("What can run here (each tried in a process of its own)")
    for finding in examine(catalogue_of()):
        verdict = {"ok": "yes", "unsupported": "no"}.get(finding.status, finding.status.replace("_", " "))
        reason = f": {finding.reason}" if finding.reason else ""
        print(f"  {finding.kind:<16} {finding.name:<34} {verdict}{reason}", flush=True)
    print("\nWhat makes timings bad here" if machine.warnings else "\nNothing found that makes timings bad")
    for warning in machine.warnings:
        print(f"  - {warning}")
    print("\nThis machine")
    for key, value in machine.facts.items():
        if value is not None:
            print(f"  {key}: {value}")
    return 0
