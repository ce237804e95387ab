"""Writes the tables of keys into the pages that have them, from what the code has: `python docs/key_tables.py`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.cli._completion import told_names
from harness.cli._options import NAMES_MARK
from harness.spec.axes import CELL_KEYS, TABLE
from harness.spec.collective import COLLECTIVE
from harness.spec.settings import SETTINGS, Settings
from harness.spec.sweep import ASKED, OTHER_WORKS, OWN_OF_WORK
from harness.spec.taken import strategies_that
from harness.spec.text import text_of
from harness.spec.work import TRAINING, fields_of
from harness.trial.engines import catalogue_of

FOLDER = Path(__file__).parent
TABLES_OF = {"records.md": ("axes", "settings", "collective", "pipeline"), "engines.md": ("untaken",)}
"""The tables of each page, each between two comments with its name."""
OTHERS = {"jax": "JAX", "torch": "PyTorch", "keras_distribution": "keras.distribution", "horovod": "Horovod"}
"""The engines beside TensorFlow."""


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
    return {"axes": _markdown(axes), "settings": _markdown(settings), "untaken": _untaken()} | {
        work: ", ".join(f"`{key}`" for key in fields_of(work)) for work in OTHER_WORKS
    }


def _untaken() -> str:
    """Which of the other engines know the default alone of which keys of a training, of a run and of a collective."""
    catalogues = {title: catalogue_of(engine) for engine, title in OTHERS.items()}

    def lack(work: str, key: str) -> str:
        own, takers = CELL_KEYS.get(key, key), ASKED[key].takers
        able = [
            title
            for title, of in catalogues.items()
            if of.takes(work, own) and (takers is None or strategies_that(of, takers.are))
        ]
        return ", ".join(title for title in catalogues if title not in able) if able else "all"

    rows: dict[tuple[str, str], list[str]] = {}
    for key in (key for key in ASKED if key not in OWN_OF_WORK):
        rows.setdefault(("", lack(TRAINING, key)), []).append(f"`{key}`")
        if COLLECTIVE in TABLE[CELL_KEYS.get(key, key)].works and lack(COLLECTIVE, key) == "all" != lack(TRAINING, key):
            rows.setdefault((" of collectives", "all"), []).append(f"`{key}`")
    for key in SETTINGS:
        by = [title for title, of in catalogues.items() if key in of.refuses]
        rows.setdefault(("", "all" if len(by) == len(OTHERS) else ", ".join(by)), []).append(f"`{key}`")
    told = (f"| {', '.join(keys)}{of} | {by} |" for (of, by), keys in rows.items() if by)
    return "\n".join(["| not taken | by |", "| --- | --- |", *told])


def written(page: str, names: Iterable[str]) -> str:
    """`page` with the tables of these names between their marks."""
    told = tables()
    for name in names:
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, _, rest = page.partition(begin)
        _, _, tail = rest.partition(end)
        if not tail:
            raise SystemExit(f"expected '{begin}' before an '{end}'")
        page = f"{head}{begin}\n{told[name]}\n{end}{tail}"
    return page


def _told(key: str, text: str) -> str:
    return text.replace(NAMES_MARK, told_names(key)) if NAMES_MARK in text else text


def _listed(values: Iterable[object]) -> str:
    return ", ".join(f"`{text_of('', value)}`" for value in values if value not in ("", None))


def _markdown(rows: Iterable[tuple[str, str, str]]) -> str:
    cells = (f"| {key} | {meaning} | {default} |" for key, meaning, default in rows)
    return "\n".join(["| key | meaning | default |", "| --- | --- | --- |", *cells])


if __name__ == "__main__":
    for name, its in TABLES_OF.items():
        (FOLDER / name).write_text(written((FOLDER / name).read_text(encoding="utf-8"), its), encoding="utf-8")
