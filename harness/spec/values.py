"""Types and limits of the values that keys have."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from harness.spec.mesh import Mesh
from harness.spec.network import canonical

BatchScope = Literal["per_replica", "global"]
Precision = Literal["float32", "mixed_bfloat16", "mixed_float16"]
Cache = Literal["auto", "none", "memory", "file"]
FileCompression = Literal["none", "gzip", "zlib"]
RunBy = Literal["local", "dask", "beam"]
"""Who runs the processes that write prepared files."""
AutoShard = Literal["off", "data", "file"]
Partitioner = Literal["none", "fixed", "min_size", "max_size"]
Updates = Literal["locked", "keras"]

MOST = 2**60
"""No count or size is larger; what is below it fits 64 bits, and a float in the quotients that are made of it."""
LARGEST = 2**31 - 1
"""What TensorFlow's 32-bit counts can hold."""
MOST_SECONDS = 7 * 24 * 3600.0

QUANTITY = r"[a-z][a-z_]{1,30}"
"""Two letters and more: the singular of `s` would be nothing."""
QuantityName = Annotated[str, Field(pattern=rf"^{QUANTITY}$")]
QuantityText = Annotated[str, Field(pattern=rf"^({QUANTITY}(=[1-9]\d{{0,8}})?)?$")]
"""What work is counted in, and how much of it an example has, where that is more than one."""
Positive = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=0, le=MOST)]
Count = Annotated[int, Field(ge=1, le=LARGEST, strict=True)]
Natural = Annotated[int, Field(ge=0, le=LARGEST, strict=True)]
Few = Annotated[int, Field(ge=1, le=1000, strict=True)]
"""Trials: each is in the plan by name, and the plan is sealed before the first runs."""
DeviceCount = Annotated[int, Field(ge=1, le=4096, strict=True)]
CycleTime = Annotated[int, Field(ge=0, le=1000, strict=True)]
"""Milliseconds. Every update waits for a cycle, and a trial for hundreds of updates."""
StepsInACall = Annotated[int, Field(ge=1, le=1000, strict=True)]
"""A window has a call at least."""
ServiceWorkers = Annotated[int, Field(ge=0, le=64, strict=True)]
"""Each is a server with threads of its own."""
FileCount = Annotated[int, Field(ge=0, le=99_999, strict=True)]
"""A file's name has five digits of its number."""
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False, strict=True)]
NetworkText = Annotated[str, AfterValidator(canonical)]
"""One spelling for equal networks, so that they are one cell; `none` is the empty text."""
MeshText = Annotated[str, AfterValidator(lambda text: Mesh.parse(text).text)]
