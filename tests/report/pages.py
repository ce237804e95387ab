"""Pages as a browser would parse them."""

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr", "input", "use", "path"}
NASTY = "<script>alert('x')</script>\"&\u202e\x00 $\\alpha$ 日本語 " + "long_" * 60


class Page(HTMLParser):
    """The text, tags and attributes of a page; unbalanced tags are an error."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def _is_sound(page: Page) -> None:
    """What must hold of every page, whatever the run."""
    assert not re.search(r"\b(None|nan|NaN|-?inf|Infinity|Undefined)\b", page.words)  # "none" is a strategy
    assert all("src" not in attributes for attributes in page.named("script"))  # none from elsewhere
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href", "data", "action"):
                assert value is not None
                assert value.startswith(("#", "data:text/csv;charset=utf-8,"))
            assert "url(http" not in (value or "")
            assert "nan" not in (value or "").lower().split()
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in page.named("svg"):
        if svg.get("aria-hidden") == "true":  # a key of a legend, whose words are in the description
            continue
        assert svg["role"] == "img"
        assert set((svg["aria-labelledby"] or "").split()) <= set(ids)
    targets = {a["href"] for a in page.named("a")} | {u["href"] for u in page.named("use")}
    assert {target[1:] for target in targets if target and target.startswith("#")} <= set(ids)
