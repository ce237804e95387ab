"""How sweeps of engines are run, and what of each cell that trains rightly must hold whatever the engine is."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

from harness.record.reading import Run, load_run
from harness.record.trial import TrialRecord
from harness.run.kinds.measure import measure_matrix
from harness.run.progress import Quiet
from harness.run.request import asked_matrix
from harness.spec import sweep_from
from harness.spec.expand import Matrix
from harness.trial.alone import ROUNDS
from tests.preloaded import handed_in

COMPILED_SOON = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
"""Variables with which XLA compiles a large model in half the time; its program is called as it is without them."""
OTHER_EXAMPLES = "input: worker 1 was fed other examples than seed 1 gives it, from batch 3 on"
"""What the second process says whose data come in another order behind the gate's two batches."""


def swept(
    asked: Mapping[str, Any],
    folder: Path,
    keeps: Callable[[Any], bool] = lambda _: True,
    forked: bool = True,
    variables: Mapping[str, str] = MappingProxyType({}),
    under: Sequence[str] = (),
) -> Run:
    """As a sweep of these keys, but for the base cases that it adds, since here nothing is divided by them, and for the
    cells that are not kept, with these `variables` set. Unless its fork server is to be `forked`, it is started as for
    a user. Cells without a strategy, which a sweep measures under one loop, are measured `under` these, too."""
    sweep = sweep_from(dict(asked))
    every = asked_matrix(sweep)
    kept = [cell for cell in every.cells if cell.cell_id not in every.added_base and keeps(cell)]
    alone = [cell.model_copy(update={"loop": loop}) for cell in kept if cell.is_base for loop in under]
    cells = tuple(dict.fromkeys([*kept, *alone]))
    with mock.patch.dict(os.environ, variables), handed_in(others=True) if forked else contextlib.nullcontext():
        return load_run(measure_matrix(sweep, Matrix(cells), folder, (), Quiet()))


def must_have_passed_the_whole_gate(trial: TrialRecord) -> None:
    assert (trial.status, trial.reason) == ("ok", None), trial.cell.label
    assert trial.checks.complete
    assert trial.checks.late is True
    assert trial.checks.loss is True
    assert trial.checks.updates_applied == trial.checks.updates_scheduled


def must_have_timed_each_by_itself(trial: TrialRecord) -> None:
    """Else nobody knows whom the others wait for."""
    assert trial.cluster is not None
    rounds = [member.compute_s for member in trial.cluster.members]
    assert [len(own) for own in rounds] == [ROUNDS] * trial.cell.workers
    assert min(map(min, rounds)) > 0


def must_know_its_sight(trial: TrialRecord) -> None:
    several = {"missing", "averaged"} if trial.cell.replicas_in_sync > 1 else set()
    assert trial.checks.sight is not None
    assert set(trial.checks.sight) == {"doubled", "delayed", *several}
    assert min(trial.checks.sight.values()) > 10
