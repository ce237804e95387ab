"""Emulated networks as text: `rate=1gbit,delay=0.5ms,congestion=cubic`, checked, in one canonical spelling."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from harness.errors import UsageError, nearest
from harness.spec.lists import split_keyed

NONE = "none"
"""How a flag says: no emulation. As the value of a key it is the empty string."""
UNSHAPED = "unshaped"
"""Hosts of their own, with links as fast as the kernel moves frames: what shaping is compared with."""

SLOWEST_BITS_PER_S = 10**6
FASTEST_BITS_PER_S = 10**12
LONGEST_S = 1.0

_RATES = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_DELAYS = {"us": 1, "ms": 10**3, "s": 10**6}
"""Microseconds."""
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*([a-z]+)", re.ASCII)
_EXPECTED = {
    "rate": "a number with kbit, mbit or gbit from rate=1mbit to rate=1000gbit, like rate=1gbit",
    "delay": "a number with us, ms or s, in whole microseconds up to delay=1s, like delay=0.5ms",
    "congestion": "the name of one of Linux's congestion controls, like congestion=cubic",
}
_CONGESTION = re.compile(r"[a-z][a-z0-9_-]{1,14}", re.ASCII)
"""A name that the kernel can have for one (TCP_CA_NAME_MAX is 16, its end included)."""


@dataclass(frozen=True)
class Network:
    """Hosts on one switch, each on a link of its own, the same in both directions."""

    rate: int | None = None
    """Bits per second of every host's link, in each direction; None is unshaped."""
    delay: float = 0.0
    """Seconds from one host to another, one way; a whole number of microseconds. 0 adds none."""
    congestion: str = ""
    """How TCP on the hosts finds its speed, by the kernel's name; empty is the machine's default."""

    @classmethod
    def parse(cls, text: str) -> "Network":
        """`rate=…`, `delay=…`, `congestion=…`, some or all in any order, or `unshaped`. UsageError names the key."""
        if _plain(text) == UNSHAPED:
            return cls()
        found: dict[str, Fraction] = {}
        congestion = ""
        for part in text.split(","):
            key, _, value = (piece.strip() for piece in part.lower().partition("="))
            if key not in _EXPECTED:
                keys = "rate=…, delay=… and congestion=…"
                raise _refused(text, f"expected {NONE}, {UNSHAPED}, or {keys}{nearest(key, _EXPECTED)}")
            if key in found or (key == "congestion" and congestion):
                raise _refused(text, f"'{key}' is there twice")
            if key == "congestion":
                congestion = _congestion(text, value)
            else:
                found[key] = _rate(text, value) if key == "rate" else _delay(text, value)
        rate = int(found["rate"]) if "rate" in found else None
        return cls(rate, float(found.get("delay", Fraction(0)) / 10**6), congestion)

    @property
    def text(self) -> str:
        """The canonical spelling: equal networks have equal texts, and `parse` reads it."""
        parts = []
        if self.rate is not None:
            unit = max((unit for unit, bits in _RATES.items() if bits <= self.rate), key=_RATES.__getitem__)
            parts.append(f"rate={Decimal(self.rate) / _RATES[unit]:f}{unit}")
        if self.delay:
            parts.append(f"delay={Decimal(round(self.delay * 10**6)) / _DELAYS['ms']:f}ms")
        if self.congestion:
            parts.append(f"congestion={self.congestion}")
        return ",".join(parts) or UNSHAPED


def canonical(text: str) -> str:
    """The canonical spelling of a value of the key `network`: empty for `none` and for nothing at all."""
    return "" if _plain(text) in ("", NONE) else Network.parse(text).text


def order_of(text: str) -> tuple[float, float]:
    """Slower networks first, by a canonical text: sorts `unshaped` behind every rate, and no emulation last."""
    if not text:
        return math.inf, 1.0
    network = Network.parse(text)
    return math.inf if network.rate is None else network.rate, -network.delay


def split_values(text: str) -> list[str]:
    """The values of an axis, as a flag lists them: `rate=1gbit,delay=0.5ms,rate=100mbit` is two networks.

    `none` comes out as the empty string. See `split_keyed`.
    """
    if not text.strip():
        return [""]
    values = split_keyed(text, "=", lambda reason: _refused(text, reason))
    return ["" if _plain(value) == NONE else value for value in values]


def join_values(values: Iterable[str]) -> str:
    """The other way round of `split_values`; a semicolon stands where a comma would run two values into one."""
    joined = ""
    for value in values:
        word = value.strip() or NONE
        if joined:
            joined += "," if split_values(f"{joined},{word}")[-1] == value.strip() else ";"
        joined += word
    return joined


def _rate(text: str, value: str) -> Fraction:
    """Bits per second."""
    bits = _quantity(value, _RATES)
    if bits is None or bits.denominator != 1 or not SLOWEST_BITS_PER_S <= bits <= FASTEST_BITS_PER_S:
        raise _refused(text, f"expected {_EXPECTED['rate']}")
    return bits


def _delay(text: str, value: str) -> Fraction:
    """Microseconds."""
    microseconds = _quantity(value, _DELAYS)
    if microseconds is None or microseconds.denominator != 1 or not 0 < microseconds <= LONGEST_S * 10**6:
        raise _refused(text, f"expected {_EXPECTED['delay']}")
    return microseconds


def _congestion(text: str, value: str) -> str:
    """As the kernel calls it; whether this machine has it, building the network tells."""
    if not _CONGESTION.fullmatch(value):
        raise _refused(text, f"expected {_EXPECTED['congestion']}")
    return value


def _quantity(value: str, units: dict[str, int]) -> Fraction | None:
    match = _QUANTITY.fullmatch(value)
    return Fraction(match[1]) * units[match[2]] if match is not None and match[2] in units else None


def _plain(text: str) -> str:
    return text.strip().lower()


def _refused(text: str, what: str) -> UsageError:
    return UsageError(f"network: given {text!r}, {what}")
