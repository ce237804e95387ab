"""What a page lets one save: whole, and from the page itself, however long it is."""

import base64
import csv
import gzip
import io
from urllib.parse import unquote

from harness.report.export.rows import ExportRow
from harness.report.page.downloads import LONGEST_PLAIN, csv_download


def rows(count: int) -> list[ExportRow]:
    return [{"cell": f"mirrored ×2, «{number}»", "value": 1.5 * number, "low": None} for number in range(count)]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_short_csv_stands_in_its_link_as_it_is() -> None:
    made = csv_download(rows(3), "fig")
    assert made.file == "fig.csv"
    kind, _, text = made.href.partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    assert [row["value"] for row in read(unquote(text))] == ["0.0", "1.5", "3.0"]


def test_a_long_csv_is_gzipped_and_whole() -> None:
    made = csv_download(rows(5000), "fig")
    assert made.file == "fig.csv.gz"
    kind, _, text = made.href.partition(",")
    assert kind == "data:application/gzip;base64"
    found = read(gzip.decompress(base64.b64decode(text)).decode())
    assert len(found) == 5000
    assert found[4999] == {"cell": "mirrored ×2, «4999»", "value": "7498.5", "low": ""}
    assert len(text) < LONGEST_PLAIN * 5


def test_the_same_rows_are_the_same_link_whenever_it_is_made() -> None:
    assert csv_download(rows(5000), "fig") == csv_download(rows(5000), "fig")


def test_what_is_no_number_is_an_empty_field() -> None:
    made = csv_download([{"a": float("nan"), "b": float("inf"), "c": 1}], "fig")
    assert unquote(made.href.partition(",")[2]) == "a,b,c\n,,1\n"
