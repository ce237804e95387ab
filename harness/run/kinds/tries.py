"""`explain --try`: each lever measured by an `ab` of the cell as it is against the cell with that flag.

A try is a run of its own, below the results as every other; the run of `explain` keeps its id, so that it can be shown
there. What one try comes to changes nothing of the rest.
"""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.analysis.advice import Lever, levers_of
from harness.analysis.explain import explanations_of
from harness.analysis.tries import Try, tries_of
from harness.errors import HarnessError, Interrupted
from harness.record.explain import ExplainPlan, TryRecord
from harness.record.reading import MANIFEST_NAME, load_manifest, load_run
from harness.record.store import RunStore
from harness.run import runner
from harness.run.kinds import explain
from harness.run.kinds.ab import AbRun, decide_as_planned, planned_decision
from harness.run.kinds.decision import settings_for
from harness.run.kinds.sides import Side, sides_of
from harness.run.progress import Progress, Quiet
from harness.run.request import names_for
from harness.spec.engines import engine_for
from harness.spec.recipe import flag_of, keys_of, settings_of
from harness.spec.settings import SETTINGS
from harness.spec.sweep import Sweep
from harness.trial.engines import refused_by

MOST_TRIES = 3
"""Levers that get a verdict; one that cannot be measured here leaves its place to the next."""


def try_levers(
    path: Path, progress: Callable[[], Progress] = Quiet, say: Callable[[str], None] = lambda _: None
) -> tuple[Try, ...]:
    """Measure what is missing of the levers of the finished `explain` run at `path`; all of its tries.

    `progress` makes a listener for each, `say` is told a line before each. Raises Interrupted, with how to go on.
    """
    run = load_run(path)
    sweep = run.manifest.sweep
    found = explanations_of(run)
    levers = levers_of(found, lambda cell: names_for(cell, sweep))
    if not levers:
        is_known = any(one.all_binding or one.open_parts for one in found)
        why = "no flag is left for what the steps are bound by" if is_known else "what binds the steps is not known"
        say(f"nothing to try: {why}")
    for lever in levers:
        tries = {(one.record.cell_id, one.record.setting): one for one in _tries(path)}
        if sum(one.judged for one in tries.values()) >= MOST_TRIES:
            break
        earlier = tries.get((lever.cell.cell_id, lever.setting))
        if earlier is not None and not _was_stopped(path, earlier.record):
            continue
        say(f"trying {lever.setting} on {lever.cell.label}, for its {lever.part}")
        try:
            _measure(path, sweep, lever, earlier, progress())
        except Interrupted as error:
            way = f"python -m harness explain --try --resume {shlex.quote(str(path))}"
            raise Interrupted(f"interrupted; what was measured is kept; go on with: {way}") from error
    return _tries(path)


def _tries(path: Path) -> tuple[Try, ...]:
    return tries_of(load_run(path), path.parent)


def _was_stopped(path: Path, record: TryRecord) -> bool:
    """Whether the try was begun and neither ended nor failed."""
    if record.run_id is None or record.reason is not None:
        return False
    folder = path.parent / record.run_id
    return not (folder / MANIFEST_NAME).is_file() or load_manifest(folder).status != "finished"


def _measure(path: Path, sweep: Sweep, lever: Lever, earlier: Try | None, progress: Progress) -> None:
    """Begin the try's run or go on with it. Its errors are kept in its record; Interrupted is raised."""
    record = TryRecord(cell_id=lever.cell.cell_id, part=lever.part, setting=lever.setting)
    results = path.parent
    try:
        if earlier is not None and earlier.record.run_id is not None and earlier.comparison is not None:
            record = earlier.record
            runner.resume_as(AbRun, results / earlier.record.run_id, progress)
            return
        sides, command = _sides(lever, sweep)
        manifest = planned_decision(sides, settings_for(results), command)
        record = record.model_copy(update={"run_id": manifest.run_id})
        _note(path, record)
        decide_as_planned(sides, manifest, results, progress)
    except Interrupted:
        raise
    except HarnessError as error:
        kept = record.run_id is not None and (results / record.run_id / MANIFEST_NAME).is_file()
        _note(path, record.model_copy(update={"reason": str(error), "run_id": record.run_id if kept else None}))


def _sides(lever: Lever, sweep: Sweep) -> tuple[tuple[Side, Side], list[str]]:
    """The cell, the cell with the lever, and the command line that compares them. UsageError as `ab` has them."""
    engine = engine_for(lever.cell, sweep)
    settings = settings_of(lever.cell, sweep, engine, refused_by(engine))
    asked = [key for key in settings if not SETTINGS[key[0]].of_sides and key[2] != _OURS.get(key[0])]
    spelled = [*keys_of(lever.cell, sweep), *asked]
    base: dict[str, Any] = {key: value for key, _, value in spelled}
    command = ["harness", "ab", *(word for one in spelled for word in flag_of(one)), "--b", lever.setting]
    return sides_of(base, [], [lever.setting], windowed=True), command


_OURS = explain.OF_EXPLAIN
"""Settings of `explain` that are not for a comparison, which has its own; others were asked for."""


def _note(path: Path, record: TryRecord) -> None:
    """Keep the record in the manifest of the run at `path`, in the place of an earlier one of the same lever."""
    with RunStore.open_for_resume(path) as store:
        plan = store.manifest.part(ExplainPlan)
        tries = {(one.cell_id, one.setting): one for one in [*plan.tries, record]}
        plan = plan.model_copy(update={"tries": list(tries.values())})
        store.update_manifest(store.manifest.model_copy(update={"explain": plan}))
