"""`harness sweep`: measure a matrix of cells."""

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from harness.errors import Interrupted, UsageError
from harness.spec.sweep import AXES, Sweep, load_sweep, sweep_from

VERB = "sweep"
HELP = "Measure every combination of the axes and record it. Without SPEC and flags: the default sweep."
EXAMPLES = "Example: harness sweep --strategy mirrored --replicas 1,2,4 --batch-size 64 --cross-device-op auto"

DESCRIPTIONS = {
    "name": "name of the sweep, part of the run's id",
    "device": "device kinds: virtual-cpu, gpu, virtual-gpu, tpu",
    "strategy": "strategies: none, one_device, mirrored, central_storage, tpu",
    "replicas": "replica counts",
    "workers": "worker counts",
    "batch_size": "batch sizes, per replica or global as batch_scope says",
    "batch_scope": "per_replica (weak scaling) or global (strong scaling)",
    "cross_device_op": "auto, nccl, hierarchical_copy, reduction_to_one_device, or your own as package.module:function",
    "num_packs": "packs for nccl and hierarchical_copy; 0 is one reduction a tensor",
    "bytes_per_pack": "bytes a pack for auto; 0 is one pack",
    "model": "mnist_cnn, mlp, resnet20, transformer, or your own as package.module:function",
    "data": "digits, synthetic, or tfds:NAME",
    "precision": "float32, mixed_bfloat16, mixed_float16",
    "xla": "compile with XLA: true, false",
    "optimizer": "adam, sgd, momentum",
    "loop": "custom (strategy.run) or fit (Model.fit)",
    "trials": "trials of every cell: fresh processes, the unit of replication",
    "seed": "seed of order, weights and shuffling",
    "timeout": "seconds without a sign of life after which a trial is ended",
    "window": "least seconds of a timed window",
    "windows": "measured windows a trial",
    "max_warmup": "most windows of warm-up before a trial counts as unsteady",
    "half_width": "plan a second stage for this relative half-width of the interval, such as 0.01; 0 is one stage",
    "max_trials": "most trials of a cell when a second stage is planned",
    "live_trials": "most trials alive at once; 0 is as many as fit memory",
    "intra_op_threads": "TensorFlow's intra-op threads; 0 is 1 on virtual-cpu, else TensorFlow's choice",
    "inter_op_threads": "TensorFlow's inter-op threads; 0 is at least twice the replicas on virtual-cpu",
    "gpu_memory_mb": "memory limit of a logical GPU in MB; 0 is 2048",
    "tpu": "local, a TPU's name or its address",
    "data_dir": "where prepared data sets are kept; empty is the user's cache folder",
}


def command(**given: Any) -> int:
    """Run the verb; `given` holds the flags by key."""
    flags = {key: value for key, value in given.items() if key in Sweep.model_fields and value is not None}
    spec, resume = given["spec"], given["resume"]
    results: Path = given["results"]
    if resume is not None and (spec is not None or flags):
        extra = "SPEC" if spec is not None else f"--{next(iter(flags)).replace('_', '-')}"
        raise UsageError(f"--resume: continues a run as it was planned; it takes no {extra}")
    if resume is not None:
        return _resume(resume, results, given)
    from harness.cli import _measuring as measuring

    values, source = read_values(spec, flags)
    sweep = sweep_from(values, source)
    if given["dry_run"]:
        return measuring.dry_run(sweep, given["json"])
    return measuring.measure(sweep, results, quiet=given["quiet"], json_out=given["json"], command=sys.argv)


def _resume(text: str, results: Path, given: dict[str, Any]) -> int:
    from harness.cli import _measuring as measuring

    if given["dry_run"]:
        raise UsageError("--dry-run: plans a new sweep; it does not go with --resume")
    return measuring.resume(text, results, quiet=given["quiet"], json_out=given["json"])


def read_values(spec: Path | None, flags: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The keys of SPEC with the flags laid over them, and what to call the source in an error."""
    if spec is None and not flags:
        spec = DEFAULT_SPEC
    values: dict[str, Any] = load_sweep(spec) if spec is not None else {}
    values.update({key: _value(key, text) for key, text in flags.items()})
    return values, "sweep" if spec is None else str(spec) if not flags else f"{spec} and flags"


DEFAULT_SPEC = Path(__file__).parent.parent / "spec" / "default.toml"


def _value(key: str, text: str) -> Any:
    if key not in AXES:
        return _scalar(key, text, Sweep.model_fields[key].annotation)
    element = get_args(Sweep.model_fields[key].annotation)[0]
    return [_scalar(key, part.strip(), element) for part in text.split(",")]


def _scalar(key: str, text: str, kind: Any) -> Any:
    """`text` as the type that the key wants; what cannot be converted is left for validation to name."""
    while get_args(kind) and not isinstance(get_args(kind)[0], str):
        kind = get_args(kind)[0]
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise UsageError(f"{key}: given {text!r}, expected {expected}") from None
    return text


def _signature() -> inspect.Signature:
    """One flag a key of the spec, so that the two spellings cannot drift apart."""
    keyword = inspect.Parameter.KEYWORD_ONLY

    def option(name: str, default: Any, kind: Any, *declared: str, **info: Any) -> inspect.Parameter:
        return inspect.Parameter(
            name, keyword, default=default, annotation=Annotated[kind, typer.Option(*declared, **info)]
        )

    parameters = [
        inspect.Parameter(
            "spec", keyword, default=None,
            annotation=Annotated[Path | None, typer.Argument(metavar="[SPEC.toml]", help="A spec, see benchmarks/.")],
        )
    ]  # fmt: skip
    for key in Sweep.model_fields:
        text = DESCRIPTIONS[key] + (" (comma-separated)" if key in AXES else "")
        metavar = "A,B,…" if key in AXES else "VALUE"
        parameters.append(option(key, None, str | None, f"--{key.replace('_', '-')}", help=text, metavar=metavar))
    parameters += [
        option("results", Path("results"), Path, "--results", help="Folder that runs are kept in.", metavar="DIR"),
        option("resume", None, str | None, "--resume", help="Run only what a run still misses.", metavar="RUN"),
        option("dry_run", False, bool, "--dry-run", help="Print the matrix, the order and an estimate."),
        option("quiet", False, bool, "--quiet", help="Print the answer only."),
        option("json", False, bool, "--json", help="Print one JSON object."),
    ]
    return inspect.Signature(parameters)


command.__signature__ = _signature()  # type: ignore[attr-defined]
command.__annotations__ = {p.name: p.annotation for p in _signature().parameters.values()}

__all__ = ["EXAMPLES", "HELP", "VERB", "Interrupted", "command", "read_values"]
