"""From a matplotlib figure to an inline SVG that takes its colours and font from the page.

Figures are drawn in a few agreed colours, which become CSS here: black is the text colour of wherever
the figure stands, each series colour is a custom property that the page defines once for light and once
for dark. So one file serves both, and prints.
"""

import html
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
from matplotlib.figure import Figure

from harness.report.text import printable

INK = "#000000"
MUTED = "#777777"
GRID = "#dddddd"
PAPER = "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#6a51a3")
"""Okabe and Ito's palette without its yellow, which no white page shows, and two more at the end."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", (0, (6, 2)), (0, (4, 1, 1, 1)), (0, (2, 1)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "", "----", "oo")

_VARIABLES = {INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"} | {
    colour: f"var(--s{index})" for index, colour in enumerate(SERIES)
}
_SETTINGS: dict[str, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "harness",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
}


@dataclass(frozen=True)
class Picture:
    """A figure ready for the page."""

    name: str
    """Unique on the page; ids within the SVG start with it."""
    title: str
    description: str
    """What a reader who cannot see it needs to know."""
    svg: str
    caption: str
    """How to read it, in a sentence or two."""
    width_px: int = 0


@contextmanager
def style() -> Iterator[None]:
    """Our settings, and quiet about glyphs that matplotlib's own font lacks: the browser's has them."""
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def picture(figure: Figure, name: str, title: str, description: str, caption: str) -> Picture:
    """Render `figure` (its labels drawn under `style`) as a Picture."""
    buffer = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with style():
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    width = round(figure.get_size_inches()[0] * 96)
    return Picture(name, title, description, _inline(buffer.getvalue(), name, title, description), caption, width)


def _inline(document: str, name: str, title: str, description: str) -> str:
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href=", "href=")
    # several figures share a page: what one names must not be found in another
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda match: _VARIABLES.get(match.group(), match.group()), svg)
    svg = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", svg)
    # an element without a stroke or fill of its own is black by the standard: ink, then
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (width|height)="([0-9.]+)pt"', "", opening)
    text = (
        f'<title id="{name}-title">{html.escape(printable(title))}</title>'
        f'<desc id="{name}-desc">{html.escape(printable(description))}</desc>'
    )
    label = f' role="img" aria-labelledby="{name}-title {name}-desc" fill="currentColor"'
    return f"{opening}{label}>{text}{rest}".strip()
