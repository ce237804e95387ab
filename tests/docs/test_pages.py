"""What the pages state about keys, verbs and constants is what the code has."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from harness import cli, record
from harness.analysis.estimates import trend
from harness.analysis.faults import summarise_faults
from harness.record.faults import FaultStatus
from harness.record.model import RecordModel
from harness.report.comparison.as_json import COMPARISON, CPU, ROW, SIDE
from harness.report.faults.as_json import faults_json
from harness.report.values import Keys
from harness.report.words.text import STATUS_WORDS
from harness.run.turns import steps
from harness.spec import CELL_KINDS
from harness.spec.faults import FAULT_NAMES
from harness.trial import clock, judgement, noise, sums
from tests.docs.printed import FENCE, PAGES, anchors
from tests.docs.stated import passage, percent, power_of_ten, states
from tests.faulted import PLAN, example

ROOT = Path(__file__).parents[2]
RECORDS = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
TOLERANCES = {name.replace("tf32", "TF32"): limit for name, limit in judgement.STATE_TOLERANCE.items()}
"""The gate's, by arithmetic as the page names it."""
ROUNDING = "How rounding is allowed for."
"""A paragraph of the protocol."""
CITED = re.compile(r"(?:docs|results)/[\w/-]+\.md(?:#[\w-]+)?")
"""A page of the documentation, and a section of it, as code names them."""
NOT_OF_RUNS = ("tfrecords", "ProcessLimit")
"""What is no part of a run's record or a machine's: features.json, which the page on preparing data explains, and what
a process that measures limits says."""


def parts(of: type[BaseModel]) -> list[type[BaseModel]]:
    """Every kind of part below one."""
    return [of, *(part for kind in of.__subclasses__() for part in parts(kind))]


def parts_of_records() -> list[type[BaseModel]]:
    """Every part with keys that a record of the package has, and every kind of cell."""
    for module in pkgutil.iter_modules(record.__path__, f"{record.__name__}."):
        importlib.import_module(module.name)
    kept = [part for part in parts(RecordModel) if part.__module__.startswith(f"{record.__name__}.")]
    kept = [part for part in kept if not {part.__module__.split(".")[-1], part.__name__} & {*NOT_OF_RUNS}]
    cells = [kind for kind in CELL_KINDS.values() if kind.__module__.startswith("harness.")]
    return sorted((part for part in (*kept, *cells) if part.model_fields), key=lambda part: part.__name__)


@pytest.mark.parametrize("model", parts_of_records(), ids=lambda model: model.__name__)
def test_every_key_of_a_record_is_explained(model: type[BaseModel]) -> None:
    missing = [key for key in model.model_fields if f"`{key}`" not in RECORDS]
    assert not missing


@pytest.mark.parametrize("keys", [COMPARISON, ROW, SIDE, CPU], ids=["comparison", "row", "side", "cpu"])
def test_every_key_of_a_comparison_is_explained(keys: Keys) -> None:
    assert not [key for key in keys if f"`{key}`" not in RECORDS]


def test_every_status_is_explained() -> None:
    assert all(f"| `{status}` |" in FIGURES for status in STATUS_WORDS if status != "missing")


def test_what_becomes_of_a_job_is_explained() -> None:
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    assert all(f"| `{status}` |" in page for status in get_args(FaultStatus) if status != "undisturbed")
    assert all(f"| `{fault}` |" in page for fault in FAULT_NAMES)


def test_every_check_of_the_gate_is_explained() -> None:
    for check in ("reduction", "update", "late", "loss", "replicas_agree", "updates_applied", "loss_finite"):
        assert f"| `{check}` |" in PROTOCOL


@pytest.mark.parametrize(
    ("lead", "figure"),
    [
        ("K.", f"{clock.SYNC_MULTIPLE} synchronisations"),
        ("K.", percent(steps.LONGEST - 1)),
        ("K.", f"{steps.ALIKE} times"),
        ("Trends.", percent(trend.MATTERS)),
        ("Trends.", percent(trend.LEVEL)),
        (ROUNDING, f"{noise.PERTURBED_RUNS} times"),
        (ROUNDING, f"{judgement.NOISE_FACTOR} ×"),
        (ROUNDING, f"{noise.SIGNAL} times"),
        (ROUNDING, f"{noise.SIGNAL * noise.SHARE_ROUNDING} times"),
        *((ROUNDING, f"{power_of_ten(limit)} in {name}") for name, limit in TOLERANCES.items()),
    ],
)
def test_the_protocol_states_the_constant_of_the_code(lead: str, figure: str) -> None:
    assert states(passage(PROTOCOL, lead), figure)


def test_the_protocol_states_up_to_how_many_replicas_send_powers_of_two() -> None:
    [row] = [line for line in PROTOCOL.splitlines() if line.startswith("| `reduction` |")]
    assert states(row, f"{sums.POWERS} replicas")


def test_the_readme_lists_exactly_the_verbs_there_are() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)[^|]*` \|", readme, re.MULTILINE))
    verbs = {
        path.stem.removesuffix("_runs")
        for path in (ROOT / "harness" / "cli").glob("*.py")
        if "\nVERB" in path.read_text()
    }
    assert listed == verbs


def test_the_page_on_scripts_has_a_row_for_every_verb_that_prints_json() -> None:
    page = (ROOT / "docs" / "scripting.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"`(\w+)[^`]* --json`", page.partition("## JSON")[2]))
    verbs = cli.command_line().commands
    assert rows == {name for name, verb in verbs.items() if any("--json" in flag.opts for flag in verb.params)}


def test_the_page_on_scripts_names_every_key_of_the_summary_of_faults() -> None:
    page = (ROOT / "docs" / "scripting.md").read_text(encoding="utf-8")
    keys = faults_json(summarise_faults(PLAN, example()))
    assert all(f"`{key}`" in page for key in keys)


def cited() -> list[str]:
    """Every page and section that code, schemas and templates of the package name."""
    folders = (ROOT / "harness", ROOT / "benchmarks", ROOT / "tests")
    files = (
        file for folder in folders for file in folder.rglob("*") if file.suffix in (".py", ".json", ".toml", ".j2")
    )
    return sorted({page for file in files for page in CITED.findall(file.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("page", cited())
def test_a_page_that_code_cites_is_there_with_its_section(page: str) -> None:
    path, _, anchor = page.partition("#")
    assert (ROOT / path).exists()
    assert not anchor or anchor in anchors(ROOT / path)


def test_the_tables_of_keys_are_made_from_what_the_code_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    tables = importlib.import_module("key_tables")
    for name, its in tables.TABLES_OF.items():
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert tables.written(page, its) == page, "python docs/key_tables.py writes them anew"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    named = re.findall(r"`((?:harness|benchmarks|tests|docs)/[\w/.-]+)`", text)
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_no_place_of_one_machine(page: Path) -> None:
    assert not re.search(r"/home/|/work/|/root/|/tmp/|localhost:|pypi", page.read_text(encoding="utf-8"))
