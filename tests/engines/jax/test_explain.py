"""`explain` of JAX's steps, on two devices of one process: what each compiled instrument lacks, and that the parts add
up."""

from pathlib import Path

import pytest

from harness.analysis.explain import explanations_of
from harness.record.explain import NO_INPUT, NO_UPDATE, REDUCTION, WHOLE
from harness.record.reading import Run
from tests.engines.explaining import one_block

pytestmark = pytest.mark.slow
LOOPS = ("jit", "shard_map")


@pytest.fixture(scope="module")
def run(jax_python: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One block of each loop's cell with every arm."""
    folder: Path = tmp_path_factory.mktemp("explain")
    cell = {"strategy": ["data_parallel"], "replicas": [2], "model": ["mlp"], "batch_size": [8], "optimizer": ["sgd"]}
    axes = {"engine": ["jax"], "loop": list(LOOPS), **cell, "engine_python": f"jax={jax_python}"}
    return one_block(folder, axes)


@pytest.mark.parametrize("loop", LOOPS)
def test_every_arm_of_either_loop_is_measured_and_the_parts_add_up_to_the_step(run: Run, loop: str) -> None:
    [found] = [one for one in explanations_of(run) if one.cell.get("loop") == loop]
    assert not found.lacking
    assert sum(part.value for part in found.parts) == pytest.approx(1)
    of = {str(trial.side): trial for trial in run.trials if trial.cell_id == found.cell.cell_id}
    for arm in set(of) - {WHOLE}:
        assert (of[arm].status, of[arm].checks.gate, of[arm].checks.update) == ("unproved", "instrument", True)
    added_up = {arm for arm, trial in of.items() if sum(trial.executed.pack_bytes) == 4 * 669_706}
    assert added_up == {WHOLE, NO_INPUT, NO_UPDATE, REDUCTION}
