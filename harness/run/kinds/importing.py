"""Published tables (CSV) as runs without trials: `docs/exports.md` has the columns.

A hostile or broken table is one line that names the row and the column. Nothing is made up: what a table does not say
stays unknown, and a figure without an interval has none.
"""

import csv
import datetime
import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

import harness
from harness.errors import UsageError, nearest
from harness.record.imported import ImportedRecord, PublishedFigure
from harness.record.manifest import Machine, RunManifest
from harness.record.store import RunStore, new_run_id
from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

LARGEST_BYTES = 16 * 2**20
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
WORDS = ("hardware", "suite", "date", "source")
NUMBERS = ("throughput_examples_per_s", "low", "high", "confidence")
NEEDED = ("strategy", "replicas", "model", "throughput_examples_per_s")
_TEXT = re.compile(r"[^\x00-\x1f\x7f]*")
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def import_table(path: Path, results: Path, name: str | None = None, source: str | None = None) -> tuple[Path, int]:
    """Keep the table at `path` as a run in `results`; returns its folder and how many figures it holds.

    `source` says where rows come from that do not say so themselves. Raises UsageError that names the row and the
    column, StorageError when `results` cannot be used.
    """
    data = _data(path)
    figures, left_out = read_figures(data.decode("utf-8-sig", "strict"), path.name, source)
    record = ImportedRecord(file=path.name, sha256=hashlib.sha256(data).hexdigest(), figures=figures, left_out=left_out)
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise UsageError(f"--name: given {name!r}, expected letters, digits, '_', '.' and '-', at most 64")
    called = name or (_NAME.sub("-", path.stem).strip("-._") or "table")[:64]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    manifest = RunManifest(
        run_id=new_run_id(called), created_utc=now, finished_utc=now, status="finished",
        command=["harness", "import", path.name], harness_version=harness.__version__,
        sweep=Sweep(name=called), cells=[], plans=[], machine=Machine(facts={}), imported=record,
    )  # fmt: skip
    with RunStore.create(results, manifest) as store:
        return store.path, len(figures)


def read_figures(text: str, name: str, source: str | None = None) -> tuple[list[PublishedFigure], int]:
    """The figures of a CSV text, and how many rows have none. `name` is what errors call the file."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    figures: list[PublishedFigure] = []
    left_out = 0
    columns: list[str] | None = None
    try:
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            if columns is None:
                columns = _columns(row, name)
                continue
            where = f"{name}: row {reader.line_num}"
            if len(figures) >= MOST_ROWS:
                raise UsageError(f"{where}: more than {MOST_ROWS:,} rows; import the table in parts")
            if len(row) != len(columns):
                raise UsageError(f"{where}: has {len(row)} fields, expected {len(columns)} as in the header")
            values = _fields(dict(zip(columns, row, strict=True)), where)
            if values.pop("status", "ok") != "ok":
                left_out += 1
                continue
            figures.append(_figure(values, reader.line_num, where, source))
    except csv.Error as error:
        raise UsageError(f"{name}: row {reader.line_num}: not valid CSV: {error}") from None
    if not figures:
        raise UsageError(f"{name}: holds no figure; expected a header and a row a figure")
    return figures, left_out


def _data(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise UsageError(f"FILE: '{path}' is larger than {LARGEST_BYTES >> 20} MiB: import the table in parts")
        data = path.read_bytes()
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name}: row {row}: is not UTF-8; save the table as UTF-8") from None
    except OSError as error:
        raise UsageError(f"FILE: cannot read '{path}': {error.strerror}; name a CSV file") from None
    return data


def _columns(header: list[str], name: str) -> list[str]:
    """The columns under our names; UsageError for one that is unknown, twice, or missing."""
    valid = [*Cell.model_fields, *ALIASES, *WORDS, *NUMBERS, "batch_size_per_replica", "trials", "status"]
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
    for column in NEEDED:
        if column not in columns:
            other = next((alias for alias, known in ALIASES.items() if known == column), None)
            raise UsageError(f"{name}: row 1: no column {column}" + (f" (or {other})" if other else ""))
    if "batch_size" in columns and "batch_size_per_replica" in columns:
        raise UsageError(f"{name}: row 1: batch_size_per_replica says what batch_size says already")
    return columns


def _fields(row: Mapping[str, str], where: str) -> dict[str, str]:
    """The fields that say something, trimmed."""
    values = {}
    for column, field in row.items():
        text = field.strip()
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"{where}: {column}: {len(text)} characters, expected at most {MOST_CHARACTERS}")
        if not _TEXT.fullmatch(text):
            raise UsageError(f"{where}: {column}: holds a control character")
        if text and not column.startswith("-"):
            values[column] = text
    return values


def _figure(values: dict[str, str], row: int, where: str, source: str | None) -> PublishedFigure:
    for column in NEEDED:
        if column not in values:
            raise UsageError(f"{where}: {column}: is empty")
    if "batch_size_per_replica" in values:
        values["batch_size"] = values.pop("batch_size_per_replica")
        values["batch_scope"] = "per_replica"
    keys = {key: _key(key, values[key], where) for key in Cell.model_fields if key in values}
    numbers = {column: _number(column, values[column], where) for column in NUMBERS if column in values}
    if ("low" in numbers) != ("high" in numbers):
        missing = "low" if "high" in numbers else "high"
        raise UsageError(f"{where}: {missing}: is empty, expected both ends of the interval or none")
    if "low" in numbers:
        numbers.setdefault("confidence", CONFIDENCE)
    elif "confidence" in numbers:
        raise UsageError(f"{where}: confidence: given without low and high")
    words = {column: values[column] for column in WORDS if column in values}
    if source:
        words.setdefault("source", source)
    trials = _whole("trials", values["trials"], where) if "trials" in values else None
    try:
        return PublishedFigure(row=row, keys=keys, trials=trials, **numbers, **words)
    except ValidationError as error:
        first = error.errors()[0]
        column = str(first["loc"][0]) if first["loc"] else "throughput_examples_per_s"
        said = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        raise UsageError(f"{where}: {column}: given {values.get(column, '')!r}, expected {said}") from None


def _key(key: str, text: str, where: str) -> str | int | bool:
    """A cell's key as its type. Strategies and models are what the table calls them; counts are checked."""
    kind: Any = Cell.model_fields[key].annotation
    if key == "precision":
        return text  # what others measured may have a precision that is no choice here
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    if not isinstance(adapter.core_schema, dict) or kind is str:
        return text
    if adapter.core_schema["type"] == "int":
        return _whole(key, text, where, least=0 if key == "ps" else 1)
    try:
        value: str | int | bool = adapter.validate_python(text.lower() if kind is bool else text)
    except ValidationError as error:
        said = error.errors()[0]["msg"].removeprefix("Input should be ").partition(", unable")[0]
        raise UsageError(f"{where}: {key}: given {text[:60]!r}, expected {said}") from None
    return value


def _whole(column: str, text: str, where: str, least: int = 1) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or int(text) < least:
        raise UsageError(f"{where}: {column}: given {text[:60]!r}, expected a whole number from {least}")
    return int(text)


def _number(column: str, text: str, where: str) -> float:
    if (
        not re.fullmatch(r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]{1,3})?|[0-9]+\.", text, re.ASCII)
        or not 0 < float(text) < 1e300
    ):
        raise UsageError(
            f"{where}: {column}: given {text[:60]!r}, expected a number above 0, with a point and no comma"
        )
    return float(text)
