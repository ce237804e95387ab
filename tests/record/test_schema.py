"""The published JSON Schemas are current, accept what is written, and refuse what is not valid."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.record import RunStore, schema
from tests.record.examples import failed_trial, manifest, trial


def published(name: str) -> dict[str, Any]:
    """A schema as it is in the repository."""
    loaded: dict[str, Any] = json.loads((schema.FOLDER / name).read_text(encoding="utf-8"))
    return loaded


def is_valid(name: str, instance: object) -> bool:
    """Whether the published schema accepts the instance."""
    return jsonschema.Draft202012Validator(published(name)).is_valid(instance)


@pytest.mark.parametrize("name", sorted(schema.schemas()))
def test_the_published_schema_is_what_the_models_say(name: str) -> None:
    expected = schema.text_of(schema.schemas()[name])
    assert (schema.FOLDER / name).read_text(encoding="utf-8") == expected, "run: python -m harness.record.schema"


@pytest.mark.parametrize("name", sorted(schema.schemas()))
def test_the_published_schema_is_itself_a_valid_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(published(name))


def test_what_a_store_writes_validates(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        for record in (trial(), failed_trial(), failed_trial(final_loss=math.nan)):
            store.append(record)
    assert is_valid("run-1.json", json.loads((store.path / "run.json").read_text()))
    lines = (store.path / "trials.jsonl").read_text().splitlines()
    assert [is_valid("trial-1.json", json.loads(line)) for line in lines] == [True, True, True]


def test_an_unproved_trial_validates_with_its_figures_and_its_reason_alone() -> None:
    record = json.loads(trial(status="unproved", reason="late: not compared").model_dump_json())
    assert is_valid("trial-1.json", record)
    for spoilt in ({"reason": None}, {"windows": None}, {"throughput_examples_per_s": None}):
        assert not is_valid("trial-1.json", record | spoilt)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r["windows"]["seconds"].append(-0.1),
        lambda r: r["windows"]["seconds"].append("0.1"),
        lambda r: r["windows"].update(steps_per_window=0),
        lambda r: r.update(status="fine"),
        lambda r: r.update(status="wrong_result"),
        lambda r: r.update(throughput_examples_per_s=None),
        lambda r: r.update(throughput_examples_per_s=-1.0),
        lambda r: r.update(windows=None),
        lambda r: r["checks"].update(reduction=False),
        lambda r: r["checks"].update(loss_finite=None),
        lambda r: r.update(speed=1),
        lambda r: r.update(schema_version=2),
        lambda r: r.pop("cell"),
        lambda r: r["cell"].update(replicas=0),
        lambda r: r["phases"].update(build_s=-1),
    ],
)
def test_a_spoilt_trial_does_not_validate(spoil: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads(trial().model_dump_json())
    assert is_valid("trial-1.json", record)
    spoil(record)
    assert not is_valid("trial-1.json", record)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.update(status="done"),
        lambda r: r["sweep"].update(trials=0),
        lambda r: r["sweep"].update(colour="red"),
        lambda r: r["machine"]["facts"].update(nested={"a": 1}),
        lambda r: r["plans"][0].update(stage=3),
        lambda r: r.pop("created_utc"),
    ],
)
def test_a_spoilt_manifest_does_not_validate(spoil: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads(manifest().model_dump_json())
    assert is_valid("run-1.json", record)
    spoil(record)
    assert not is_valid("run-1.json", record)
