"""What a terminal may be sent: control sequences where it heeds them, and never any that a record holds."""

import os
from typing import TextIO

_WITHOUT = ("", "dumb", "unknown")
"""Values of TERM of terminals that would print control sequences instead of heeding them."""


def heeds_control(stream: TextIO) -> bool:
    """Whether `stream` is a terminal for colour, bold and a cursor that moves: no pipe, no file, no TERM=dumb."""
    return stream.isatty() and os.environ.get("TERM", "") not in _WITHOUT


def harmless(text: str) -> str:
    """`text` without what would move the cursor or recolour the terminal: names of files and records may hold it."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
