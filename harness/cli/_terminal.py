"""What a terminal may be sent: control sequences where it heeds them."""

import os
from typing import TextIO

_WITHOUT = ("", "dumb", "unknown")
"""Values of TERM of terminals that would print control sequences instead of heeding them."""


def heeds_control(stream: TextIO) -> bool:
    """Whether `stream` is a terminal for colour, bold and a cursor that moves: no pipe, no file, no TERM=dumb."""
    return stream.isatty() and os.environ.get("TERM", "") not in _WITHOUT
