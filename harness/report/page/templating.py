"""The pages' templates."""

import functools
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.report.page.markup import body_of
from harness.visible import printable

_FLAG = re.compile(r"--[a-z][a-z-]*")


@functools.cache
def environment() -> Environment:
    """The templates of this room, each compiled once: what they show is escaped, and what is missing is an error."""
    made = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["body"] = body_of
    made.filters["unbroken"] = unbroken
    return made


def rendered(template: str, **values: Any) -> str:
    """A template of this room with `values`, and no control character, whoever sent it."""
    return printable(environment().get_template(template).render(**values))


def unbroken(text: str) -> Markup:
    """`text` as HTML in which no line ends between a number and its percent sign, or within a flag."""
    kept = str(escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    return Markup(_FLAG.sub(r'<span class="flag">\g<0></span>', kept))
