"""What a run set out to do: one of a union in memory, and on disk what it always was."""

import ast
import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.errors import UsageError
from harness.record import RunManifest
from harness.record.imported import ImportedRecord
from harness.record.manifest import ComparisonRecord, DeviceRecord, ExtensionPlan, SweepPlan
from harness.registry import registered
from harness.trial.engines import catalogue_of
from tests.comparisons import ab_run
from tests.record.examples import cell, manifest

ROOT = Path(__file__).parents[2]
PARTS = re.compile(r"manifest(\([^)]*\))?\.(comparison|validation|faults|imported|extension)\b")


def test_a_run_with_no_part_of_its_own_is_a_sweep() -> None:
    assert manifest().what == SweepPlan()
    assert (manifest().kind, manifest().what.kind.verb, manifest().what.kind.has_trials) == ("sweep", "sweep", True)


def test_the_part_of_a_run_is_had_by_its_type_and_another_one_is_a_clear_error() -> None:
    run = ab_run([0.1, 0.2]).manifest
    assert run.part(ComparisonRecord) is run.what
    with pytest.raises(UsageError, match="'ab-run' is a run of ab: it has no ImportedRecord"):
        run.part(ImportedRecord)


def test_runs_of_the_kinds_that_there_have_always_been_are_written_as_before() -> None:
    assert "extension" not in json.loads(manifest().model_dump_json())
    assert "extension" not in manifest().model_dump(mode="json")


def test_the_plan_of_an_added_kind_is_kept_with_its_name_and_unit() -> None:
    made = manifest(extension=ExtensionPlan(name="disk", unit="writes", plan={"bytes": 4, "folders": ["a"]}))
    again = RunManifest.model_validate_json(made.model_dump_json())
    assert again == made
    kind = again.what.kind
    assert (again.kind, kind.verb, kind.unit, kind.log) == ("disk", "disk", "writes", "records.jsonl")
    assert not kind.has_trials


@pytest.mark.parametrize("name", ["", "../etc", "Disk", "a b", "x" * 33])
def test_the_name_of_an_added_kind_is_a_word(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        ExtensionPlan(name=name)


def test_nothing_but_the_manifest_itself_asks_which_of_its_parts_is_set() -> None:
    asked = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "harness").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PARTS.search(line) and "import " not in line and path.name != "manifest.py"
    ]
    assert asked == []


def test_a_run_keeps_what_its_device_kinds_are_and_one_of_before_has_those_there_were() -> None:
    whole, plain = DeviceRecord(on_processors=True), DeviceRecord()
    made = manifest(devices={"whole-cpu": whole})
    assert RunManifest.model_validate_json(made.model_dump_json()).devices == {"whole-cpu": whole}
    kinds = [cell(device=kind) for kind in ("whole-cpu", "virtual-cpu", "virtual-gpu", "gpu")]
    assert [made.device_of(of) for of in kinds] == [whole, plain, plain, plain]
    assert "devices" not in json.loads(manifest().model_dump_json())
    both, virtual = DeviceRecord(on_processors=True, virtual=True), DeviceRecord(virtual=True)
    assert [manifest().device_of(of) for of in kinds] == [plain, both, virtual, plain]


OF_OTHER_THINGS = {
    "harness/report/limits.py": "where a limit was measured, which is no device kind",
    "harness/run/prove/acceptance.py": "TensorFloat-32 is asked of NVIDIA's cards",
    "harness/run/prove/cells.py": "a model without room is asked of a card",
}


def device_kinds_compared(text: str) -> bool:
    """Whether code compares with the name of a device kind of the house, or with a constant for one."""
    engines = [*registered("harness.engines", "ENGINE")]
    names = {f"'{kind}'" for engine in engines for kind in catalogue_of(engine).devices} | {"VIRTUAL_CPU", "GPU"}
    compared = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Compare))
    parts = (part for node in compared for part in ast.walk(node) if isinstance(part, ast.Name | ast.Constant))
    return any(ast.unparse(part) in names for part in parts)


def test_no_module_tells_device_kinds_by_their_names() -> None:
    assert device_kinds_compared('cell.shape.device == "virtual-cpu"')
    assert device_kinds_compared('"gpu" in {kind for kind in kinds}')
    files = {path: path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "harness").rglob("*.py"))}
    found = {
        name
        for path, name in files.items()
        if not name.startswith("harness/engines/") and device_kinds_compared(path.read_text(encoding="utf-8"))
    }
    assert found == OF_OTHER_THINGS.keys()
