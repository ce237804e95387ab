"""A user's own training step: measured as any trial is, and what could be proved of it is said."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from pydantic import ValidationError

from harness.engines.tensorflow import own_reference, own_step
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.own_reference import OwnReference, as_number, build_step, evidence_against
from harness.engines.tensorflow.own_sight import LossesAndState
from harness.errors import UsageError
from harness.record import TrialRecord, schema
from harness.record.checks import Checks
from harness.run.kinds.measure import measure
from harness.spec import Sweep, expand
from harness.spec.sweep import sweep_from
from harness.spec.work import OwnStepCell
from harness.trial.engines import catalogue_of
from tests.cli.real import only_run, run
from tests.docs.printed import MADE_STEP, MARKED_SCRIPT, short
from tests.preloaded import handed_in
from tests.record.examples import trial

HERE = "tests.engines.tensorflow.own_steps"
EXAMPLE = Path("benchmarks/own_script.py").absolute()
SMALL = Sweep(name="own", trials=1, windows=5, max_warmup=0, window=0.01, timeout=60.0)


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", rf"step: '{HERE}:missing': module '{HERE}' has no 'missing'"),
        ("raises", r"step: '.*:raises' raised ValueError: no licence .*; expected a function that builds a training"),
        ("no_step", r"step: '.*:no_step' returned builtins\.str, expected a callable that does one training step"),
        ("wants_a_batch", r"step: '.*' returned a step that has a required argument: 'batch'; expected one"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_in_one_line_that_names_the_key(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        build_step(f"{HERE}:{name}")
    assert "\n" not in str(caught.value)


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"step: given 'train', expected package\.module:function"):
        build_step("train")


def test_a_loss_is_one_number(tf: Any) -> None:
    assert as_number("a:b", tf.constant(1.5)) == 1.5
    assert as_number("a:b", 2) == 2.0
    for loss in (None, tf.constant([1.0, 2.0]), "low"):
        with pytest.raises(UsageError, match=r"step: 'a:b': a step returned .*, expected the loss: a scalar tensor"):
            as_number("a:b", loss)


@pytest.mark.usefixtures("tf")
def test_a_step_that_says_what_is_wrong_with_it_is_not_said_to_have_raised() -> None:
    step: Any = own_step.OwnStep.__new__(own_step.OwnStep)
    step._step = Mock(side_effect=UsageError("step: two functions are marked"))
    with pytest.raises(UsageError, match=r"^step: two functions are marked$"):
        step._one_step()


def test_what_is_shown_agrees_within_the_tolerance_of_the_precision() -> None:
    def compared(got: LossesAndState, wanted: LossesAndState, precision: str = "float32") -> str:
        return evidence_against(got, wanted, precision) or ""

    assert not compared(LossesAndState((2.0, 1.0, 0.5)), LossesAndState((2.0, 1.0005, 0.5)))
    assert not compared(LossesAndState((2.0, 1.0, 0.5)), LossesAndState((2.0, 1.01, 0.5)), "mixed_bfloat16")
    assert compared(LossesAndState((2.0, 1.0, 0.5)), LossesAndState((2.0, 1.01, 0.5))).startswith(
        "loss 2 is 1, and 1.01 when"
    )
    assert compared(LossesAndState((2.0, float("nan"))), LossesAndState((2.0, 1.0)))
    assert compared(LossesAndState((2.0, 1.0)), LossesAndState((2.0, float("nan"))))
    assert not compared(LossesAndState((2.0,), (0.5,)), LossesAndState((2.0,), (0.5004,)))
    twice = compared(LossesAndState((2.0,), (0.5,)), LossesAndState((2.0,), (0.25,)))
    assert twice.startswith("the state of optimizer 1 is 0.5, and 0.25 when")
    assert compared(LossesAndState((2.0,), (0.5,)), LossesAndState((2.0,))).startswith(
        "the number of optimizers is 1, and 0 when"
    )


def test_what_is_allowed_is_that_of_the_coarsest_layer_whatever_keras_policy_is(tf: Any) -> None:
    layer = tf.keras.layers.Dense(1, dtype="mixed_bfloat16")
    assert tf.keras.config.dtype_policy().name == "float32"
    assert own_reference._coarsest_precision() == layer.dtype_policy.name


def test_the_cell_claims_no_strategy_device_or_data_and_is_its_own_base() -> None:
    cell = OwnStepCell(step="mine:make", amount=32)
    assert cell.model_dump() == {"kind": "own_step", "step": "mine:make", "amount": 32, "quantity": "examples"}
    assert cell.base == cell


def test_a_sweep_of_an_own_step_has_that_cell_and_no_axes() -> None:
    sweep = sweep_from({"step": "mine:make", "amount": 4096, "quantity": "tokens"})
    assert expand(sweep, catalogue_of()).cells == (OwnStepCell(step="mine:make", amount=4096, quantity="tokens"),)
    assert sweep.asked("strategy") == sweep.asked("model") == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"step": "mine:make", "strategy": "mirrored"}, "strategy: a step of your own decides that itself"),
        ({"step": "mine"}, "step: given 'mine', expected package.module:function, or a script's path"),
        ({"step": "train.py --name 'x"}, 'step: given "train.py --name \'x": No closing quotation'),
        ({"step": "train.pyc --epochs 3"}, "or a script's path, which ends with .py, and its arguments"),
        ({"step": "mine:make", "check": "mine:moves"}, r"check: is given a model's state, .* have a check\(\)"),
        ({"amount": 64}, "amount: belongs to step, a step of your own; for a model give batch_size"),
        ({"step": "mine:make", "quantity": "Tok ens"}, "quantity: given 'Tok ens', expected what work is counted in"),
    ],
)
def test_what_an_own_step_cannot_have_is_refused_in_one_line(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        sweep_from(keys)
    assert "\n" not in str(error.value)


def test_the_loop_that_earlier_runs_had_in_its_place_is_refused_with_the_flag_for_it() -> None:
    with pytest.raises(UsageError, match=r"loop: 'own' is .* give --step package\.module:function; expected custom or"):
        expand(Sweep(loop=["own"], model=["mine:make"]), catalogue_of())


def own_record(**checks: Any) -> TrialRecord:
    cell = OwnStepCell(step="mine:make", amount=32)
    proved = Checks(**({"gate": "own_step", "loss_finite": True} | checks))
    return trial(cell=cell, cell_id=cell.cell_id, checks=proved)


def accepted(record: dict[str, Any]) -> bool:
    """Whether the published schema accepts the record."""
    published = json.loads((schema.FOLDER / "trial-1.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(published).is_valid(record)


def test_the_gate_of_an_own_step_is_complete_without_a_claim_that_it_cannot_make() -> None:
    for more in ({}, {"losses_agree": True}, {"own_check": True}):
        record = own_record(**more)
        assert record.checks.complete
        assert record.checks.reduction is None
        assert accepted(json.loads(record.model_dump_json()))


@pytest.mark.parametrize("wrong", [{"loss_finite": None}, {"losses_agree": False}, {"own_check": False}])
def test_an_own_step_whose_gate_is_not_passed_is_not_ok(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="the correctness gate is not complete"):
        own_record(**wrong)
    spoilt = json.loads(own_record().model_dump_json())
    spoilt["checks"].update(wrong)
    assert not accepted(spoilt)


def test_the_lesser_gate_is_for_own_steps_alone() -> None:
    lesser = Checks(gate="own_step", loss_finite=True)
    with pytest.raises(ValidationError, match="the work is 'training' but the gate that was passed is 'own_step'"):
        trial(checks=lesser)
    spoilt = json.loads(trial().model_dump_json()) | {"checks": json.loads(lesser.model_dump_json())}
    assert not accepted(spoilt)
    own = OwnStepCell(step="mine:make", amount=32)
    with pytest.raises(ValidationError, match="the work is 'own_step' but the gate that was passed is 'full'"):
        trial(cell=own, cell_id=own.cell_id)


def test_a_record_from_before_there_were_two_gates_still_reads() -> None:
    old = json.loads(trial().model_dump_json())
    for key in ("gate", "losses_agree", "own_check"):
        del old["checks"][key]
    assert TrialRecord.model_validate(old).checks.gate == "full"
    assert accepted(old)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialRecord]:
    """One trial of each of these steps, by name."""
    names = (
        "right",
        "right_as_a_float",
        "WithAdam",
        "TwiceCompiled",
        "Signed",
        "ByHand",
        "frozen_random",
        "draws_in_its_data",
        "draws_in_its_program",
        "draws_without_a_seed",
        "DropsByXla",
        "declared",
        "only_compiled",
        "soon_not_finite",
        "Checked",
        "CheckedAndWrong",
        "CheckedAndRaising",
        "data_ends",
        "raises_later",
        "two_losses",
    )
    cells = [OwnStepCell(step=f"{HERE}:{name}", amount=8) for name in names]
    with handed_in():
        run = measure(SMALL, cells, tmp_path_factory.mktemp("results"))
    return {record.cell.subject.partition(":")[2]: record for record in run.trials}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["right", "right_as_a_float", "WithAdam"])
def test_a_right_step_is_timed_and_its_first_losses_are_proved(measured: dict[str, TrialRecord], name: str) -> None:
    record = measured[name]
    assert record.status == "ok", record.reason
    assert (record.checks.gate, record.checks.losses_agree, record.checks.own_check) == ("own_step", True, None)
    assert record.checks.detail == {}
    assert record.checks.sight is not None
    assert set(record.checks.sight) == {"doubled", "delayed"}
    assert min(record.checks.sight.values()) > 1
    assert record.windows is not None
    assert record.throughput_examples_per_s == pytest.approx(8 / record.step_time_s)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Signed", "sight: a gradient that is counted twice would be 0 of what is allowed"),
        ("ByHand", "sight: it took no gradient with a tf.GradientTape in which a fault could be planted"),
    ],
)
def test_a_step_that_could_hide_a_fault_is_unproved(measured: dict[str, TrialRecord], name: str, reason: str) -> None:
    record = measured[name]
    assert (record.status, record.checks.losses_agree) == ("unproved", True)
    assert reason in (record.reason or "")
    assert record.throughput is not None


@pytest.mark.slow
def test_a_fault_that_adam_hides_from_the_losses_is_seen_in_its_state(measured: dict[str, TrialRecord]) -> None:
    record = measured["TwiceCompiled"]
    assert record.status == "wrong_result"
    assert "the state of optimizer 1 is" in (record.reason or "")


@pytest.mark.slow
def test_a_step_whose_compiled_form_computes_something_else_is_wrong(measured: dict[str, TrialRecord]) -> None:
    record = measured["frozen_random"]
    assert (record.status, record.throughput_examples_per_s) == ("wrong_result", None)
    assert "and run uncompiled" in (record.reason or "")
    assert "eager_reference = False" in (record.reason or "")


@pytest.mark.slow
def test_random_data_do_not_excuse_a_step_that_computes_something_else(measured: dict[str, TrialRecord]) -> None:
    record = measured["draws_in_its_data"]
    assert (record.status, record.checks.losses_agree) == ("wrong_result", False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "draws_in_its_program",
            "compiled it draws other random numbers than uncompiled (RandomUniform, whose numbers",
        ),
        ("DropsByXla", "compiled it draws other random numbers than uncompiled (Stateless"),
        ("draws_without_a_seed", "run uncompiled twice from the same seed, loss "),
        ("declared", "the step says eager_reference = False"),
        ("only_compiled", "the step cannot run uncompiled: RuntimeError: this works in a graph alone"),
    ],
)
def test_a_step_that_cannot_be_compared_is_timed_and_the_record_says_so(
    measured: dict[str, TrialRecord], name: str, says: str
) -> None:
    record = measured[name]
    assert (record.status, record.checks.losses_agree) == ("unproved", None)
    assert record.reason == "nothing but finite losses could be shown"
    assert record.throughput is not None
    assert says in record.checks.detail["losses_agree"]
    assert "all that is known" in record.checks.detail["own_check"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("soon_not_finite", "loss_finite: the loss at the end of window"),
        ("CheckedAndWrong", "own_check: after timing, check() returned False, expected True"),
        ("CheckedAndRaising", "own_check: before timing, check() raised ValueError: the queue is empty"),
    ],
)
def test_a_step_that_is_found_wrong_has_no_throughput(measured: dict[str, TrialRecord], name: str, says: str) -> None:
    record = measured[name]
    assert (record.status, record.throughput_examples_per_s) == ("wrong_result", None)
    assert says in (record.reason or "")


@pytest.mark.slow
def test_a_check_that_is_satisfied_is_recorded(measured: dict[str, TrialRecord]) -> None:
    assert (measured["Checked"].status, measured["Checked"].checks.own_check) == ("ok", True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("data_ends", "its data ended after 4 steps, expected a step that can be taken without end"),
        ("raises_later", "step 4 raised IndexError: list index out of range; expected one training step"),
        ("two_losses", "expected the loss: a scalar tensor or a float"),
    ],
)
def test_a_step_that_fails_says_at_which_step_and_what_was_expected(
    measured: dict[str, TrialRecord], name: str, says: str
) -> None:
    record = measured[name]
    assert record.status == "crashed"
    assert (record.reason or "").startswith(f"step: '{HERE}:{name}'")
    assert says in (record.reason or "")


@pytest.mark.slow
def test_a_step_that_cannot_be_built_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    with handed_in(), pytest.raises(UsageError, match=r"step: '.*:raises' raised ValueError: no licence"):
        measure(SMALL, [OwnStepCell(step=f"{HERE}:raises")], tmp_path)
    assert list(tmp_path.iterdir()) == []


def as_printed(command: str, folder: Path) -> TrialRecord:
    """What came of the only trial of a command of the documentation, in a folder with the modules of the repository."""
    (folder / "benchmarks").symlink_to(EXAMPLE.parent)
    done = run(*short(command), folder=folder)
    assert done.returncode == 0, done.stderr
    [record] = only_run(folder / "results").trials
    return record


@pytest.mark.slow
def test_the_example_under_benchmarks_passes_its_gate(tmp_path: Path) -> None:
    record = as_printed(MADE_STEP, tmp_path)
    assert record.status == "ok", record.reason
    assert (record.checks.losses_agree, record.checks.own_check) == (True, True)
    assert record.checks.sight is not None
    assert set(record.checks.sight) == {"missing", "averaged", "doubled", "delayed"}
    assert record.resources.logical_devices == ["/device:CPU:0", "/device:CPU:1"]


@pytest.mark.slow
def test_by_itself_the_script_trains_as_if_nothing_were_marked(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(EXAMPLE.read_text(encoding="utf-8").replace("100_000", "200"), encoding="utf-8")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    losses = re.findall(r"^step [12]00: loss (\S+)$", ran.stdout, re.MULTILINE)
    assert len(losses) == 2
    assert float(losses[1]) < float(losses[0])


@pytest.mark.slow
def test_a_whole_script_is_measured_as_it_is_and_passes_the_same_gate(tmp_path: Path) -> None:
    script = tmp_path / "my script.py"
    takes = (
        "import argparse\n\ngiven = argparse.ArgumentParser()\ngiven.add_argument('--last', type=int, required=True)"
    )
    last = "step == given.parse_args().last"
    text = EXAMPLE.read_text(encoding="utf-8").replace("step == 100_000", last).replace("import keras", takes, 1)
    script.write_text(text.replace("import numpy", "import keras\nimport numpy"), encoding="utf-8")
    with handed_in():
        [ends] = measure(SMALL, [OwnStepCell(step=f"{script} --last 5", amount=64)], tmp_path / "ends").trials
    whole = as_printed(MARKED_SCRIPT, tmp_path)
    assert (whole.status, whole.checks.losses_agree) == ("ok", True), whole.reason
    assert whole.checks.sight is not None
    assert min(whole.checks.sight.values()) > 1
    assert ends.windows is None
    assert ends.reason == (
        f"step: '{script} --last 5': the script ended after 4 steps, expected a step that can be taken without end "
        "(dataset.repeat())"
    )


class Built(Exception):
    """The step would be built now."""


@pytest.mark.parametrize("module", [own_step, own_reference])
def test_before_a_step_is_built_each_gpus_memory_is_let_grow(
    tf: Any, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the process that is timed and in the reference's: there need be no GPU, `tf.config` is told to show two."""
    told: list[Any] = []

    def built(_: str) -> Any:
        raise Built

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind} 0", f"{kind} 1"])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda gpu, grow: told.append((gpu, grow)))
    monkeypatch.setattr(module, "set_threads", lambda _: told.append("threads"))
    monkeypatch.setattr(own_step, "run_own_reference", lambda *_: OwnReference(reason="not asked"))
    monkeypatch.setattr(module, "build_step", built)
    request: Any = SimpleNamespace(plant=None, cell=OwnStepCell(step="mine:make"), seed=1)
    if module is own_step:
        channel: Any = SimpleNamespace(send=lambda _: None)
        with pytest.raises(Built):
            own_step.OwnStep(request, channel, classify)._measure()
    else:
        monkeypatch.setattr(tf.config, "run_functions_eagerly", lambda _: None)
        assert "Built" in str(own_reference._uncompiled(request, 1).reason)
    assert told == ["threads", ("GPU 0", True), ("GPU 1", True)]
