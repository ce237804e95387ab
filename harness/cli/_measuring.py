"""What `sweep` does once its spec is read: plan, create the run, measure, and say the answer."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.cli._streams import drawing_stream, of_github
from harness.cli._terminal import heeds_control
from harness.plan import Estimate
from harness.record.reading import load_run
from harness.run.kinds.measure import measure_matrix
from harness.run.kinds.sweep import expected, first_plan
from harness.run.limits import renew_limits
from harness.run.process.preflight import refuse_missing_code
from harness.run.progress import Progress, Quiet, in_words
from harness.run.request import asked_matrix
from harness.run.resume import resume as resume_run
from harness.spec.expand import Matrix
from harness.spec.sweep import Sweep
from harness.visible import json_text, plural


def dry_run(sweep: Sweep, json_out: bool) -> int:
    """Print the matrix, what is left out, the order of the blocks and an estimate; write nothing."""
    matrix = asked_matrix(sweep)
    refuse_missing_code(matrix.cells, sweep)
    plan = first_plan(sweep, matrix.cells)
    whole = expected(sweep, matrix.cells)
    if json_out:
        planned = {
            "cells": [{"cell_id": c.cell_id, **c.model_dump(mode="json")} for c in matrix.cells],
            "base_cell_ids": sorted(matrix.added_base),
            "left_out": [{"combination": x.combination, "reason": x.reason} for x in matrix.left_out],
            "plan": plan.model_dump(mode="json"),
            "estimate_s": round(whole.seconds, 1),
            "trials": whole.trials,
        }
        print(json_text(planned), end="")
        return 0
    _say_matrix(matrix, whole)
    labels = {cell.cell_id: cell.label for cell in matrix.cells}
    for number, block in enumerate(plan.blocks):
        for group in block:
            print(f"block {number + 1}: " + " · ".join(labels[cell_id] for cell_id in group))
    if len(plan.blocks) < sweep.trials:
        print(f"up to {sweep.trials} blocks: after these another begins only if it should end within {sweep.time:g} s")
    print(f"seed {plan.seed}, plan {plan.sha256[:12]}")
    return 0


def _say_matrix(matrix: Matrix, whole: Estimate) -> None:
    planned = f"{plural(len(matrix.cells), 'cell')}, {plural(whole.trials, 'trial')}"
    print(f"{planned}, {in_words(whole.seconds, whole.unknown, ' if all run here')}")
    for cell in matrix.cells:
        base = "  (base case)" if cell.cell_id in matrix.added_base else ""
        where = ", ".join(filter(None, dict.fromkeys((cell.subject, cell.data_set, cell.shape.device))))
        print(f"  {cell.cell_id}  {cell.label}  {where}{base}")
    if matrix.left_out:
        print(f"left out, {len(matrix.left_out)}:")
    for item in matrix.left_out:
        print(f"  {item.words}")


def measure(
    sweep: Sweep, results: Path, quiet: bool, json_out: bool, command: Sequence[str], limits: bool, strict: bool
) -> int:
    """Run a new sweep, where `limits` after what the machine can do at most; returns the exit code."""
    progress = progress_for(quiet, json_out, results)
    matrix = asked_matrix(sweep)
    if limits:
        renew_limits(results, quiet or json_out)
    return _tell(measure_matrix(sweep, matrix, results, ["harness", *command[1:]], progress), json_out, strict)


def resume(path: Path, quiet: bool, json_out: bool, strict: bool, retry: bool) -> int:
    """Run what is missing of the run at `path`, and where `retry` what failed; returns the exit code."""
    resume_run("sweep", path, progress_for(quiet, json_out, path.parent), retry)
    return _tell(path, json_out, strict)


def _tell(path: Path, json_out: bool, strict: bool) -> int:
    """The answer in a few lines, or one JSON object; 1 where a `strict` caller wants no cell to be lost.

    NothingMeasured where a finished run has no figure.
    """
    from harness.analysis.comparison.result import LOST
    from harness.analysis.summary import summarise
    from harness.report.words.answer import answer_lines
    from harness.report.words.brief import brief_lines, where_kept

    loaded = load_run(path)
    summary = summarise(loaded.manifest, loaded.trials)
    if json_out:
        statuses = dict(Counter(trial.status for trial in loaded.trials))
        lines = answer_lines(summary)
        told = {"run_id": loaded.manifest.run_id, "path": str(path), "answer": lines, "trials": statuses}
        print(json_text(told), end="")
    else:
        print("\n".join([*brief_lines(summary), *where_kept(path)]))
    if (nothing := loaded.unmeasured) is not None:
        raise nothing
    return int(strict and any(summary.counts.get(status) for status in LOST))


def progress_for(quiet: bool, json_out: bool, results: Path | None = None) -> Progress:
    """Who listens: a screen on a terminal that can move its cursor, lines elsewhere, folded in GitHub Actions."""
    if quiet or json_out:
        return Quiet()
    if of_github():
        from harness.cli._lines import GitHubGroups

        return GitHubGroups(drawing_stream())
    if not heeds_control(sys.stderr):
        from harness.cli._lines import VerdictLines

        return VerdictLines()
    from harness.cli._live import TerminalProgress

    return TerminalProgress(results=results)
