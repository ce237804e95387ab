"""What a renderer of a comparison is."""

from dataclasses import dataclass
from typing import Protocol

from harness.analysis.comparison import Comparison


@dataclass(frozen=True)
class Surface:
    """What is written on. Only the terminal's renderer looks at it."""

    width: int = 240
    """Columns. In a pipe or a file there is room for every table."""
    styled: bool = False
    """Whether escape sequences for bold and colour are understood."""


class Renderer(Protocol):
    """One format. A module `as_NAME` of this package with a `RENDERER`."""

    @property
    def name(self) -> str:
        """What `--format` takes."""

    @property
    def suffix(self) -> str:
        """The end of a file's name that asks for this format."""

    def render(self, comparison: Comparison, surface: Surface) -> str:
        """The whole text, ending in a newline. Pure: the same comparison gives the same text."""
