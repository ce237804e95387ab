"""What NCCL says of itself in a process that uses it: its version, and how ranks reach each other.

NCCL writes to the file that `NCCL_DEBUG_FILE` names (`%h` is the host, `%p` the process) what `NCCL_DEBUG` asks for; of
`INFO` that is how it was set up, and nothing while it reduces.
"""

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from harness.files import read_end

LEVEL, FILE = "NCCL_DEBUG", "NCCL_DEBUG_FILE"
VERSION = re.compile(r"NCCL version ([\w.]+)")
WAY = re.compile(r"NCCL INFO Channel \S+ : .* via (\S+)")
"""`Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM`, of another host `… [send] via NET/Socket/0`, `… via NET/IB/3/GDRDMA`."""


def told(environment: Mapping[str, str] = os.environ) -> str:
    """`2.27.3: NET/Socket, P2P/CUMEM` of this process; empty where it made no communicator or writes no such file."""
    name = environment.get(FILE, "").replace("%h", platform.node()).replace("%p", str(os.getpid()))
    try:
        return read(read_end(Path(name))) if name else ""
    except OSError:
        return ""


def read(log: str) -> str:
    """The same of a log. Numbers of network cards and channels are left out: which way, not over which card."""
    version = VERSION.search(log)
    ways = {"/".join(part for part in way.split("/")[:4] if not part.isdecimal()) for way in WAY.findall(log)}
    return ": ".join(filter(None, (version and version[1], ", ".join(sorted(ways)))))
