"""The working tree against another git revision, both measured now."""

import shlex
from dataclasses import replace
from pathlib import Path

from harness.analysis.comparison.ab import comparison_of_ab
from harness.errors import HarnessError, Interrupted, UsageError
from harness.looks import looks_within
from harness.pytest_plugin.baselines import proved
from harness.pytest_plugin.marks import GateCell
from harness.pytest_plugin.result import GateResult, compared_result
from harness.pytest_plugin.rules import GateRules
from harness.run.kinds.ab import decide
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import Side, sides_of
from harness.run.process.worktrees import Repository
from harness.run.progress import Progress

FLAG = "--gate-against"


def check_revision(revision: str) -> None:
    """UsageError, in one line that begins with the option, when the revision names no commit here."""
    Repository.around(Path.cwd(), FLAG).commit(revision)


def same_code(revision: str) -> str:
    """What is said where both sides are one commit, so that only noise can differ; else nothing."""
    same = Repository.around(Path.cwd(), FLAG).is_at(revision)
    return f"; both sides are {revision}, without changes" if same else ""


def sides(cell: GateCell, revision: str) -> tuple[Side, Side]:
    """Side a is the revision, side b the working tree. UsageError where a revision could make no difference."""
    try:
        a, b = sides_of({"name": cell.sweep.name, **cell.settings}, (), (), revisions=(revision, None))
    except UsageError as error:
        raise UsageError(str(error).removeprefix("--rev-a: ")) from None
    return replace(a, sweep=cell.sweep), replace(b, sweep=cell.sweep)


def measure_against(
    cell: GateCell, name: str, both: tuple[Side, Side], rules: GateRules, among: int, progress: Progress
) -> GateResult:
    """One cell of `among` on both sides, taking turns, by the looks of `harness ab`; a run of its own.

    Raises Interrupted.
    """
    looks = looks_within(rules.most) if rules.options.blocks is None else (rules.most,)
    settings = AbSettings(rules.margins, looks, among)
    try:
        run = decide(both, settings, rules.options.results, rules.command, progress)
        comparison = comparison_of_ab(run, validation=rules.validation)
    except Interrupted:
        raise
    except UsageError as error:
        return _of_one_side(cell, name, both[0].label, str(error), rules, progress)
    except HarnessError as error:
        return GateResult(name, "failed", str(error))
    return compared_result(name, comparison, _again(cell, rules), rules.place(run.path))


def _of_one_side(cell: GateCell, name: str, other: str, error: str, rules: GateRules, progress: Progress) -> GateResult:
    """A side's own code cannot be loaded. When it is the revision's, because a step is new, that is no failure.

    An error that begins with a flag is of git, not of the code: then nothing is known of the revision.
    """
    if error.startswith("--"):
        return GateResult(name, "failed", error.replace("--rev-a", FLAG))
    alone = proved({cell.key: name}, [cell], rules, progress)[cell.key]
    if alone.end not in ("proved", "unproved"):
        return alone
    ours = f"unproved ({alone.reason})" if alone.unproved else "right"
    reason = f"{other} cannot run it, so there is nothing to compare with ({error}); the working tree's is {ours}"
    return GateResult(name, "skipped", reason, records=alone.records)


def _again(cell: GateCell, rules: GateRules) -> str:
    """The command that measures it again: `harness ab`, or pytest for a step of the user's own."""
    revision, most = shlex.quote(rules.options.against or ""), rules.most
    planned = rules.options.blocks is None
    if cell.is_own_step:
        blocks = f"--gate-{'max-blocks' if planned else 'blocks'} {most}"
        flags = rules.flags.replace(" --", " --gate-")
        return f"python -m pytest {shlex.quote(cell.test)} --gate-against {revision}{flags} {blocks}"
    blocks = f"--{'max-blocks' if planned else 'looks'} {most}"
    return f"python -m harness ab {cell.flags} --rev-a {revision}{rules.flags} {blocks}"
