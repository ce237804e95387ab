"""The pages' templates."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.report.markup import body_of


def environment() -> Environment:
    """The templates of this room: what they show is escaped, and what is missing is an error."""
    made = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["body"] = body_of
    return made


def rendered(template: str, **values: Any) -> str:
    """A template of this room with `values`."""
    return environment().get_template(template).render(**values)
