"""`validate` on the command line: what it plans, the record it writes and prints; nothing is measured here."""

import importlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.cli.validate import DISTRIBUTING
from harness.record import Run
from harness.record.validation import Rate, Rule, ValidationRecord, find_validation, load_validation, write_validation
from harness.run.kinds.validate import FULL_ROUNDS, QUICK_ROUNDS, ValidateSettings
from harness.spec.axes import TABLE
from harness.spec.sweep import AXES, OF_OTHER_WORK
from harness.spec.text import text_of
from tests.comparisons import FACTS, stored, sweep_run
from tests.synthetic import make_cell
from tests.validations import RUN_ID, Arm, Round, slow, validation_run

Harness = Callable[..., tuple[int, str, str]]
QUIET = [0.001, -0.001, 0.0005, -0.0005, 0.0008, -0.0008]
ROUND = Round([Arm(QUIET), slow("device_work", 0.05, [value - math.log1p(0.05) for value in QUIET])])


@dataclass
class Validator:
    """Stands in for `validate` and `resume`."""

    run: Run = field(default_factory=lambda: validation_run([ROUND, ROUND]))
    asked: list[ValidateSettings] = field(default_factory=list)
    resumed: list[Path] = field(default_factory=list)

    def validate(self, settings: ValidateSettings, results: Path, command: Sequence[str], progress: object) -> Path:
        self.asked.append(settings)
        return stored(self.run, results)

    def resume(self, kind: object, path: Path, progress: object) -> None:
        self.resumed.append(path)


@pytest.fixture
def validator(monkeypatch: pytest.MonkeyPatch) -> Validator:
    importlib.import_module("harness.cli._measuring")  # first, or it would take the stand-in and keep it
    made = Validator()
    monkeypatch.setattr("harness.run.kinds.validate.validate", made.validate)
    monkeypatch.setattr("harness.run.resume.resume", made.resume)
    return made


# the record


@pytest.mark.usefixtures("validator")
def test_a_record_is_written_and_its_tables_are_printed(harness: Harness, tmp_path: Path) -> None:
    code, out, error = harness("validate", "--quick")
    assert (code, error) == (0, "")
    for text in ("A/A, false alarms", "0 of 2", "5% planted, called slower", "2 of 2", "noise floor for δ"):
        assert text in out
    assert f"records: results/{RUN_ID}" in out
    record = load_validation(tmp_path / "results" / RUN_ID)
    assert record.complete
    assert find_validation(tmp_path / "results", FACTS["machine.id"]) == record


@pytest.mark.usefixtures("validator")
def test_json_is_the_record_and_valid_against_its_model(harness: Harness, tmp_path: Path) -> None:
    code, out, error = harness("validate", "--json")
    assert (code, error) == (0, "")
    assert ValidationRecord.model_validate(json.loads(out)) == load_validation(tmp_path / "results" / RUN_ID)


def test_what_is_not_complete_says_how_to_go_on_and_is_not_cited(
    harness: Harness, validator: Validator, tmp_path: Path
) -> None:
    validator.run = validation_run([ROUND, ROUND, replace(ROUND, planned=False)])
    code, out, _ = harness("validate")
    assert code == 0
    assert f"python -m harness validate --resume {RUN_ID}" in out
    assert find_validation(tmp_path / "results", FACTS["machine.id"]) is None


def test_a_validation_without_two_good_trials_in_any_block_is_exit_code_one(
    harness: Harness, validator: Validator
) -> None:
    validator.run = validation_run([Round([Arm([None] * 6)]), Round([Arm([None] * 6)])])
    code, out, error = harness("validate")
    assert (code, error) == (1, "harness: nothing was measured: crashed: signal 11\n")
    assert "The method, measured" in out


def test_compare_then_uses_the_floor_and_cites_the_run(harness: Harness, validator: Validator, tmp_path: Path) -> None:
    noisy = [Round([Arm([value + mean for value in QUIET])]) for mean in (0.02, -0.02)]
    validator.run = validation_run(noisy)
    harness("validate")
    ops = [make_cell("mirrored", 2, op=op) for op in ("auto", "hierarchical_copy")]
    stored(sweep_run("ops", ops), tmp_path / "results")
    whole = json.loads(harness("compare", "ops", "--along", "cross_device_op", "--json")[1])
    assert whole["validation"] == RUN_ID
    assert whole["delta"] == pytest.approx(math.expm1(1.96 * 0.02))


# what is planned


def labels(settings: ValidateSettings) -> list[str]:
    return [cell.label for cell in settings.cells]


def test_one_replica_and_two_are_validated_with_short_windows(harness: Harness, validator: Validator) -> None:
    harness("validate")
    [settings] = validator.asked
    assert [(cell.strategy, cell.replicas) for cell in settings.cells] == [("none", 1), ("mirrored", 2)]
    assert (settings.sweep.window, settings.sweep.windows) == (0.02, 100)
    assert (settings.rounds, settings.quick) == (FULL_ROUNDS, False)
    assert (settings.ab.margins.delta, settings.ab.margins.epsilon) == (0.01, 0.03)
    assert settings.ab.looks == (5, 8, 12)


def test_outside_of_a_repository_no_revisions_are_planned_and_the_reason_is(
    harness: Harness, validator: Validator
) -> None:
    harness("validate")
    [settings] = validator.asked
    assert (settings.commit, settings.revisions_left_out) == (None, "the working folder is in no git working tree")


@pytest.mark.parametrize(
    ("flags", "rounds", "quick"),
    [(["--quick"], QUICK_ROUNDS, True), (["--rounds", "7"], 7, False), (["--quick", "--rounds", "3"], 3, True)],
)
def test_rounds(harness: Harness, validator: Validator, flags: list[str], rounds: int, quick: bool) -> None:
    harness("validate", *flags)
    assert (validator.asked[0].rounds, validator.asked[0].quick) == (rounds, quick)


