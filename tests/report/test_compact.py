"""matplotlib's SVG made small without changing what it shows."""

import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from harness.report.figures.compact import OVERLAY
from harness.report.figures.svg import SERIES, picture, style


def drawn() -> str:
    with style():
        figure = Figure(figsize=(4, 3))
        axes = figure.subplots()
        axes.plot([0, 1, 2], [0.123456789, 2, 1], color=SERIES[0], marker="o")
        axes.plot([0, 2], [1, 1], color=SERIES[1])[0].set_gid(f"{OVERLAY}-line0")
        axes.set_title("a < b & c")
    return picture(figure, "fig", "Title", "Description", "Caption").svg


def test_numbers_have_at_most_one_decimal_in_coordinates() -> None:
    for path in re.findall(r' d="([^"]+)"', drawn()):
        assert not re.search(r"\.\d\d", path)


def test_every_id_is_referred_to_and_every_reference_has_its_id() -> None:
    svg = drawn()
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    referred = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) | {"fig-title", "fig-desc"}
    assert ids == referred


def test_text_stays_text_in_the_fonts_of_the_page() -> None:
    svg = drawn()
    assert "a &lt; b &amp; c</text>" in svg
    assert "font-family" not in svg
    ElementTree.fromstring(svg)


def test_no_style_reaches_beyond_the_figure() -> None:
    assert "<style" not in drawn()
    assert "<metadata" not in drawn()


def test_what_is_hidden_until_asked_for_is_of_that_class() -> None:
    assert drawn().count(f'class="{OVERLAY}"') == 1
