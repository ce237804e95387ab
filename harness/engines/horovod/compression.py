"""How gradients travel, by cross-device op."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PLAIN = "auto"


class HorovodCompression(NamedTuple):
    """Horovod's own name of it, the type that travels, and the arithmetic that it makes of the update."""

    name: str
    dtype: str
    arithmetic: str


COMPRESSIONS: Mapping[str, HorovodCompression] = MappingProxyType(
    {
        PLAIN: HorovodCompression("none", "float32", "float32"),
        "fp16_compress": HorovodCompression("fp16", "float16", "mixed_float16"),
    }
)
