"""The pages on exports and Python: commands work as printed, tables are the code's, Python runs."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from harness import cli
from harness.record.reading import list_runs
from harness.report.kinds import formats
from harness.report.tables.column import Column
from harness.report.tables.columns import (
    CELL_COLUMNS,
    COMPARISON_COLUMNS,
    RUN_COLUMNS,
    SUMMARY_COLUMNS,
    TRIAL_COLUMNS,
    WINDOW_COLUMNS,
)
from harness.report.tables.subject_columns import COLLECTIVE_COLUMNS, PART_COLUMNS, PIPELINE_COLUMNS, RATE_COLUMNS
from harness.report.words.text import IN_THESE_MINUTES
from tests.docs.printed import HARNESS, ROOT

EXPORTS = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
PYTHON = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
RECORDS = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
KINDS = {
    "text": "text",
    "category": "category",
    "count": "whole number",
    "number": "number",
    "flag": "true or false",
    "time": "time, UTC",
}
TABLES = {
    "Trials": TRIAL_COLUMNS,
    "Windows": WINDOW_COLUMNS,
    "Cells": SUMMARY_COLUMNS,
    "Comparisons": COMPARISON_COLUMNS,
    "Parts of a step": PART_COLUMNS,
    "Collectives": COLLECTIVE_COLUMNS,
    "Input pipelines": PIPELINE_COLUMNS,
    "Limits": RATE_COLUMNS,
    "Runs": RUN_COLUMNS,
}
WORK = [command for command in HARNESS if shlex.split(command)[3] in ("export", "import") and " latest" not in command]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the repository's root, for commands to work in."""
    (tmp_path / "results").mkdir()
    shutil.copytree(ROOT / "results" / "reference", tmp_path / "results" / "reference")
    (tmp_path / "harness").symlink_to(ROOT / "harness")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", WORK)
def test_an_export_or_import_works_as_printed(command: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = shlex.split(command)[3:]
    assert cli.run(arguments) == 0, capsys.readouterr().err
    if "--output" in arguments:
        assert (checkout / arguments[arguments.index("--output") + 1]).exists()
    elif arguments[0] == "import":
        assert any(listing.status == "imported" for listing in list_runs(checkout / "results"))
    else:
        assert capsys.readouterr().out


def test_the_page_names_every_format() -> None:
    listed = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \| ", EXPORTS.partition("## pytest-benchmark")[0], re.MULTILINE)
    assert sorted(re.findall(r"`([\w-]+)`", " ".join(listed))) == sorted(formats())


ENDS = rf"(lower|upper) end of its (95 % interval( {IN_THESE_MINUTES})?|corrected interval)"


def section(title: str) -> str:
    return PYTHON.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def is_a_key_of_the_cell(column: Column) -> bool:
    return column in CELL_COLUMNS or f"cell.{column.name}" in {key.name for key in CELL_COLUMNS}


BY_TYPE = ("Trials", "Comparisons")
"""Tables that list the columns of each type: what they mean stands where the record, or the JSON, is explained."""


@pytest.mark.parametrize("title", sorted(TABLES.keys() - set(BY_TYPE)))
def test_every_column_is_on_the_page_with_its_type_unit_and_meaning(title: str) -> None:
    """Nothing is said twice: a key of the cell, a trial's column, a base's figure, an end of an interval."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| (.*) \|$", section(title), re.MULTILINE)
    columns = [column for column in TABLES[title] if not is_a_key_of_the_cell(column)]
    told = [column for column in columns if not said_elsewhere(title, column)]
    typed = {column: KINDS[column.kind] + (column.unit and f", {column.unit}") for column in told}
    assert rows == [(column.name, type_, column.meaning) for column, type_ in typed.items()]
    for column in columns:
        name = of_its_interval(column)
        assert f"`{name}`" in section(title) or f"`{name.partition('.')[0]}.…`" in section(title)


@pytest.mark.parametrize("title", BY_TYPE)
def test_every_column_is_listed_by_its_type_and_explained_where_its_key_is(title: str) -> None:
    columns = [column for column in TABLES[title] if not is_a_key_of_the_cell(column)]
    listed = dict(re.findall(r"^\| ([\w, ]+) \| (`.*`) \|$", section(title), re.MULTILINE))
    for kind, word in KINDS.items():
        names = [of_its_interval(column) for column in columns if column.kind == kind]
        assert re.findall(r"`([\w.]+)`", listed.get(word, "")) == list(dict.fromkeys(names))
    for column in columns:
        key = re.sub(r"^(cpu|a|b)_(?!seconds)", "", of_its_interval(column)).rpartition(".")[2]
        assert f"`{key}`" in RECORDS or f"`{column.name}`" in section(title).rpartition("|")[2]


def of_its_interval(column: Column) -> str:
    """The name of the figure that the column is the lower or upper end of, else its own."""
    return re.sub("_(low|high)$", "", column.name)


def said_elsewhere(title: str, column: Column) -> bool:
    """Whether the page names the column and leaves its meaning to the row of its twin."""
    if title == "Windows":
        return column in TRIAL_COLUMNS
    if of_its_interval(column) != column.name:
        return re.fullmatch(ENDS, column.meaning) is not None
    family, _, figure = column.name.partition(".")
    twins = {"vs_own": ("vs_none", SUMMARY_COLUMNS, ""), "phases": ("phases", TRIAL_COLUMNS, "median: ")}
    if title != "Cells" or family not in twins:
        return False
    other, columns, words = twins[family]
    twin = next(one for one in columns if one.name == f"{other}.{figure}")
    return (column.kind, column.unit, column.meaning) == (twin.kind, twin.unit, words + twin.meaning)


def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", PYTHON, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})
    said = capsys.readouterr().out
    assert "central_storage ×2 b128" in said
    assert "\nundecided\n" in said
