"""A machine's limits read back as they were written; the newest counts, and one that is no such record is one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from harness.errors import StorageError
from harness.record import schema
from harness.record.limits import keep_sheet, limits_of_machine, make_place
from tests.limits import MACHINE, limit, limits, missing

LATER = "2026-11-24T08:00:00+00:00"


def test_what_is_kept_reads_back(tmp_path: Path) -> None:
    path = keep_sheet(tmp_path, limits())
    assert path.name == f"limits-{MACHINE}-20261123T151009Z.json"
    assert next(limits_of_machine(tmp_path, MACHINE), None) == limits()


def test_a_measurement_takes_the_place_of_none_and_the_newest_counts(tmp_path: Path) -> None:
    keep_sheet(tmp_path, limits(created_utc=LATER, seconds=1.0))
    keep_sheet(tmp_path, limits())
    assert len(list(tmp_path.iterdir())) == 2
    assert next(limits_of_machine(tmp_path, MACHINE), None) == limits(created_utc=LATER, seconds=1.0)


def test_those_of_another_machine_and_of_no_folder_are_none(tmp_path: Path) -> None:
    keep_sheet(tmp_path, limits())
    assert next(limits_of_machine(tmp_path, "0" * 12), None) is None
    assert next(limits_of_machine(tmp_path / "nowhere", MACHINE), None) is None


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda _: "[]", "record"),
        (lambda text: text.replace('"seconds"', '"speed": 1, "seconds"'), "speed: unknown key"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 2'), "written by a newer version"),
        (lambda text: text.replace("64000000000.0", "-1.0"), "limits.0.rates.1: given -1.0"),
        (lambda text: text.replace(MACHINE, "0" * 12), f"it is of machine {'0' * 12}, not of {MACHINE}"),
    ],
    ids=["torn", "a list", "unknown key", "newer", "impossible", "foreign"],
)
def test_a_damaged_or_foreign_record_is_one_line_with_the_remedy(
    tmp_path: Path, spoil: Callable[[str], str], says: str
) -> None:
    path = keep_sheet(tmp_path, limits())
    path.write_text(spoil(path.read_text()))
    with pytest.raises(StorageError) as caught:
        next(limits_of_machine(tmp_path, MACHINE), None)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert says in text
    assert text.endswith("; remove it, or measure anew with doctor --limits --again")
    assert "\n" not in text
    assert caught.value.exit_code == 4


def test_where_its_line_is_taken_a_damaged_record_is_passed_over_for_the_next_older_one(tmp_path: Path) -> None:
    keep_sheet(tmp_path, limits())
    damaged = keep_sheet(tmp_path, limits(created_utc=LATER))
    damaged.write_text("{")
    said: list[str] = []
    assert list(limits_of_machine(tmp_path, MACHINE, said.append)) == [limits()]
    [line] = said
    assert line.startswith(f"{damaged}: not valid JSON")


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / f"limits-{MACHINE}-20261123T151009Z.json").mkdir()
    with pytest.raises(StorageError, match=r"^cannot read '.*': Is a directory"):
        next(limits_of_machine(tmp_path, MACHINE), None)


def test_a_place_that_cannot_be_made_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(StorageError, match="cannot make the results folder"):
        make_place(tmp_path / "results")


def test_the_limit_is_the_best_that_was_seen_and_none_where_nothing_was() -> None:
    assert limit().best == 64e9
    assert (limit().unit, missing().unit) == ("FLOP/s", "B/s")
    assert missing().best is None


@pytest.mark.parametrize(
    "changes",
    [{"rates": [1e9]}, {"reason": "why"}, {"rates": [], "sizes": [], "repetitions": []}, {"device": "tpu"}],
    ids=["lengths differ", "rates and a reason", "neither", "unknown device"],
)
def test_a_limit_has_rates_of_each_process_or_a_reason(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        limit(**changes)


def test_the_published_schema_takes_what_is_written_and_no_other_keys(tmp_path: Path) -> None:
    published = json.loads((schema.FOLDER / "limits-1.json").read_text(encoding="utf-8"))
    check = jsonschema.Draft202012Validator(published)
    record = json.loads(keep_sheet(tmp_path, limits()).read_text())
    assert check.is_valid(record)
    assert not check.is_valid(record | {"speed": 1})
    assert not check.is_valid(record | {"machine_id": "a host's name"})
