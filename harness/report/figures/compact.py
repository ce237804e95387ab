"""Makes matplotlib's SVG small: no ids that nothing refers to, no empty groups, short numbers, the page's font.

A report has a dozen figures and is sent by mail: matplotlib names every group, repeats a list of fonts for
every word and gives coordinates to a millionth of a point.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

OVERLAY = "overlay"
"""A drawn thing whose gid is this becomes of that class, which the page hides until it is asked for."""
_NUMBERS = ("d", "x", "y", "width", "height", "transform", "viewBox", "points")
_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"#([^)\"]+)")


def compact(document: str) -> ElementTree.Element:
    """The `svg` element of matplotlib's `document`, without namespaces, metadata and what shows nothing."""
    root = ElementTree.fromstring(document[document.index("<svg") :])
    for element in root.iter():
        element.tag = _plain(element.tag)
        element.attrib = {_plain(name): _shorter(_plain(name), value) for name, value in element.attrib.items()}
        if element.tag != "text":
            element.text = None
        element.tail = None
    for name in ("version", "width", "height"):
        root.attrib.pop(name, None)
    used = {found for element in root.iter() for found in _referred(element)}
    _clean(root, used)
    return root


def _plain(name: str) -> str:
    return name.rsplit("}", 1)[-1]


def _shorter(name: str, value: str) -> str:
    if name == "style":
        parts = (part.strip() for part in value.split(";"))
        kept = (part for part in parts if part and not part.startswith("font-family"))
        return re.sub(r"font: ([0-9.]+)px [^;]*", r"font-size:\1px", ";".join(kept)).replace(": ", ":")
    if name in _NUMBERS:
        return " ".join(_NUMBER.sub(_rounded, value).split())
    return value


def _rounded(match: re.Match[str]) -> str:
    """To a tenth of a point; `+ 0` turns −0 into 0."""
    return f"{round(float(match.group()), 1) + 0:g}"


def _referred(element: ElementTree.Element) -> Iterator[str]:
    for name, value in element.attrib.items():
        if name == "href" or "url(#" in value:
            yield from _REFERENCE.findall(value)


def _clean(parent: ElementTree.Element, used: set[str]) -> None:
    """Drop what shows nothing, depth first; a group that says nothing gives its place to its children."""
    kept: list[ElementTree.Element] = []
    for child in parent:
        _clean(child, used)
        if child.attrib.get("id", "").startswith(OVERLAY):
            child.attrib["class"] = OVERLAY
        if child.attrib.get("id") not in used:
            child.attrib.pop("id", None)
        if child.attrib.get("transform", "").startswith("rotate(-0 ") or child.attrib.get("transform") == "":
            del child.attrib["transform"]
        if child.tag == "g" and not child.attrib:
            kept += list(child)
        elif not _shows_nothing(child):
            kept.append(child)
    parent[:] = kept


def _shows_nothing(element: ElementTree.Element) -> bool:
    if element.tag in ("metadata", "style"):
        return True
    if element.tag in ("defs", "g"):
        return len(element) == 0
    # the frames of figure and axes, which have neither fill nor stroke
    return element.tag == "path" and element.attrib.get("style") == "fill:none" and "id" not in element.attrib
