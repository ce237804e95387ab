"""Writes the tables of keys into records.md, from the table that the code has: `python docs/key_tables.py`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.cli._completion import told_names
from harness.cli._options import NAMES_MARK
from harness.spec.axes import TABLE
from harness.spec.settings import SETTINGS, Settings
from harness.spec.sweep import OTHER_WORKS, OWN_OF_WORK
from harness.spec.text import text_of
from harness.spec.work import fields_of

PAGE = Path(__file__).with_name("records.md")
MARKS = {
    "axes": ("<!-- axes: begin -->", "<!-- axes: end -->"),
    "settings": ("<!-- settings: begin -->", "<!-- settings: end -->"),
    "collective": ("<!-- collective: begin -->", "<!-- collective: end -->"),
    "pipeline": ("<!-- pipeline: begin -->", "<!-- pipeline: end -->"),
}


def tables() -> Mapping[str, str]:
    """The Markdown between the marks: axes and settings of a run, with what a spec that is silent asks for, and which
    axes other kinds of work have."""
    axes = []
    for key, axis in TABLE.items():
        spelled = {name: asked.help for name, asked in axis.kinds.items()}
        help_ = "; ".join([_told(key, axis.help), *(f"in a spec `{name}`: {words}" for name, words in spelled.items())])
        axes.append((f"`{key}`", help_, _listed(axis.asked)))
    for key, asked in OWN_OF_WORK.items():
        axes.append((f"`{key}`", _told(key, asked.help), _listed(asked.values)))
    settings = []
    for key, setting in SETTINGS.items():
        default = Settings.model_fields[key].get_default(call_default_factory=True)
        settings.append((f"`{key}`", _told(key, setting.help), _listed([default])))
    return {"axes": _markdown(axes), "settings": _markdown(settings)} | {
        work: ", ".join(f"`{key}`" for key in fields_of(work)) for work in OTHER_WORKS
    }


def written(page: str) -> str:
    """`page` with each table between its marks."""
    for name, text in tables().items():
        begin, end = MARKS[name]
        head, _, rest = page.partition(begin)
        _, _, tail = rest.partition(end)
        if not tail:
            raise SystemExit(f"expected '{begin}' before an '{end}'")
        page = f"{head}{begin}\n{text}\n{end}{tail}"
    return page


def _told(key: str, text: str) -> str:
    return text.replace(NAMES_MARK, told_names(key)) if NAMES_MARK in text else text


def _listed(values: Iterable[object]) -> str:
    return ", ".join(f"`{text_of('', value)}`" for value in values if value not in ("", None))


def _markdown(rows: Iterable[tuple[str, str, str]]) -> str:
    cells = (f"| {key} | {meaning} | {default} |" for key, meaning, default in rows)
    return "\n".join(["| key | meaning | default |", "| --- | --- | --- |", *cells])


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
