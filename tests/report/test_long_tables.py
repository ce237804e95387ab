"""A table of many rows on a page and on a terminal: what is shown, what is marked, and where the rest is."""

import base64
import csv
import gzip
import io
import re
from dataclasses import replace
from html import unescape
from urllib.parse import unquote

import pytest

from harness.analysis.comparison import compare_runs
from harness.analysis.estimates.verdict import Margins
from harness.report.notebook import ComparisonResult, ExplainResult, SweepResult
from harness.report.page.templating import environment
from harness.report.tables.table import MOST_ROWS, Head, Table
from harness.report.terminal.table import table_text
from tests.comparisons import pair_of_runs, sweep_run
from tests.explained import explain_run
from tests.report.pages import Page

COLUMNS = (Head("cell", False), Head("examples/s"))


def table(rows: int, marked: frozenset[int] = frozenset()) -> Table:
    return Table("Odd & long: ×", COLUMNS, tuple((f"cell {n}", str(n)) for n in range(rows)), "a note", marked)


def on_a_page(of: Table) -> Page:
    """The table as pages set it."""
    text = '{% from "table.html.j2" import table_of %}{{ table_of(table, "a label") }}'
    return Page(environment().from_string(text).render(table=of))


def saved(page: Page) -> list[dict[str, str]]:
    """The rows of the CSV that the page's link saves."""
    [link] = page.named("a")
    kind, _, data = (link["href"] or "").partition(",")
    text = gzip.decompress(base64.b64decode(data)).decode() if "gzip" in kind else unquote(data)
    assert (link["download"] or "").endswith(".csv.gz" if "gzip" in kind else ".csv")
    return list(csv.DictReader(io.StringIO(text)))


def test_a_table_that_is_not_long_is_there_whole_and_needs_no_file() -> None:
    page = on_a_page(table(MOST_ROWS))
    assert len(page.named("tr")) == MOST_ROWS + 1
    assert page.named("a") == []
    assert "more" not in page.words


def test_a_longer_one_says_how_many_rows_it_leaves_to_the_csv_which_has_all() -> None:
    page = on_a_page(table(MOST_ROWS + 1300))
    assert len(page.named("tr")) == MOST_ROWS + 1
    assert f"The first {MOST_ROWS} of 1,500 rows; 1,300 more are in the CSV of the table: CSV" in page.words
    rows = saved(page)
    assert [row["cell"] for row in rows] == [f"cell {n}" for n in range(1500)]
    assert set(rows[0]) == {"cell", "examples/s"}


@pytest.mark.parametrize(
    ("work", "call"),
    [("", "load_cells"), ("collective", "load_collectives"), ("pipeline", "load_pipelines")],
)
def test_a_notebook_has_no_csv_and_names_the_call_that_gives_all_rows(
    work: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.tables.table.MOST_ROWS", 1)
    swept, steps = sweep_run("swept"), explain_run()
    of_work = swept.manifest.model_copy(update={"sweep": swept.manifest.sweep.model_copy(update={"work": work})})
    comparison = compare_runs(*pair_of_runs(), Margins())
    for all_rows, result in {
        f"harness.{call}('results/swept')": SweepResult(replace(swept, manifest=of_work)),
        f"harness.load_parts({str(steps.path)!r})": ExplainResult(steps),
        "the attribute frame": ComparisonResult(comparison),
    }.items():
        page = unescape(result._repr_html_())
        [more] = {said for _, said in re.findall(r"(The first 1 of \d+ rows; .*?) are in ([^<]*)\.<", page)}
        assert more == all_rows
        assert "CSV" not in page


def test_marked_rows_that_are_left_to_the_csv_are_counted_and_marked_there() -> None:
    page = on_a_page(table(MOST_ROWS + 50, frozenset({0, MOST_ROWS + 1, MOST_ROWS + 2})))
    assert "50 more (2 of them marked) are in the CSV" in page.words
    assert [n for n, row in enumerate(saved(page)) if row["marked"] == "True"] == [0, MOST_ROWS + 1, MOST_ROWS + 2]


def test_a_marked_row_says_so_in_words_and_with_a_sign_not_by_colour_alone() -> None:
    page = on_a_page(table(3, frozenset({1})))
    assert page.words.count("marked:") == 1
    assert page.words.count("*") == 1
    assert page.words.index("marked:") < page.words.index("cell 1")
    assert page.words.index("cell 0") < page.words.index("*")


def test_on_a_terminal_without_bold_a_marked_row_begins_with_a_star() -> None:
    lines = table_text(table(3, frozenset({1}))).splitlines()
    assert [line.split()[:2] for line in lines if "cell" in line][1:] == [["cell", "0"], ["*", "cell"], ["cell", "2"]]
    assert "\x1b" not in "".join(lines)


def test_names_are_text_and_never_markup() -> None:
    odd = Table("t", COLUMNS, (('<b>&"', "</td><script>"),), marked=frozenset({0}))
    page = on_a_page(odd)
    assert page.named("script") == page.named("b") == []
    assert '<b>&"' in page.words
    assert "</td><script>" in page.words
