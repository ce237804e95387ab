"""The index of a folder of reports: every page in it with its answer, rewritten whenever a page is written there.

The folder itself is the record: each page says in its head what it is (`identity.html.j2`), so pages may be moved,
removed or copied in by hand, and the next index is right again.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

from harness.errors import StorageError
from harness.files import hold_folder, opened
from harness.record.files import remove_unfinished, replace_file
from harness.report.kinds import presentations
from harness.report.page.templating import rendered
from harness.report.words.text import shortened
from harness.visible import plural, printable

INDEX_NAME = "index.html"
MARK = "harness-kind"
"""The meta element that a page of ours begins with."""
OF_SEVERAL = ("comparison", "history")
"""What a page of several runs says that it is; one of a run says what its kind has it say."""
_HEAD_BYTES = 65536
"""Of a page, read to find its head: what it says of itself stands before its style."""
_MOST_LETTERS = 400
_PATIENCE_S = 10.0
_OLD_S = 3600.0
"""No page is written for so long: what is half-written and older is a killed process's."""
_OLD_TITLES = {
    " · distributed training benchmark": "run",
    " · the method, measured": "validation",
    " · faults": "faults",
}
"""How titles ended before pages said what they are."""


@dataclass(frozen=True)
class Listed:
    """One page of the folder."""

    link: str
    """Relative to the index, quoted for a URL."""
    name: str
    kind: str
    """What the page says that it is."""
    runs: str
    measured: str
    """When the run was created, as the page says, in UTC."""
    written: str
    headline: str


def update_index(folder: Path) -> Path | None:
    """Write `folder`/index.html anew from the pages there, one writer after the other.

    None, and nothing is touched, where an index.html is there that is not ours. Raises StorageError when the index
    cannot be written or another process holds it for too long; the pages themselves are not concerned.
    """
    target = folder / INDEX_NAME
    try:
        with _alone(folder):
            remove_unfinished(folder, _OLD_S)
            if target.exists() and _said(target).get(MARK) != "index":
                return None
            pages, others, unread = _pages(folder)
            text = rendered("index.html.j2", pages=pages, others=others, unread=unread, plural=plural)
            replace_file(target, text.encode("utf-8", "replace"))
    except OSError as error:
        raise StorageError(
            f"cannot write '{target}': {error.strerror or error}; the report itself is written"
        ) from None
    return target


def has_index(folder: Path) -> bool:
    """Whether an index of ours is in `folder`."""
    try:
        return _said(folder / INDEX_NAME).get(MARK) == "index"
    except OSError:
        return False


def _pages(folder: Path) -> tuple[list[Listed], int, list[str]]:
    """(our pages, the newest measurement first; how many pages are others'; names of those that cannot be read)."""
    found, others, unread = [], 0, []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.name.lower().endswith(".html") or entry.name.startswith(".") or entry.name == INDEX_NAME:
            continue
        try:
            if not entry.is_file():
                continue
            listed = _listed(Path(entry.path), entry.stat().st_mtime)
        except OSError:
            unread.append(printable(os.fsencode(entry.name).decode("utf-8", "replace")))
            continue
        if listed is None:
            others += 1
        else:
            found.append(listed)
    return sorted(found, key=lambda page: (page.measured, page.name), reverse=True), others, unread


def _listed(path: Path, written: float) -> Listed | None:
    said = _said(path)
    title = said.get("title", "")
    kind = said.get(MARK) or next((kind for end, kind in _OLD_TITLES.items() if title.endswith(end)), None)
    if kind not in (*OF_SEVERAL, *(shown.page_kind for shown in presentations().values())):
        return None
    name = os.fsencode(path.name)
    return Listed(
        link=quote(name),
        name=printable(name.decode("utf-8", "replace")),
        kind=kind,
        runs=said.get("harness-runs") or title.split(" · ")[0],
        measured=_minute(said.get("harness-measured", "")),
        written=f"{datetime.fromtimestamp(written, UTC):%Y-%m-%d %H:%M}",
        headline=said.get("harness-headline") or "made by an earlier version: open it for its answer",
    )


def _said(path: Path) -> dict[str, str]:
    """What the page says of itself: its title, and our meta elements by name. Raises OSError."""
    with opened(path) as stream:
        text = stream.read(_HEAD_BYTES).decode("utf-8", "replace")
    head = _Head()
    with contextlib.suppress(AssertionError):  # html.parser's answer to `<![` before what is no name
        head.feed(re.split(r"</head|<style|<body", text, maxsplit=1, flags=re.IGNORECASE)[0])
    return {name: _short(value) for name, value in head.said.items()}


class _Head(HTMLParser):
    """Title and meta elements."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: dict[str, str] = {}
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "meta" and name.startswith("harness-"):
            self.said.setdefault(name, given.get("content") or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.said["title"] = self.said.get("title", "") + data


def _minute(text: str) -> str:
    """`2026-11-21 03:25` in UTC; what is no time stays as it is."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return text


def _short(text: str) -> str:
    return shortened(text, _MOST_LETTERS)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder, so that of two writers the second sees the first one's page. Raises OSError, StorageError."""
    with hold_folder(folder, _PATIENCE_S) as free:
        if not free:
            raise StorageError(
                f"'{folder / INDEX_NAME}' is being written by another process for {_PATIENCE_S:g} s: "
                "the report itself is written, the index is not"
            )
        yield
