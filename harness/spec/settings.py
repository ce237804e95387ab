"""The table of a run's settings: what a spec says of the run itself, in no cell's identity.

As of axes (`harness.spec.axes`): flags, what a spec allows, comparisons, commands to repeat a trial are made from it.
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.spec.entry import Setting, settings
from harness.spec.reading import Spec
from harness.spec.values import MOST, MOST_SECONDS, Few, Natural, Seconds


# An argument a line would make pages of the table.
# fmt: off
class Settings(Spec):
    """The keys of a spec that are the run's. Times are in seconds."""

    trials: Annotated[Few, Setting(
        help="trials of every cell: fresh processes, the unit of replication", repeated=False,
        of_sides="both sides have one trial a block; for the most blocks give --max-blocks",
    )] = 5
    time: Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False, strict=True), Setting(
        help="seconds that the sweep may take: after two blocks another begins only if it should end in time; "
        "0 is no limit", repeated=False, of_sides="both sides have the same time, which --time of ab limits",
    )] = 0.0
    seed: Annotated[Natural, Setting(help="seed of order, weights and shuffling", changes_timings=True)] = 1
    timeout: Annotated[Seconds, Setting(help="seconds without a sign of life after which a trial is ended")] = 120.0
    window: Annotated[Seconds, Setting(help="seconds of a timed window, about", changes_timings=True)] = 0.1
    windows: Annotated[int, Field(ge=5, le=100, strict=True), Setting(
        help="measured windows a trial", changes_timings=True, sets_rounds=True,
    )] = 10
    max_warmup: Annotated[int, Field(ge=0, le=1000, strict=True), Setting(
        help="windows of warm-up before the measured ones", changes_timings=True, sets_rounds=True,
    )] = 2
    half_width: Annotated[float, Field(ge=0, lt=1, strict=True), Setting(
        help="plan a second stage for this relative half-width of the interval, such as 0.01; 0 is one stage",
        of_sides="a comparison has looks instead of stages; for the most blocks give --max-blocks", repeated=False,
    )] = 0.0
    max_trials: Annotated[Few, Setting(
        help="most trials of a cell when a second stage is planned", repeated=False,
        of_sides="both sides have one trial a block; for the most blocks give --max-blocks",
    )] = 20
    live_trials: Annotated[Natural, Setting(
        help="most trials alive at once; 0 is as many as fit memory",
        of_sides="both sides are always alive at once", changes_timings=True,
    )] = 0
    inter_op_threads: Annotated[Natural, Setting(
        help="inter-op threads of TensorFlow and Horovod; 0 is, on virtual-cpu under TensorFlow, at least twice the "
        "replicas", changes_timings=True,
    )] = 0
    gpu_memory_mb: Annotated[Natural, Setting(
        help="memory limit of a logical GPU in MB; 0 is 2048", changes_timings=True, devices=("virtual-gpu",),
    )] = 0
    tpu: Annotated[str, Setting(
        help="local, a TPU's name or its address", changes_timings=True, devices=("tpu",),
    )] = "local"
    engine_python: Annotated[str, Setting(
        help="interpreters of engines other than TensorFlow, NAME=PATH,…; empty is this one where it has what the "
        "engine needs, else the one of `harness engine install NAME`", changes_timings=True,
    )] = ""
    launcher: Annotated[str, Setting(
        help="who starts the processes of a cluster: {names}", registry=("harness.run.launchers", "LAUNCHER"),
    )] = "local"
    hosts: Annotated[int, Field(ge=0, le=4096, strict=True), Setting(
        help="hosts to place workers and servers on, for launchers of several hosts; 0 is a host for each of them",
    )] = 0
    listen: Annotated[str, Setting(
        help="HOST[:PORT] that hosts join at; empty is this machine's loopback (attach) or its address towards them",
    )] = ""
    join_timeout: Annotated[Seconds, Setting(help="seconds that hosts have to join")] = 60.0
    slurm_args: Annotated[str, Setting(
        help="more arguments for sbatch, or for srun inside an allocation, such as '--partition=gpu --time=30'",
    )] = ""
    isolate: Annotated[bool, Setting(
        help="give a cluster on this machine a loopback of its own where the kernel lets it, which is the default",
    )] = True
    data_dir: Annotated[str, Setting(
        help="where prepared data sets are kept; empty is the user's cache folder", changes_timings=True,
    )] = ""
    trace: Annotated[bool, Setting(
        help="profile a few steps of one trial of each cell, after its last window, for TensorBoard",
        of_sides="a comparison takes no traces; python -m harness sweep --trace does",
    )] = False
    work: Annotated[Literal["training", "collective", "pipeline"], Setting(
        help="what is measured: training; collective, which is all-reduce and the like by itself; or pipeline, the "
        "input of a model by itself, beside what the model takes",
    )] = "training"
    step: Annotated[str, Setting(
        help="a training step of your own, in place of model, data and strategy: package.module:function, or the path "
        "of a script that marks its step, and its arguments",
    )] = ""
    amount: Annotated[int, Field(ge=1, le=MOST, strict=True), Setting(
        help="of your own step: how much of its quantity one call does",
    )] = 1
    exclude: Annotated[str, Setting(
        help="combinations that are not measured: KEY=VALUE … of axes, and ';' between combinations, such as "
        "'strategy=mirrored replicas=2,3; model=mlp xla=true'", repeated=False,
        of_sides="both sides have one cell",
    )] = ""
    check: Annotated[str, Setting(
        help="a check of your own, package.module:function, which the gate calls with the state before and after an "
        "update: arrays by the variables' names",
    )] = ""


# fmt: on


SETTINGS = settings(Settings)
"""Every setting of the run, by key."""
