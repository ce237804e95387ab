"""Rows of a table as HTML, made here: a template takes five times as long over ten thousand cells."""

from collections.abc import Iterator

from markupsafe import Markup, escape

from harness.report.tables.table import Table

_HEADS = ("cell", "held fixed")
"""Columns that name their row."""
_LONG_HEAD, _LONG = 60, 90
"""Letters from which a text may be broken anywhere."""
_MARKED, _LONG_NAME = ' class="marked"', ' class="long"'
_MARK = '<span class="mark"><span aria-hidden="true">* </span><span class="unseen">marked: </span></span>'
"""For those who do not see the row's ground, and for paper."""
PLAIN_MARK = "* "
"""Where no style sheet hides what is said to those who hear the page."""


def body_of(table: Table, mark: str = _MARK) -> Markup:
    """The `<tr>` of every row that a page shows, escaped; `mark` is what a row begins with that is set apart."""
    return Markup("\n").join(map(Markup, _rows(table, mark)))


def _rows(table: Table, mark: str) -> Iterator[str]:
    kinds = [(column.name in _HEADS, "number" if column.numeric else "words") for column in table.columns]
    for number, row in enumerate(table.first):
        marked = number in table.marked
        cells = [_cell(text, *kind) for text, kind in zip(row, kinds, strict=True)]
        if marked:
            tag, end, rest = cells[0].partition(">")
            cells[0] = f"{tag}{end}{mark}{rest}"
        yield f"<tr{_MARKED if marked else ''}>{''.join(cells)}</tr>"


def _cell(text: str, head: bool, kind: str) -> str:
    shown = escape(text)
    if head:
        return f'<th scope="row"{_LONG_NAME if len(text) > _LONG_HEAD else ""}>{shown}</th>'
    return f'<td class="{kind}{" long" if len(text) > _LONG else ""}">{shown}</td>'
