"""From a matplotlib figure to an inline SVG that takes its colours and font from the page.

Figures are drawn in a few agreed colours, which become CSS here: black is the text colour of wherever
the figure stands, each series colour is a custom property that the page defines once for light and once
for dark. So one file serves both, and prints.
"""

import functools
import html
import io
import re
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from xml.etree import ElementTree

from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Figure, Line2D, Rectangle, rc_context, rcParams
from harness.report.figures.compact import compact
from harness.report.page.downloads import Download, csv_download
from harness.visible import printable

INK = "#000000"
MUTED = "#777777"
GRID = "#dddddd"
PAPER = "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#6a51a3")
"""Okabe and Ito's palette without its yellow, which no white page shows, and two more at the end."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", (0, (6, 2)), (0, (4, 1, 1, 1)), (0, (2, 1)))
HATCHES = ("", "///", "|||", "\\\\\\", "xxx", "", "---", "++")
"""Lines only: matplotlib writes 150 kB for a pattern of dots."""

_VARIABLES = {INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"} | {
    colour: f"var(--s{index})" for index, colour in enumerate(SERIES)
}
BAND = 0.16
"""How opaque an interval's band is."""
_SAMPLE_IN = (0.42, 0.2)
_ID = re.compile(r'(\bid="|href="#|url\(#)')
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
    """One `<svg>`, or several that the page sets beside or below each other as it has room."""
    caption: str
    """What it shows and how to read it, in a few sentences."""
    width_px: int = 0
    data: tuple[ExportRow, ...] = ()
    """Every number drawn, and those that found no room: columns as the stored fields are named."""
    legend: str = ""
    """The keys of all its panels, each an `<svg>`."""
    overlay: tuple[str, ...] = ()
    """What is hidden until asked for, one line a source; empty when there is nothing."""
    overlay_shown: bool = False
    """Whether it was asked for on the command line."""

    @property
    def csv(self) -> Download:
        """A link that saves `data` as CSV."""
        return csv_download(self.data, self.name)


@dataclass(frozen=True)
class PanelDrawing:
    """One panel of a figure: what was drawn, with its own text alternative."""

    figure: Figure
    title: str
    description: str


@dataclass(frozen=True)
class Key:
    """An entry of a legend: how a curve looks, and what it is."""

    label: str
    colour: str
    marker: str = ""
    dash: Hashable = ""
    """As matplotlib's `linestyle`; empty for a band."""


@contextmanager
def style() -> Iterator[None]:
    """Our settings, and quiet about glyphs that matplotlib's own font lacks: the browser's has them."""
    if rcParams["svg.hashsalt"] == _SETTINGS["svg.hashsalt"]:
        yield  # already so: to set and reset them costs as much as to draw a curve
        return
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def picture(
    figure: Figure, name: str, title: str, description: str, caption: str, data: Sequence[ExportRow] = ()
) -> Picture:
    """Render `figure` (its labels drawn under `style`) as a Picture."""
    width = round(figure.get_size_inches()[0] * 96)
    svg = _inline(_document(figure), name, title, description)
    return Picture(name, title, description, svg, caption, width, tuple(data))


def panelled(
    panels: Sequence[PanelDrawing],
    keys: Sequence[Key],
    name: str,
    title: str,
    caption: str,
    data: Sequence[ExportRow],
    overlay: Sequence[str] = (),
) -> Picture:
    """Several panels as one Picture: each an SVG of its own, so that a narrow page sets them below each other.

    `keys` are the entries of the legend; a reader who cannot see has the names in the panels' descriptions.
    """
    drawn = [
        _sized(
            _inline(_document(panel.figure), f"{name}-{place}", f"{title}, {panel.title}", panel.description),
            panel.figure,
        )
        for place, panel in enumerate(panels)
    ]
    legend = [_entry(key, f"{name}-key{place}") for place, key in enumerate(keys)]
    description = " ".join(panel.description for panel in panels)
    width = round(sum(panel.figure.get_size_inches()[0] for panel in panels) * 96 + 24 * len(panels))
    return Picture(
        name, title, description, "".join(drawn), caption, width, tuple(data), "".join(legend), tuple(overlay)
    )


def _document(figure: Figure) -> str:
    buffer = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with style():
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return buffer.getvalue()


def _entry(key: Key, name: str) -> str:
    """The sample of a curve and its label, hidden from those who have the names in the panels' descriptions."""
    sample = _named(_sample(key.colour, key.marker, key.dash), name)
    width = round(_SAMPLE_IN[0] * 96)
    return (
        f'<span class="key" aria-hidden="true"><svg aria-hidden="true" width="{width}"{sample.removeprefix("<svg")}'
        f"{html.escape(printable(key.label))}</span>"
    )


@functools.cache
def _sample(colour: str, marker: str, dash: Hashable) -> str:
    """A short piece of the curve: the same in every legend of every page, so drawn once."""
    edge = 2 / (72 * _SAMPLE_IN[0])
    with style():
        figure = Figure(figsize=_SAMPLE_IN)
        if dash:
            # without axes, which take as long to make as everything else of a figure this small
            figure.add_artist(Line2D([edge, 1 - edge], [0.5, 0.5], color=colour, linestyle=dash))
            if marker:
                figure.add_artist(Line2D([0.5], [0.5], color=colour, marker=marker, linestyle="none"))
        else:
            band = Rectangle((edge, 0.15), 1 - 2 * edge, 0.7, facecolor=colour, alpha=2 * BAND, linewidth=0)
            figure.add_artist(band)
        return _compacted(_document(figure))


def _sized(svg: str, figure: Figure) -> str:
    width = round(figure.get_size_inches()[0] * 96)
    return svg.replace("<svg ", f'<svg style="max-width:{width}px;flex:1 1 {width}px" ', 1)


def _inline(document: str, name: str, title: str, description: str) -> str:
    opening, rest = _named(_compacted(document), name).split(">", 1)
    return (
        f'{opening} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{html.escape(printable(title))}</title>'
        f'<desc id="{name}-desc">{html.escape(printable(description))}</desc>{rest}'
    )


def _compacted(document: str) -> str:
    """The SVG in the page's colours."""
    root = compact(document)
    # an element without a stroke or fill of its own is black by the standard: ink, then
    root.attrib |= {"fill": "currentColor", "stroke-linejoin": "round"}
    svg = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: _VARIABLES.get(match.group(), match.group()), svg)


def _named(svg: str, name: str) -> str:
    """The SVG with ids of its own: several share a page, and what one names must not be found in another."""
    return _ID.sub(rf"\1{name}-", svg)
