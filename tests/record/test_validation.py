"""`validation.json`: it reads back as it was written, and finding one never fails on what lies beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness.errors import StorageError
from harness.record.manifest import Machine
from harness.record.store import RunStore
from harness.record.validation import (
    VALIDATION_NAME,
    Effect,
    Floor,
    Rate,
    Rule,
    ValidationRecord,
    find_validation,
    load_validation,
    with_recorded_rules,
    write_validation,
)
from tests.record.examples import cell
from tests.validations import Arm, Round, validation_run

MACHINE = "3f2a91c07d55"


def rate(count: int = 1, of: int = 60, low: float = 0.0004, high: float = 0.0894) -> Rate:
    return Rate(count=count, of=of, low=low, high=high)


def floor(**changes: Any) -> Floor:
    return Floor(**({"cell": cell(), "paired": 0.006, "unpaired": 0.08} | changes))


def validation(**changes: Any) -> ValidationRecord:
    """A complete validation of one cell."""
    effect = Effect(
        cell=cell(),
        plant=None,
        verdicts={"equivalent": 59, "undecided": 1},
        slower=rate(0),
        false_alarms=rate(0),
        equivalent=rate(59, low=0.91, high=0.9996),
        measured=0.0002,
        measured_low=-0.001,
        measured_high=0.0014,
        deviation=0.016,
        blocks_median=6,
        blocks_most=12,
        seconds_median=70.0,
        seconds_most=141.5,
    )
    rule = Rule(
        tool="pyperf compare_to", rule="a t-test", cell_id=cell().cell_id, plant=None, share=0.0, alarms=rate(31)
    )
    values: dict[str, Any] = {
        "run_id": "20261121T012345Z-validate-a1b2",
        "created_utc": "2026-11-21T01:23:45Z",
        "harness_version": "0.1.0",
        "complete": True,
        "quick": False,
        "machine_id": MACHINE,
        "facts": {"cpu.model": "a processor", "cpu.usable_cores": 2, "cpu.smt": None},
        "delta": 0.01,
        "epsilon": 0.03,
        "windows": 20,
        "window_s": 0.1,
        "pilot_blocks": 6,
        "max_blocks": 12,
        "effects": [effect],
        "floors": [floor()],
        "rules": [rule],
    }
    return ValidationRecord(**(values | changes))


def written(results: Path, name: str, **changes: Any) -> Path:
    """A run's folder that holds a validation."""
    folder = results / name
    folder.mkdir(parents=True)
    write_validation(folder, validation(run_id=name, **changes))
    return folder


# writing and reading


def test_what_an_early_file_says_of_other_tools_is_kept_and_a_run_without_a_file_has_none(tmp_path: Path) -> None:
    worked_out = validation(rules=[])
    assert with_recorded_rules(worked_out, written(tmp_path, "early")).rules == validation().rules
    assert with_recorded_rules(worked_out, tmp_path / "none") == worked_out


def test_a_validation_reads_back_equal(tmp_path: Path) -> None:
    record = validation()
    write_validation(tmp_path, record)
    assert load_validation(tmp_path) == record
    assert [path.name for path in tmp_path.iterdir()] == [VALIDATION_NAME]


def test_a_later_state_replaces_the_earlier_one(tmp_path: Path) -> None:
    write_validation(tmp_path, validation(complete=False))
    write_validation(tmp_path, validation(complete=True))
    assert load_validation(tmp_path).complete


def test_a_validation_that_has_only_begun_can_be_written(tmp_path: Path) -> None:
    record = validation(complete=False, effects=[], floors=[], rules=[], machine_id=None)
    write_validation(tmp_path, record)
    assert load_validation(tmp_path) == record
    assert record.floor() is None


def test_writing_where_there_is_no_folder_is_a_storage_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*validation\.json") as caught:
        write_validation(tmp_path / "missing", validation())
    assert "\n" not in str(caught.value)


def test_a_link_in_the_place_of_the_file_is_refused_and_what_it_names_stays(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("dear")
    (tmp_path / "run").mkdir()
    for name in ("theirs", "new"):
        (tmp_path / "run" / VALIDATION_NAME).unlink(missing_ok=True)
        (tmp_path / "run" / VALIDATION_NAME).symlink_to(tmp_path / name)
        with pytest.raises(StorageError, match="it is a link; remove that link"):
            write_validation(tmp_path / "run", validation())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "theirs"]
    assert (tmp_path / "theirs").read_text() == "dear"


def test_in_a_place_whose_name_is_too_long_there_is_no_validation(tmp_path: Path) -> None:
    """Whoever then writes there is told why that cannot be."""
    assert find_validation(tmp_path / ("x" * 300), MACHINE) is None


def test_a_folder_without_a_validation_is_a_storage_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*validation\.json"):
        load_validation(tmp_path)


BROKEN = {
    "empty": b"",
    "no JSON": b"{not json",
    "cut off": b'{"schema_version": 1, "run_id": "x", "eff',
    "no UTF-8": b'{"run_id": "\xff\xfe"}',
    "zeros": b"\0" * 64,
    "another kind of JSON": b"[1, 2]",
    "null": b"null",
    "nothing in it": b"{}",
}


def _edited(**changes: Any) -> bytes:
    return json.dumps(validation().model_dump(mode="json") | changes).encode()


