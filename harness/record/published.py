"""Reading a published table (CSV): `docs/exports.md` has the columns.

A hostile or broken table is one line that names the row and the column. Nothing is made up: what a table does not say
stays unknown, and a figure without an interval has none.
"""

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError, create_model

from harness.errors import UsageError, nearest
from harness.record.imported import NEEDED_KEYS, PublishedFigure
from harness.spec.cell import TrainingCell
from harness.spec.quantity import EXAMPLES
from harness.spec.values import MOST, QUANTITY

MOST_ROWS = 100_000
MOST_CHARACTERS = 500
"""Of one field."""
CONFIDENCE = 0.95
"""Of an interval whose table does not say."""
ALIASES = {
    "images_per_s": "throughput_examples_per_s",
    "examples_per_s": "throughput_examples_per_s",
    "throughput_examples_per_s_low": "low",
    "throughput_examples_per_s_high": "high",
    "trials_ok": "trials",
    "n": "trials",
}
"""Other names of columns: those of published tables, and of `export --format cells`."""
NEEDED_COLUMNS = (*NEEDED_KEYS, "throughput_examples_per_s")
_OTHER_RATE = re.compile(rf"-throughput_({QUANTITY})_per_s")
"""A column of `export --format cells` with rates of work that is counted in something else, passed over."""
_TEXT = re.compile(r"[^\x00-\x1f\x7f]*")
EXPECTED = {
    "int_parsing": "a whole number from 1",
    "int_from_float": "a whole number from 1",
    "int_parsing_size": f"a whole number up to {MOST}",
    "greater_than_equal": "a whole number from {ge}",
    "less_than_equal": "a whole number up to {le}",
    "float_parsing": "a number above 0, with a point and no comma",
    "greater_than": "a number above 0",
    "finite_number": "a number above 0",
}
"""What a field should have held, by pydantic's name of what is wrong with it; its own words serve for the others."""


def _row_model() -> type[BaseModel]:
    """A row: the keys of a cell and what a figure has besides. Precisions, too, are what the table calls them."""
    figure = {key: field for key, field in PublishedFigure.model_fields.items() if key not in ("row", "keys")}
    fields: dict[str, Any] = {}
    for key, field in {**TrainingCell.model_fields, **figure}.items():
        kind: Any = str if key == "precision" else field.rebuild_annotation()
        fields[key] = (kind, ... if key in NEEDED_COLUMNS else None)
    return create_model("FigureRow", **fields)


FigureRow = _row_model()


def read_figures(text: str, name: str, source: str | None = None) -> tuple[list[PublishedFigure], int]:
    """The figures of a CSV text, and how many rows have none. `name` is what errors call the file.

    UsageError, with the row, for a text that is no such table.
    """
    table = csv.DictReader(io.StringIO(text, newline=""), restkey="", strict=True)
    figures: list[PublishedFigure] = []
    left_out = 0
    try:
        table.fieldnames = _columns(next(filter(any, table.reader), []), name)
        for row in table:
            if not any(field and str(field).strip() for field in row.values()):
                continue
            where = f"{name}: row {table.reader.line_num}"
            if len(figures) >= MOST_ROWS:
                raise UsageError(f"{where}: more than {MOST_ROWS:,} rows; import the table in parts")
            values = _fields(row, where)
            counted_in_examples = "throughput_examples_per_s" in values or not any(
                text and _OTHER_RATE.fullmatch(column) for column, text in row.items()
            )
            if values.pop("status", "ok") != "ok" or not counted_in_examples:
                left_out += 1
            else:
                figures.append(_figure(values, table.reader.line_num, where, source))
    except csv.Error as error:
        raise UsageError(f"{name}: row {table.reader.line_num}: not valid CSV: {error}") from None
    if not figures:
        raise UsageError(f"{name}: holds no figure; expected a header and a row a figure")
    return figures, left_out


def _columns(header: list[str], name: str) -> list[str]:
    """The columns under our names; UsageError for one that is unknown, twice, or missing."""
    valid = [*FigureRow.model_fields, *ALIASES, "batch_size_per_replica", "status"]
    columns: list[str] = []
    whole_export = "cell_id" in header
    for field in header:
        given = field.strip()
        # what else an export of cells says is no published figure; its `trials` counts failed ones too
        passed_over = whole_export and (given not in valid or given == "trials")
        if given not in valid and not passed_over:
            raise UsageError(f"{name}: row 1: unknown column {given[:60]!r}{nearest(given, valid)}")
        column = f"-{given}" if passed_over else ALIASES.get(given, given)
        if column in columns:
            raise UsageError(f"{name}: row 1: column {given!r} says what another one says already")
        columns.append(column)
    for column in NEEDED_COLUMNS:
        if column not in columns:
            raise UsageError(f"{name}: row 1: no column {column}{_instead(column, columns)}")
    if "batch_size" in columns and "batch_size_per_replica" in columns:
        raise UsageError(f"{name}: row 1: batch_size_per_replica says what batch_size says already")
    return columns


def _instead(missing: str, columns: list[str]) -> str:
    """What else would do for the column, or why an export of cells has it not."""
    if missing == "throughput_examples_per_s" and (others := list(filter(None, map(_OTHER_RATE.fullmatch, columns)))):
        return (
            f": its rates are in {others[0][1]}/s, and {EXAMPLES.unit} alone are imported, in which --quantity "
            f"{EXAMPLES.many} measures"
        )
    other = next((alias for alias, known in ALIASES.items() if known == missing), None)
    return f" (or {other})" if other else ""


def _fields(row: Mapping[str, Any], where: str) -> dict[str, str]:
    """The fields that say something, trimmed."""
    if "" in row or None in row.values():
        count = sum(field is not None for field in row.values()) + len(row.get("", [""])) - 1
        raise UsageError(f"{where}: has {count} fields, expected {len(row.keys() - {''})} as in the header")
    values = {column: field.strip() for column, field in row.items()}
    for column, text in values.items():
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"{where}: {column}: {len(text)} characters, expected at most {MOST_CHARACTERS}")
        if not _TEXT.fullmatch(text):
            raise UsageError(f"{where}: {column}: holds a control character")
    if values.get("batch_size_per_replica"):
        values |= {"batch_size": values.pop("batch_size_per_replica"), "batch_scope": "per_replica"}
    return {column: text for column, text in values.items() if text and not column.startswith("-")}


def _figure(values: dict[str, str], number: int, where: str, source: str | None) -> PublishedFigure:
    try:
        given = FigureRow.model_validate(values).model_dump(exclude_none=True)
        keys = {key: given.pop(key) for key in TrainingCell.model_fields if key in given}
        for one, other in (("low", "high"), ("high", "low")):
            if one in given and other not in given:
                raise UsageError(f"{where}: {other}: is empty, expected both ends of the interval or none")
        if "low" in given:
            given.setdefault("confidence", CONFIDENCE)
        elif "confidence" in given:
            raise UsageError(f"{where}: confidence: given without low and high")
        if source:
            given.setdefault("source", source)
        return PublishedFigure(row=number, keys=keys, **given)
    except ValidationError as error:
        first = error.errors()[0]
    column = str(first["loc"][0]) if first["loc"] else "throughput_examples_per_s"
    if first["type"] == "missing":
        raise UsageError(f"{where}: {column}: is empty")
    said = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ").partition(", unable")[0]
    expected = EXPECTED[first["type"]].format(**first.get("ctx", {})) if first["type"] in EXPECTED else said
    raise UsageError(f"{where}: {column}: given {values.get(column, '')[:60]!r}, expected {expected}")
