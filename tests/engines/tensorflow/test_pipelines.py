"""Input pipelines by themselves under TensorFlow: what is right is timed, what loses or changes examples is wrong."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest

from harness.engines.tensorflow import pipelines
from harness.engines.tensorflow.pipelines import Batches
from harness.record import TrialRecord, load_run, schema
from harness.record.checks import Checks
from harness.run.kinds.measure import measure, measure_matrix
from harness.run.progress import Quiet
from harness.spec import sweep_from
from harness.spec.expand import Matrix
from harness.spec.pipeline import CUTS, PipelineCell
from tests.engines.tensorflow.own_inputs import DECODED_S
from tests.preloaded import handed_in

KEYS = {"trials": 1, "windows": 5, "max_warmup": 0, "window": 0.01}
SMALL = sweep_from({"work": "pipeline", "timeout": 60.0, **KEYS})
CELL = PipelineCell(device="virtual-cpu", model="mlp", data="digits", batch_size=48)
PICTURES = CELL.model_copy(update={"model": "mnist_cnn", "data": "photographs:64", "batch_size": 6})
"""Of which a batch ends in another pass than it began in, and some fifty are decoded before each window."""
FAULTS = "tests.engines.tensorflow.own_inputs"
NESTED = "tests.engines.tensorflow.own_nested"
OWN = CELL.model_copy(update={"model": f"{FAULTS}:model", "data": f"{FAULTS}:right", "batch_size": 4})


def own(name: str, **keys: Any) -> PipelineCell:
    """The pipeline of one of `own_inputs`."""
    return OWN.model_copy(update={"data": f"{FAULTS}:{name}", **keys})


RIGHT = {  # and the two of each key in `tests/run/test_axes_take_hold.py`, where each takes hold
    "kept in memory": CELL,
    "in a file": CELL.model_copy(update={"cache": "file", "shuffle_buffer": 100}),
    "not kept": CELL.model_copy(
        update={"cache": "none", "parallel_calls": 1, "prefetch": 0, "device_prefetch": 3},
    ),
    "in the order of the source": CELL.model_copy(update={"cache": "none", "shuffle_buffer": 1}),
    "more than there are": CELL.model_copy(update={"batch_size": 2000}),
    "pictures": PICTURES.model_copy(update={"cache": "none"}),
    "served by two": PICTURES.model_copy(update={"cache": "none", "deterministic": False, "data_service": 2}),
    "tokens": CELL.model_copy(update={"model": "lstm", "data": "text", "batch_size": 8, "tokens": 40}),
    "a table": CELL.model_copy(update={"data": "wine", "batch_size": 16}),
    "a table of numbers": CELL.model_copy(update={"data": "diabetes", "batch_size": 16}),
    "own": own("right"),
    "own, several": CELL.model_copy(
        update={"model": f"{NESTED}:model", "data": f"{NESTED}:examples", "batch_size": 12}
    ),
    "own, ragged": CELL.model_copy(
        update={"model": f"{NESTED}:model_of_texts", "data": f"{NESTED}:texts", "batch_size": 12}
    ),
    "own, uncounted": own("uncounted"),
    "own batches": own("batches"),
    "own, for no model": own("right", model="none"),
    "own batches, for no model": own("batches", model="none"),
    "own, served by two": own("uncounted", cache="none", deterministic=False, data_service=2),
}
UNPROVED = {
    "random": (own("random"), "have other examples, as of data that are random in each"),
    "turned": (own("turned"), "have their examples in another order each"),
    "own batches, others in each pass": (
        own("batches", batch_size=24),
        "have other examples, as of data that are random",
    ),
    "endless": (own("endless", cache="none"), "is longer than the 100,000 examples that are followed"),
}
WRONG = {name: own(name) for name in ("drops", "doubles")}
UNSUPPORTED = own("batches").cut_behind("shuffle")
CRASHED = {
    "reshaped": (own("reshaped", cache="none"), "an example cannot be read"),
    "raises": (own("raises"), "the table is gone"),
    "ends": (own("ends"), "ended before its time"),
}
CUT = {f"until {cut}": PICTURES.cut_behind(cut) for cut in CUTS}
ALL: dict[str, PipelineCell] = {
    **RIGHT,
    **CUT,
    **WRONG,
    "cut from own batches": UNSUPPORTED,
    **{name: cell for of in (UNPROVED, CRASHED) for name, (cell, _) in of.items()},
    "slow": own("slow", cache="none"),
}
FED = ("pictures", "tokens", "own, several")
"""Those beside which their models are looked at."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialRecord]:
    """One trial of each of these cells, by name, and of what some of their models take."""
    cells = {**ALL, **{f"appetite of {name}": RIGHT[name].appetite for name in FED}}
    matrix = Matrix(tuple({cell.cell_id: cell for cell in cells.values()}.values()))
    with handed_in():
        run = load_run(measure_matrix(SMALL, matrix, tmp_path_factory.mktemp("results"), (), Quiet()))
    by_cell = {record.cell_id: record for record in run.trials}
    return {name: by_cell[cell.cell_id] for name, cell in cells.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_pipeline_is_timed_and_every_example_of_a_pass_followed(
    measured: dict[str, TrialRecord], name: str
) -> None:
    record, cell = measured[name], RIGHT[name]
    assert record.status == "ok", record.reason
    checks = record.checks
    assert (checks.gate, checks.batches, checks.examples, checks.late) == ("pipeline", True, True, True)
    assert checks.order is (True if cell.deterministic else None)
    assert record.throughput == pytest.approx(cell.work.amount / (record.step_time_s or 0))
    assert record.final_loss is None


@pytest.mark.slow
@pytest.mark.parametrize("name", UNPROVED)
def test_what_cannot_be_proved_is_unproved_with_the_reason(measured: dict[str, TrialRecord], name: str) -> None:
    record = measured[name]
    assert record.status == "unproved", record.reason
    assert UNPROVED[name][1] in (record.reason or "")
    assert record.checks.batches is True
    assert record.throughput is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_what_loses_or_doubles_examples_is_wrong_and_has_no_rate(measured: dict[str, TrialRecord], name: str) -> None:
    record = measured[name]
    assert (record.status, record.throughput) == ("wrong_result", None), record.reason
    assert "is missing (first number 1)" in (record.reason or "") or "of no example" in (record.reason or "")


@pytest.mark.slow
def test_batches_of_the_users_own_function_are_not_cut_off_behind_a_stage(measured: dict[str, TrialRecord]) -> None:
    record = measured["cut from own batches"]
    assert (record.status, record.reason) == (
        "unsupported",
        f"cut: '{FAULTS}:batches' makes its batches itself: time its stages there, and leave cut shuffle out",
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CRASHED)
def test_data_that_cannot_be_read_end_the_trial_in_one_line(measured: dict[str, TrialRecord], name: str) -> None:
    record = measured[name]
    assert record.status == "crashed"
    assert CRASHED[name][1] in (record.reason or "")
    assert (record.reason or "").startswith(f"data: '{FAULTS}:{name}'")


@pytest.mark.slow
@pytest.mark.parametrize("name", CUT)
def test_a_pipeline_that_is_cut_off_is_an_instrument_whose_pass_was_followed(
    measured: dict[str, TrialRecord], name: str
) -> None:
    record = measured[name]
    assert (record.status, record.checks.gate) == ("unproved", "instrument"), record.reason
    assert (record.checks.examples, record.checks.order) == (True, True)
    stages = {"source": "Map", "decode": "ParallelMap", "cache": "Cache", "shuffle": "Shuffle(64)"}
    assert record.executed.input[-2:] == [stages[CUT[name].cut], "Repeat"]


@pytest.mark.slow
def test_what_a_model_takes_is_timed_once_its_first_updates_are_proved(measured: dict[str, TrialRecord]) -> None:
    for name in FED:
        record = measured[f"appetite of {name}"]
        assert (record.status, record.checks.gate) == ("unproved", "instrument"), record.reason
        assert (record.checks.update, record.checks.loss_finite) == (True, True)
        assert record.cell.work == RIGHT[name].work


@pytest.mark.slow
def test_a_planted_cost_of_decoding_is_the_rate(measured: dict[str, TrialRecord]) -> None:
    record = measured["slow"]
    assert record.status == "ok", record.reason
    assert record.step_time_s is not None
    assert record.step_time_s >= 0.98 * OWN.batch_size * DECODED_S  # windows begin and end within an example


@pytest.mark.slow
def test_a_function_that_hangs_is_a_timeout_with_its_phase(tmp_path: Path) -> None:
    with handed_in():
        run = measure(sweep_from({"work": "pipeline", "timeout": 3.0, **KEYS}), [own("hangs")], tmp_path)
    [record] = [record for record in run.trials if isinstance(record.cell, PipelineCell)]
    assert record.status == "timeout"
    assert record.phase in ("first_step", "check")


@pytest.mark.parametrize(
    ("changes", "complete", "said"),
    [
        ({}, True, None),
        ({"order": None}, True, None),
        ({"order": None, "detail": {"order": "its order is random"}}, False, "order: its order is random"),
        ({"order": False}, False, None),
        ({"late": None}, False, "late: no pass after the last window was followed"),
        ({"examples": None, "detail": {"examples": "too long"}}, False, "examples: too long"),
    ],
)
def test_what_the_gate_must_have_shown(changes: dict[str, Any], complete: bool, said: str | None) -> None:
    passed = {"gate": "pipeline", "batches": True, "examples": True, "order": True, "late": True}
    checks = Checks.model_validate({**passed, **changes})
    assert checks.complete is complete
    assert checks.unproved == said


def test_each_batch_of_a_long_window_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    signs: list[int] = []
    dataset = range(100, 110)
    feed: Any = SimpleNamespace(dataset=lambda: dataset, cell=CELL, devices=SimpleNamespace(names=("/device:CPU:0",)))
    batches = Batches(feed)
    monkeypatch.setattr(pipelines, "sign_of_life", lambda: signs.append(cast(int, batches._last)))
    batches.draw(7)
    assert signs == list(dataset[:7])
    assert batches.examples == 7 * CELL.batch_size


def test_records_of_other_work_have_no_key_of_a_pipelines_gate() -> None:
    assert not {"batches", "examples", "order"} & Checks().model_dump().keys()
    assert Checks(gate="pipeline", batches=True).model_dump()["batches"] is True


@pytest.mark.slow
def test_every_record_is_of_the_published_schema(measured: dict[str, TrialRecord]) -> None:
    published = schema.schemas()["trial-1.json"]
    of_trials = jsonschema.validators.validator_for(published)(
        published
    )  # once: `validate` checks the schema each time
    for record in measured.values():
        of_trials.validate(json.loads(record.model_dump_json()))
    false = json.loads(measured["own"].model_dump_json())
    false["checks"]["examples"] = None
    with pytest.raises(jsonschema.ValidationError):
        of_trials.validate(false)
