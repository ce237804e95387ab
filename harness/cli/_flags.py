"""Flags that are keys of a spec: one flag a key, so that the two spellings cannot drift apart."""

import inspect
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli._completion import values_of
from harness.errors import UsageError
from harness.spec.sweep import AXES, Sweep, load_sweep
from harness.spec.text import text_of, value_of

DESCRIPTIONS = {
    "name": "name of the sweep, part of the run's id",
    "device": "device kinds: virtual-cpu, gpu, virtual-gpu, tpu",
    "strategy": (
        "strategies: none, one_device, mirrored, central_storage, multi_worker_mirrored, parameter_server, dtensor, tpu"
    ),
    "replicas": "replica counts",
    "workers": "worker counts",
    "ps": "counts of parameter servers",
    "partitioner": "how parameter servers share large variables: none, fixed, min_size, max_size",
    "updates": "how parameter servers are updated: locked (loses none) or keras (the Keras optimizer)",
    "launcher": "who starts the processes of a cluster: local, attach, slurm, ray",
    "hosts": "hosts to place workers and servers on, for launchers of several hosts; 0 is one for each",
    "listen": "HOST[:PORT] that hosts join at; empty is this machine's loopback (attach) or its address towards them",
    "join_timeout": "seconds that hosts have to join",
    "slurm_args": "more arguments for sbatch, or for srun inside an allocation, such as '--partition=gpu --time=30'",
    "network": (
        "emulated networks between the processes of a cluster, such as rate=1gbit,delay=0.5ms; also unshaped, none"
    ),
    "isolate": "give a cluster on this machine a loopback of its own where the kernel lets it, which is the default",
    "mesh": (
        "meshes of dtensor: batch:4, or batch:2,model:2, whose replicas are the size of batch; a semicolon ends one; "
        "none given is batch:REPLICAS"
    ),
    "batch_size": "batch sizes, per replica or global as batch_scope says",
    "batch_scope": "per_replica (weak scaling) or global (strong scaling)",
    "cross_device_op": (
        "auto, nccl, hierarchical_copy, reduction_to_one_device (mirrored), ring (multi_worker_mirrored), or your own "
        "as package.module:function"
    ),
    "num_packs": "packs for nccl and hierarchical_copy; 0 is one reduction a tensor",
    "bytes_per_pack": "bytes a pack for auto, and for every op of multi_worker_mirrored; 0 is one pack",
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
    "trace": "profile a few steps of one trial of each cell, after its last window, for TensorBoard",
}


def option(name: str, default: Any, kind: Any, *declared: str, **info: Any) -> inspect.Parameter:
    """One keyword-only parameter that typer reads as a flag."""
    annotation = Annotated[kind, typer.Option(*declared, **info)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def key_flags(without: Collection[str] = ()) -> list[inspect.Parameter]:
    """A flag for every key of a spec but those named."""
    parameters = []
    for key in Sweep.model_fields:
        if key not in without:
            if Sweep.model_fields[key].annotation is bool:
                name = key.replace("_", "-")
                both = f"--{name}/--no-{name}" if Sweep.model_fields[key].default else f"--{name}"
                parameters.append(option(key, None, bool | None, both, help=DESCRIPTIONS[key]))
                continue
            text = DESCRIPTIONS[key] + (" (comma-separated)" if key in AXES else "")
            metavar = "A,B,…" if key in AXES else "VALUE"
            flag, complete = f"--{key.replace('_', '-')}", values_of(key)
            more = {} if complete is None else {"autocompletion": complete}
            parameters.append(option(key, None, str | None, flag, help=text, metavar=metavar, **more))
    return parameters


def signed(command: Any, parameters: list[inspect.Parameter]) -> None:
    """Give `command`, which takes `**given`, the flags that typer is to offer."""
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def keys_given(given: dict[str, Any], without: Collection[str] = ()) -> dict[str, str]:
    """The flags among `given` that are keys of a spec and were used; those in `without` are a verb's own."""
    keys = Sweep.model_fields.keys() - set(without)
    return {
        key: text_of(key, value) if isinstance(value, bool) else value
        for key, value in given.items()
        if key in keys and value is not None
    }


def refuse_beside_resume(given: dict[str, Any], without: Collection[str]) -> None:
    """UsageError for a flag beside --resume, which goes on as was planned; but for those in `without`."""
    for key, value in given.items():
        if key not in without and value not in (None, False, []):
            raise UsageError(f"--resume: goes on with a run as it was planned; it takes no --{key.replace('_', '-')}")


def read_values(spec: Path | None, flags: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The keys of SPEC with the flags laid over them, and what to call the source in an error."""
    if spec is None and not flags:
        spec = DEFAULT_SPEC
    values: dict[str, Any] = load_sweep(spec) if spec is not None else {}
    values.update({key: value_of(key, text) for key, text in flags.items()})
    return values, "sweep" if spec is None else str(spec) if not flags else f"{spec} and flags"


DEFAULT_SPEC = Path(__file__).parent.parent / "spec" / "default.toml"
