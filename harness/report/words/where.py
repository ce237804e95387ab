"""What a reader of a report asks next, and which pages of the documentation say it."""

import os
from dataclasses import dataclass
from pathlib import Path

_ASKED = (
    (
        "Why two replicas are not twice as fast",
        ("docs/figures.md#scaling", "docs/figures.md#time-per-phase-and-per-step"),
    ),
    ("What more replicas would give", ("docs/protocol.md#scaling", "docs/how-to.md#weak-and-strong-scaling")),
    ("How large a batch fits, and which pays", ("docs/figures.md#batch-size",)),
    (
        "Your own model, text or any other step",
        ("docs/how-to.md#your-own-model", "docs/how-to.md#your-own-training-step"),
    ),
    ("Your own data and input pipeline", ("docs/how-to.md#other-data", "docs/extending.md#a-data-source")),
)


@dataclass(frozen=True)
class Page:
    """One page of the documentation, with its section."""

    name: str
    link: str | None
    """As the report sees it; None where it lies in no checkout: a page that is sent around would lead nowhere."""


@dataclass(frozen=True)
class Pointer:
    """A question, and where it is answered."""

    question: str
    pages: tuple[Page, ...]


def pointers(report: Path | None) -> tuple[Pointer, ...]:
    """Where to look, with links as `report`, a file to be, sees them; without them where it is not in the checkout."""
    seen = None if report is None else _checkout(report)
    return tuple(
        Pointer(question, tuple(Page(page, None if seen is None else f"{seen}/{page}") for page in pages))
        for question, pages in _ASKED
    )


def _checkout(report: Path) -> str | None:
    """The checkout as a page in it sees it; None of any other page."""
    root = Path(__file__).parents[3]
    try:
        inside = not os.path.relpath(report, root).startswith(os.pardir)
    except OSError:  # somebody has removed the working folder
        return None
    if not inside or not (root / "docs" / "index.md").is_file():
        return None
    return Path(os.path.relpath(root, report.parent)).as_posix()