def test_other_models_batch_sizes_and_data_keep_the_two_cells(harness: Harness, validator: Validator) -> None:
    harness("validate", "--model", "mlp", "--batch-size", "16", "--data", "synthetic", "--max-blocks", "9")
    [settings] = validator.asked
    assert [(cell.strategy, cell.replicas, cell.model, cell.data) for cell in settings.cells] == [
        ("none", 1, "mlp", "synthetic"),
        ("mirrored", 2, "mlp", "synthetic"),
    ]
    assert [cell.global_batch_size for cell in settings.cells] == [16, 32]
    assert settings.ab.max_blocks == 9


@pytest.mark.parametrize("key", sorted(AXES - DISTRIBUTING - {*OF_OTHER_WORK} - {"engine"}))
def test_what_does_not_say_how_a_training_is_distributed_keeps_the_two_cells(
    harness: Harness, validator: Validator, key: str
) -> None:
    with_it = {of: value for of, value in TABLE[key].tried_with.items() if of not in DISTRIBUTING}
    asked = {**with_it, key: TABLE[key].tried[1]}
    flags = [word for of, value in asked.items() for word in (f"--{of.replace('_', '-')}", text_of(of, value))]
    assert harness("validate", *flags)[0] == 0
    [settings] = validator.asked
    assert [(cell.strategy, cell.replicas) for cell in settings.cells] == [("none", 1), ("mirrored", 2)]
    assert {str(getattr(cell, key)) for cell in settings.cells} == {str(TABLE[key].tried[1])}


def test_any_axis_of_distributing_names_the_cells_and_no_base_case_is_added(
    harness: Harness, validator: Validator
) -> None:
    harness("validate", "--strategy", "mirrored", "--replicas", "2,3", "--delta", "2%", "--epsilon", "4%")
    [settings] = validator.asked
    assert [(cell.strategy, cell.replicas) for cell in settings.cells] == [("mirrored", 2), ("mirrored", 3)]
    assert (settings.ab.margins.delta, settings.ab.margins.epsilon) == (0.02, 0.04)


# going on


def test_a_validation_that_was_stopped_goes_on_and_its_record_is_written_anew(
    harness: Harness, validator: Validator, tmp_path: Path
) -> None:
    path = stored(validator.run, tmp_path / "results")
    code, out, _ = harness("validate", "--resume", "latest", "--quiet")
    assert code == 0
    assert [one.resolve() for one in validator.resumed] == [path.resolve()]
    assert validator.asked == []
    assert load_validation(path).complete
    assert "The method, measured" in out


def test_what_an_early_record_says_of_other_tools_is_still_in_it_after_resume(
    harness: Harness, validator: Validator, tmp_path: Path
) -> None:
    path = stored(validator.run, tmp_path / "results")
    assert harness("validate", "--resume", "latest")[0] == 0
    rate = Rate(count=1, of=60, low=0.001, high=0.09)
    rule = Rule(tool="another tool", rule="a t-test", cell_id="0" * 12, plant=None, share=0.0, alarms=rate)
    write_validation(path, load_validation(path).model_copy(update={"rules": [rule]}))
    assert harness("validate", "--resume", "latest")[0] == 0
    assert load_validation(path).rules == [rule]


def test_a_run_that_is_no_validation_is_bad_usage(harness: Harness, tmp_path: Path) -> None:
    path = stored(sweep_run("swept"), tmp_path / "results")
    code, out, error = harness("validate", "--resume", "swept")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert "'swept' is a run of sweep; go on with: python -m harness sweep --resume" in error
    assert not (path / "validation.json").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--round 3", "no flag '--round'; did you mean '--rounds'?"),
        ("--rounds 0", "--rounds"),
        ("--rounds few", "--rounds"),
        ("--max-blocks 1", "--max-blocks"),
        ("--trials 3", "no flag '--trials'"),
        ("--delta x", "--delta: given 'x', expected a share"),
        ("--delta 4% --epsilon 3%", "epsilon: given 0.03, expected at least delta"),
        ("--engine my:E", "engine: given 'my:E', expected tensorflow"),
        ("--windows 2", "windows: given 2, expected greater than or equal to 5"),
        ("--batch-size many", "batch_size: given 'many'"),
        ("--model minst_cnn", "did you mean 'mnist_cnn'?"),
        ("--strategy miror", "did you mean 'mirrored'?"),
        ("spec.toml", "unexpected extra argument"),
        ("--resume nothing", "RUN: no run 'nothing'"),
        ("--resume x --no-isolate", "it takes no --isolate"),
        ("--resume x --quick", "it takes no --quick"),
        ("--resume x --rounds 3", "it takes no --rounds"),
        ("--resume x --max-blocks 12", "it takes no --max-blocks"),
        ("--resume x --replicas 2", "it takes no --replicas"),
        ("--resume x --epsilon 2%", "it takes no --epsilon"),
    ],
)
def test_bad_usage_is_one_line_and_nothing_is_measured_or_written(
    harness: Harness, validator: Validator, tmp_path: Path, arguments: str, says: str
) -> None:
    code, out, error = harness("validate", *arguments.split())
    assert (code, out) == (2, "")
    assert error.startswith("harness: ")
    assert error.count("\n") == 1
    assert says.lower() in error.lower()
    assert validator.asked == []
    assert list(tmp_path.iterdir()) == []


def test_a_results_place_that_cannot_be_used_is_exit_code_four_at_once(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, error = harness("validate", "--quick", "--results", "file/below")
    assert (code, out, error.count("\n")) == (4, "", 1)
    assert "file/below" in error