EDITED = {
    "newer schema": _edited(schema_version=2),
    "unknown key": _edited(speed=1),
    "share above one": _edited(delta=1.5),
    "infinite share": _edited(epsilon=float("inf")),
    "no windows": _edited(windows=0),
    "a pilot of one": _edited(pilot_blocks=1),
    "a rate beyond one": _edited(
        floors=[
            {**floor().model_dump(mode="json"), "unpaired_false_alarms": {"count": 1, "of": 2, "low": 0, "high": 1.2}}
        ]
    ),
    "a floor that is no number": _edited(floors=[{**floor().model_dump(mode="json"), "paired": float("nan")}]),
    "a negative floor": _edited(floors=[{**floor().model_dump(mode="json"), "paired": -0.01}]),
}


@pytest.mark.parametrize("content", [*BROKEN.values(), *EDITED.values()], ids=[*BROKEN, *EDITED])
def test_a_broken_or_edited_file_is_a_storage_error_of_one_line_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / VALIDATION_NAME).write_bytes(content)
    with pytest.raises(StorageError) as caught:
        load_validation(tmp_path)
    assert str(tmp_path / VALIDATION_NAME) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("count", [-1, 1.5])
def test_a_rate_counts_whole_decisions(count: float) -> None:
    with pytest.raises(ValidationError):
        Rate(count=count, of=60, low=0, high=0.1)  # type: ignore[arg-type]


# the noise floor over the cells


def test_the_noise_floor_is_the_largest_over_the_cells() -> None:
    record = validation(floors=[floor(paired=0.004, unpaired=0.05), floor(paired=0.012, unpaired=None)])
    assert record.floor() == 0.012
    assert record.floor(unpaired=True) == 0.05
    assert validation(floors=[floor(unpaired=None)]).floor(unpaired=True) is None


# finding one


def test_the_newest_complete_validation_of_this_machine_is_found(tmp_path: Path) -> None:
    written(tmp_path, "b-old", created_utc="2026-11-19T10:00:00Z")
    written(tmp_path, "a-new", created_utc="2026-11-20T10:00:00Z")
    written(tmp_path, "c-older", created_utc="2026-11-18T10:00:00Z")
    found = find_validation(tmp_path, MACHINE)
    assert found is not None
    assert found.run_id == "a-new"


def test_a_newer_one_of_fewer_decisions_does_not_displace_it(tmp_path: Path) -> None:
    [effect] = validation().effects
    few = effect.model_copy(update={"slower": Rate(count=0, of=4, low=0.0, high=0.61)})
    written(tmp_path, "two-hours", created_utc="2026-11-18T10:00:00Z")
    written(tmp_path, "two-rounds", created_utc="2026-11-20T10:00:00Z", effects=[few])
    found = find_validation(tmp_path, MACHINE)
    assert found is not None
    assert (found.run_id, found.decisions) == ("two-hours", 60)


def test_those_of_other_machines_and_incomplete_ones_are_passed_over(tmp_path: Path) -> None:
    written(tmp_path, "elsewhere", machine_id="000000000000", created_utc="2026-11-23T10:00:00Z")
    written(tmp_path, "unknown", machine_id=None, created_utc="2026-11-23T10:00:00Z")
    written(tmp_path, "stopped", complete=False, created_utc="2026-11-22T10:00:00Z")
    assert find_validation(tmp_path, MACHINE) is None
    written(tmp_path, "mine", created_utc="2026-11-01T10:00:00Z")
    found = find_validation(tmp_path, MACHINE)
    assert found is not None
    assert found.run_id == "mine"


def test_a_machine_without_an_identity_has_no_validation(tmp_path: Path) -> None:
    written(tmp_path, "unknown", machine_id=None)
    assert find_validation(tmp_path, None) is None


@pytest.mark.parametrize("content", [*BROKEN.values(), *EDITED.values()], ids=[*BROKEN, *EDITED])
def test_a_broken_file_beside_a_good_one_does_not_hide_it(tmp_path: Path, content: bytes) -> None:
    written(tmp_path, "good")
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / VALIDATION_NAME).write_bytes(content)
    found = find_validation(tmp_path, MACHINE)
    assert found is not None
    assert found.run_id == "good"


def test_a_folder_in_the_files_place_is_passed_over(tmp_path: Path) -> None:
    written(tmp_path, "good")
    (tmp_path / "odd" / VALIDATION_NAME).mkdir(parents=True)
    found = find_validation(tmp_path, MACHINE)
    assert found is not None
    assert found.run_id == "good"


def test_where_there_is_nothing_nothing_is_found(tmp_path: Path) -> None:
    assert find_validation(tmp_path, MACHINE) is None
    assert find_validation(tmp_path / "missing", MACHINE) is None
    (tmp_path / "file").write_text("")
    assert find_validation(tmp_path / "file", MACHINE) is None


@pytest.mark.parametrize(
    ("machine", "status", "told"),
    [(MACHINE, "finished", True), (MACHINE, "interrupted", False), ("000000000000", "finished", False)],
)
def test_a_finished_run_that_lacks_its_file_is_named_with_the_way_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], machine: str, status: str, told: bool
) -> None:
    name = "20261121T012345Z-validation-a1b2"
    of_machine = Machine(facts={"machine.id": machine}, warnings=[])
    run = validation_run([Round([Arm([0.0] * 6)])])
    made = run.manifest.model_copy(update={"run_id": name, "status": status, "machine": of_machine})
    with RunStore.create(tmp_path, made):
        pass
    assert find_validation(tmp_path, MACHINE) is None
    said = f"harness: '{name}' is a validation of this machine without its validation.json; write it with: "
    way = f"python -m harness validate --resume {tmp_path / name}\n"
    assert capsys.readouterr().err == (said + way if told else "")
    written(tmp_path, "another")
    assert find_validation(tmp_path, MACHINE) is not None
    assert capsys.readouterr().err == ""
