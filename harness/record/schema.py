"""The published JSON Schemas of `run.json`, of a line of `trials.jsonl` and `faults.jsonl`, and of a machine's limits.

`python -m harness.record.schema` writes them into `harness/record/schema/`; a test holds them equal to
the models. They are what another program reads records by, so they say what the models alone enforce
as far as JSON Schema can: a trial that was not measured has no throughput.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.record.checks import GateName
from harness.record.faults import FaultRecord
from harness.record.limits import LimitsRecord
from harness.record.manifest import SCHEMA_VERSION, RunManifest
from harness.record.proof import ProofRecord
from harness.record.trial import MEASURED, RATE_KEYS, TrialRecord
from harness.spec.axes import OF_OWN_STEP
from harness.spec.work import CELL_KINDS, TAG, Cell, OwnStepCell

FOLDER = Path(__file__).with_name("schema")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PASSED: dict[str, Any] = {"const": True}
_NOT_FAILED: dict[str, Any] = {"enum": [True, None]}


def _checks(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """What the checks of a trial must say whose gate is passed."""
    return {"properties": {"checks": {"properties": properties, "required": required}}}


def _has(key: str, value: str) -> dict[str, Any]:
    return {"properties": {key: {"const": value}}, "required": [key]}


_FULL_GATE = _checks(
    ["reduction", "update", "replicas_agree", "loss_finite"],
    gate={"const": "full"},  # left out by records from before there was another
    reduction=_PASSED,
    update=_PASSED,
    replicas_agree=_PASSED,
    loss_finite=_PASSED,
    input=_NOT_FAILED,
)
_OWN_STEPS_GATE = _checks(
    ["gate", "loss_finite"],
    gate={"const": "own_step"},
    loss_finite=_PASSED,
    losses_agree=_NOT_FAILED,
    own_check=_NOT_FAILED,
)
_COLLECTIVES_GATE = _checks(
    ["gate", "reduction", "late"],
    gate={"const": "collective"},
    reduction=_PASSED,
    late=_PASSED,
)
_INPUTS_GATE = _checks(
    ["gate", "batches", "examples", "late"],
    gate={"const": "pipeline"},
    batches=_PASSED,
    examples=_PASSED,
    order=_NOT_FAILED,
    late=_PASSED,
)


_GATES: dict[GateName, dict[str, Any]] = {
    "own_step": _OWN_STEPS_GATE,
    "collective": _COLLECTIVES_GATE,
    "pipeline": _INPUTS_GATE,
}
"""What the checks must say of a trial whose gate is another than the full one, by its name."""


def _is_of(kind: type[Cell]) -> dict[str, Any]:
    """That a cell is of a kind of work, as it is written today or as it was."""
    today = _has(TAG, kind.tag)
    return {"anyOf": [today, _has("loop", OwnStepCell.EARLIER_LOOP)]} if kind is OwnStepCell else today


def _gate_of_work() -> dict[str, Any]:
    """What the checks must say whose gate is passed, by the kind of work."""
    found = _FULL_GATE
    for name, gate in reversed(_GATES.items()):
        for kind in (kind for kind in CELL_KINDS.values() if name == kind.GATE):
            found = {"if": {"properties": {"cell": _is_of(kind)}}, "then": gate, "else": found}
    return found


_MEASURED_HAS_FIGURES: dict[str, Any] = {
    "if": {"properties": {"status": {"enum": list(MEASURED)}}},
    "then": {
        "required": ["step_time_s", "windows"],
        "properties": {"step_time_s": {"type": "number"}, "windows": {"type": "object"}},
        "anyOf": [{"properties": {key: {"type": "number"}}, "required": [key]} for key, _ in RATE_KEYS.values()],
        "if": {"properties": {"status": {"const": "unproved"}}},
        "then": {"properties": {"reason": {"type": "string", "minLength": 1}}, "required": ["reason"]},
        "else": _gate_of_work(),
    },
    "else": {"properties": {key: {"type": "null"} for key, _ in RATE_KEYS.values()}},
}


def schemas() -> dict[str, dict[str, Any]]:
    """File name to JSON Schema, of every published schema."""
    run = _schema_of(RunManifest, "run.json: one run")
    keys = run["$defs"]["Sweep"]["properties"]
    for key in keys.values():
        key.pop("default", None)  # what a spec that leaves a key out means today is no part of a record
    for name in OF_OWN_STEP:  # a setting in earlier runs, which have one value and no list
        keys[name] = {"title": keys[name]["title"], "anyOf": [keys[name], keys[name]["items"]]}
    return {
        f"run-{SCHEMA_VERSION}.json": run,
        f"trial-{SCHEMA_VERSION}.json": _schema_of(TrialRecord, "A line of trials.jsonl: one trial")
        | _MEASURED_HAS_FIGURES,
        f"fault-{SCHEMA_VERSION}.json": _without_keys_of_cells(
            _schema_of(FaultRecord, "A line of faults.jsonl: one job")
        ),
        "limits-1.json": _schema_of(LimitsRecord, "limits-MACHINE-TIME.json: what a machine can do at most"),
        "proof-1.json": _schema_of(ProofRecord, "proof-MACHINE-TIME.json: what a machine was seen to do"),
    }


def _without_keys_of_cells(schema: dict[str, Any]) -> dict[str, Any]:
    """The keys of a cell stand in the schemas of what is about cells; a line about a job says which cell it was."""
    schema["properties"]["cell"] = {"type": "object", "description": "A cell, with the keys it has in trial-1.json."}
    while unused := [name for name in schema["$defs"] if f'"#/$defs/{name}"' not in json.dumps(schema)]:
        for name in unused:
            del schema["$defs"][name]
    return schema


def _schema_of(model: type[BaseModel], title: str) -> dict[str, Any]:
    return {"$schema": _DIALECT} | model.model_json_schema(mode="validation") | {"title": title}


def text_of(schema: dict[str, Any]) -> str:
    """The schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema file. Raises OSError."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / name).write_text(text_of(schema), encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
