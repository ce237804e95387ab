"""A sweep: axes and settings. A TOML key and a flag of the same name mean the same thing."""

import shlex
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.errors import UsageError, nearest
from harness.spec.address import split_address
from harness.spec.cell import BatchScope, Partitioner, Precision, Updates
from harness.spec.mesh import Mesh
from harness.spec.network import canonical

LARGEST = 2**31 - 1
"""What TensorFlow's 32-bit counts can hold."""
MOST_SECONDS = 7 * 24 * 3600.0

Count = Annotated[int, Field(ge=1, le=LARGEST, strict=True)]
Natural = Annotated[int, Field(ge=0, le=LARGEST, strict=True)]
Few = Annotated[int, Field(ge=1, le=1000, strict=True)]
"""Trials: each is in the plan by name, and the plan is sealed before the first runs."""
Devices = Annotated[int, Field(ge=1, le=4096, strict=True)]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False, strict=True)]
NetworkText = Annotated[str, AfterValidator(canonical)]
"""One spelling for equal networks, so that they are one cell; `none` is the empty text."""


class Sweep(BaseModel):
    """Every key of a spec. Lists are axes; the matrix is their product. Times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] = "sweep"
    device: list[str] = ["virtual-cpu"]
    strategy: list[str] = ["none", "mirrored"]
    replicas: list[Devices] = [1, 2]
    workers: list[Devices] = [1]
    ps: list[Devices] = [1]
    partitioner: list[Partitioner] = ["none"]
    updates: list[Updates] = ["locked"]
    network: list[NetworkText] = [""]
    mesh: list[str] = []
    batch_size: list[Count] = [64]
    batch_scope: list[BatchScope] = ["per_replica"]
    cross_device_op: list[str] = ["auto"]
    num_packs: list[Natural] = []
    bytes_per_pack: list[Natural] = []
    model: list[str] = ["mnist_cnn"]
    data: list[str] = ["digits"]
    precision: list[Precision] = ["float32"]
    xla: list[bool] = [False]
    optimizer: list[str] = ["adam"]
    loop: list[str] = ["custom"]

    trials: Few = 5
    seed: Natural = 1
    timeout: Seconds = 120.0
    window: Seconds = 0.1
    windows: Annotated[int, Field(ge=5, le=100, strict=True)] = 10
    max_warmup: Annotated[int, Field(ge=0, le=1000, strict=True)] = 20
    half_width: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.0
    max_trials: Few = 20
    live_trials: Natural = 0
    intra_op_threads: Natural = 0
    inter_op_threads: Natural = 0
    gpu_memory_mb: Natural = 0
    tpu: str = "local"
    launcher: str = "local"
    hosts: Annotated[int, Field(ge=0, le=4096, strict=True)] = 0
    listen: str = ""
    join_timeout: Seconds = 60.0
    slurm_args: str = ""
    isolate: bool = True
    data_dir: str = ""
    trace: bool = False

    @field_validator("*", mode="before")
    @classmethod
    def _one_value_is_a_list_of_one(cls, value: Any, info: Any) -> Any:
        if info.field_name in AXES and not isinstance(value, list):
            return [value]
        return value

    @field_validator("listen")
    @classmethod
    def _listens_at_an_address(cls, value: str) -> str:
        if value:
            split_address("listen", value)
        return value

    @field_validator("slurm_args")
    @classmethod
    def _is_split_as_a_shell_does(cls, value: str) -> str:
        shlex.split(value)  # ValueError: No closing quotation
        return value

    @field_validator("mesh")
    @classmethod
    def _meshes_have_one_spelling(cls, value: list[str]) -> list[str]:
        return [Mesh.parse(text).text for text in value]

    @field_validator("*")
    @classmethod
    def _no_axis_repeats_a_value(cls, value: Any) -> Any:
        if isinstance(value, list) and len(set(value)) != len(value):
            raise ValueError("a value is listed twice")
        return value


AXES: frozenset[str] = frozenset(
    name for name, field in Sweep.model_fields.items() if getattr(field.annotation, "__origin__", None) is list
)
"""Keys whose value is a list."""

BOOLEAN = "a valid boolean, unable to interpret input"
_MAY_BE_EMPTY = {"num_packs", "bytes_per_pack", "mesh"}


def sweep_from(values: dict[str, Any], source: str = "spec") -> Sweep:
    """Validate `values` into a Sweep; raise UsageError with one line that names the key."""
    for key in values:
        if key not in Sweep.model_fields:
            raise UsageError(f"{source}: unknown key {key!r}{nearest(key, Sweep.model_fields)}")
    try:
        sweep = Sweep.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{source}: {_in_one_line(error)}") from None
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    for key in sorted(AXES - _MAY_BE_EMPTY):
        if not getattr(sweep, key):
            raise UsageError(f"{source}: {key}: expected at least one value, given an empty list")
    if sweep.half_width and sweep.max_trials < sweep.trials:
        raise UsageError(f"{source}: max_trials: given {sweep.max_trials}, expected at least trials ({sweep.trials})")
    return sweep


def load_sweep(path: Path) -> dict[str, Any]:
    """The raw keys of a TOML spec, for `sweep_from` (flags are laid over them first)."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"SPEC: no file at '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"SPEC: cannot read '{path}': {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"SPEC: '{path}' is not valid TOML: {error}") from None


def _in_one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else "spec"
    expected = first["msg"].removeprefix("Value error, ")
    expected = expected.removeprefix("Input should be ").replace(BOOLEAN, "true or false")
    given = first["input"]
    if first["type"] == "value_error":
        return f"{key}: given {given!r}: {expected}"
    hint = nearest(given, expected.replace("'", "").replace(" or ", ", ").split(", ")) if isinstance(given, str) else ""
    return f"{key}: given {given!r}, expected {expected}{hint}"
