"""The table of keys: one entry says of an axis all that there is to say; of settings `harness.spec.settings` does.

Made from it are the fields of `Sweep` and of a cell, flags and their help, what a spec allows, the product of the
axes, identity, names, groups, curves, comparisons and columns. What groups cells goes by every key but those that an
entry takes out, so that an axis of which nothing is said keeps cells apart. `tests/spec/test_axes.py` holds every
entry to what it says, and `docs/extending.md` adds one.
"""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from harness import registry
from harness.spec import calls
from harness.spec.catalogue import VIRTUAL_CPU, PackingKind
from harness.spec.entry import Asked, Axis, Spelling, Takers, entries, in_the_head, unlabelled
from harness.spec.mesh import Mesh
from harness.spec.mesh import split_values as split_meshes
from harness.spec.network import join_values, order_of
from harness.spec.network import split_values as split_networks
from harness.spec.values import (
    AutoShard,
    BatchScope,
    Cache,
    Count,
    CycleTime,
    DeviceCount,
    FileCompression,
    FileCount,
    MeshText,
    Natural,
    NetworkText,
    Partitioner,
    Positive,
    Precision,
    QuantityText,
    ServiceWorkers,
    StepsInACall,
    Updates,
    Whole,
)

ENGINE = "tensorflow"
"""What trains where nobody says."""
NO_STRATEGY, USUAL_STRATEGY = "none", "mirrored"
"""What is measured where nobody says: what others are compared with, and the one over several devices."""
SERVERS = Takers(lambda traits: traits.parameter_servers, "has servers")
CLUSTERS = Takers(lambda traits: traits.multi_worker, "has several processes", dropped=False)
SHARERS = Takers(lambda traits: traits.multi_worker and not traits.parameter_servers, "has workers that share an input")
MESHES = Takers(lambda traits: traits.meshes, "takes one")
FETCHING = Takers(lambda traits: not (traits.parameter_servers or traits.meshes), "has batches fetched to its devices")
REPEATING = Takers(FETCHING.are, "has several steps in one call")
PARTING = Takers(FETCHING.are, "cuts a replica's batch in micro-batches")
CYCLES = Takers(lambda traits: traits.cycles, "reduces in cycles (engine horovod does)")
GIVEN, COUNTED = "the batches themselves are given", "the number of an update's shares is given"
ADDED, UNCUT = "shares are added up on one device", "one device holds whole variables"
COLLECTIVES, PIPELINES = ("collective",), ("pipeline",)
FEEDING = (*PIPELINES, "appetite")
"""An input pipeline by itself, and the model that it is held against."""
SYNTHETIC = "synthetic"
"""Data that are the same random ones for every process, on its devices."""
NO_MODEL = "none"
"""As the model of an input pipeline of the user's own data: they are measured by themselves, as they are."""
INPUT, PROGRAM = ("executed.input",), ("executed.fingerprint", "executed.operations")
OWN = ("package.module:function", registry.OWN_PATTERN)
TFDS = r"tfds:\w+(/[\w.-]+)?(:\d+\.\d+\.\d+)?"
WITH_PARAMETERS = ("", calls.PATTERN)
OWN_CALL = rf"{registry.OWN_PATTERN}(\([^()]*\))?"
OWN_MODEL = ("keras:NAME, package.module:function", rf"{OWN_CALL}|(keras:)?{calls.PATTERN}")
PHOTOGRAPHS = r"photographs:[1-9]\d{0,4}"
SO_MANY_PHOTOGRAPHS = "photographs:NUMBER (at most 99999)"
PLACES = r"(tfrecord|folder):[^,\n]+"
OWN_DATA = (
    f"tfds:NAME, {SO_MANY_PHOTOGRAPHS}, tfrecord:GLOB, folder:PATH, package.module:function",
    rf"{TFDS}|{PHOTOGRAPHS}|{PLACES}|{OWN_CALL}",
)
TWO_REPLICAS = {"strategy": USUAL_STRATEGY, "replicas": 2}
TWO_WORKERS = {"strategy": "multi_worker_mirrored", "workers": 2}
ONE_SERVER = {"strategy": "parameter_server", "workers": 1, "ps": 1}
"""And one worker, which has nobody to lose an update to."""
TWO_SERVERS = {**ONE_SERVER, "ps": 2}
DECODING = {"cache": "none", "data": "photographs:16"}
"""In every pass."""


def packers(kind: PackingKind) -> Takers:
    """Strategies with an op, by which or by whose own rule gradients are packed so."""
    return Takers(lambda traits: traits.takes_cross_device_op and traits.packing in (None, kind), "packs by it")


def is_own_code(value: str) -> bool:
    """Whether a value is code of the user's own, `package.module:function`, and not `tfds:NAME`, `keras:NAME`,
    `tfrecord:GLOB`, `folder:PATH` or `photographs:NUMBER`."""
    named = value.startswith(("tfds:", "keras:", "tfrecord:", "folder:")) or re.fullmatch(PHOTOGRAPHS, value)
    return ":" in value and not named


def _one_replica(cell: "Axes") -> bool:
    """It has nothing to reduce."""
    return cell.replicas * cell.workers == 1


def _one_worker(cell: "Axes") -> bool:
    """It has nobody to share an input with."""
    return cell.workers == 1


def _one_process(cell: "Axes") -> bool:
    return cell.workers == 1 and cell.ps == 0


# An argument a line would make twelve pages of the table.
# fmt: off
class Axes(BaseModel):
    """The keys of a training's cell, each with its entry. The order is that of columns, flags and a spec's keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    device: Annotated[str, Axis(
        works=(*COLLECTIVES, *FEEDING),
        no_lever="it is the machine that one has",
        help="device kinds: {names}", asked=(VIRTUAL_CPU,), choices="devices", depth=0,
        apart="another kind of device is another machine", later=False, label=unlabelled, always=True,
        tried=(VIRTUAL_CPU, "virtual-gpu"), shown_by=("resources.logical_devices",), lacking="a GPU",
    )]
    strategy: Annotated[str, Axis(
        works=COLLECTIVES,
        one_update="one device needs none",
        no_lever="explain takes apart the steps of the one that is asked about; a sweep compares them",
        help="strategies: {names}", asked=(NO_STRATEGY, USUAL_STRATEGY), choices="strategies", depth=4,
        base=NO_STRATEGY, rank=lambda name: (name != NO_STRATEGY, name), later=False, competes=True, in_program=True,
        label=in_the_head, named=False, always=True, tried=(USUAL_STRATEGY, "central_storage"),
        tried_with={"replicas": 2}, shown_by=PROGRAM,
    )]
    replicas: Annotated[Positive, Axis(
        works=COLLECTIVES,
        one_update=COUNTED,
        help="replica counts", asked=(1, 2), value=DeviceCount, base=1, depth=6, later=False, competes=True,
        along_curve=True, label=in_the_head, named=False, always=True, tried=(1, 2),
        tried_with={"strategy": USUAL_STRATEGY}, shown_by=("resources.logical_devices",),
    )]
    workers: Annotated[Positive, Axis(
        works=COLLECTIVES,
        one_update=COUNTED,
        help="worker counts", asked=(1,), value=DeviceCount, base=1, depth=5, later=False, competes=True,
        along_curve=True, label=in_the_head, tried=(1, 2), tried_with={"strategy": "multi_worker_mirrored"},
        shown_by=("cluster.members",),
    )] = 1
    batch_size: Annotated[Positive, Axis(
        works=FEEDING,
        one_update=GIVEN,
        help="batch sizes, per replica or global as batch_scope says", asked=(64,), value=Count, depth=3,
        later=False, competes=True, in_program=True, label=in_the_head, named=False, always=True, tried=(8, 16),
        shown_by=PROGRAM,
    )]
    batch_scope: Annotated[BatchScope, Axis(
        one_update=GIVEN,
        no_lever="for one number of replicas it is another batch size",
        help="per_replica (weak scaling) or global (strong scaling)", asked=("per_replica",), depth=2, later=False,
        apart="a fixed global batch scales in another way than a fixed batch of a replica", takes_turns=True,
        in_program=True, label=in_the_head, tried=("per_replica", "global"), tried_with=TWO_REPLICAS, shown_by=PROGRAM,
    )]
    global_batch_size: Positive
    """G, which follows from other keys. It is stored so that no reader has to derive it."""
    tokens: Whole = 0
    """Of an example, where the model's work is counted in tokens; 0 is counted in examples. Follows from the model."""
    cross_device_op: Annotated[str, Axis(
        works=COLLECTIVES,
        one_update=ADDED,
        help="{names}, or your own as package.module:function", asked=("auto",), choices="cross_device_ops", own=OWN,
        base="auto", compared_with="auto", later=False, competes=True, idle=_one_replica, in_program=True,
        side_by_side=True, late=False,
        named=False, always=True, label=lambda cell: cell.cross_device_op if cell.cross_device_op != "auto" else "",
        tried=("auto", "reduction_to_one_device"), tried_with=TWO_REPLICAS, shown_by=PROGRAM,
    )]
    packing: Annotated[str, Axis(
        works=COLLECTIVES,
        one_update=ADDED,
        help="how gradients are packed for a reduction",
        kinds={
            "num_packs": Asked(
                kind=Natural, values=(), help="packs for nccl and hierarchical_copy; 0 is one reduction a tensor",
                takers=packers("num_packs"),
            ),
            "bytes_per_pack": Asked(
                kind=Natural, values=(),
                help="bytes a pack for auto, and for every op of multi_worker_mirrored; 0 is one pack",
                takers=packers("bytes_per_pack"),
            ),
        },
        base="default", later=False, competes=True, idle=_one_replica, in_program=True, side_by_side=True,
        late=False, named=False, label=lambda cell: cell.packing if cell.packing != "default" else "",
        tried=("num_packs=0", "num_packs=2"), tried_with={**TWO_REPLICAS, "cross_device_op": "hierarchical_copy"},
        shown_by=(*PROGRAM, "executed.packs"),
    )] = "default"
    cycle_time: Annotated[Whole, Axis(
        help="milliseconds from one cycle of Horovod to the next, in which it joins what is ready; 0 is its own, 1",
        asked=(0,), value=CycleTime, takers=CYCLES, base=0, competes=True, idle=_one_replica, late=False, tried=(0, 5),
        tried_with={"engine": "horovod", "strategy": "data_parallel", "workers": 2}, shown_by=("executed.unlike",),
    )] = 0
    model: Annotated[str, Axis(
        works=FEEDING,
        help="{names}, some with sizes, such as transformer(layers=4,width=128); keras:NAME of keras.applications, or "
        "your own as package.module:function, with parameters, too; with --work pipeline none for data of your own",
        asked=("mnist_cnn",), choices="models",
        own=OWN_MODEL, spelling=Spelling(calls.split_values, ",".join), depth=0, apart="another model is other work",
        later=False, in_program=True, label=unlabelled, always=True, tried=("mlp", "mnist_cnn"), shown_by=PROGRAM,
    )]
    data: Annotated[str, Axis(
        works=FEEDING,
        one_update=GIVEN,
        no_lever="other data are other work",
        help=f"{{names}}, {SO_MANY_PHOTOGRAPHS}, tfds:NAME, tfrecord:GLOB, folder:PATH, or your own as "
        "package.module:function, with parameters, too", asked=("digits",), choices="data", own=OWN_DATA,
        spelling=Spelling(calls.split_values, ",".join), depth=0, apart="other data are other work", later=False,
        label=unlabelled, always=True, tried=("digits", "synthetic"), shown_by=("executed.input",),
    )]
    precision: Annotated[Precision, Axis(
        help="{names}", asked=("float32",), depth=0, later=False, competes=True, told=True, in_program=True,
        label=lambda cell: cell.precision if cell.precision != "float32" else "",
        tried=("float32", "mixed_bfloat16"), shown_by=PROGRAM,
    )] = "float32"
    xla: Annotated[bool, Axis(
        help="compile with XLA: {names}", asked=(False,), depth=0, later=False, competes=True, told=True,
        label=lambda cell: "XLA" if cell.xla else "",
        words=lambda cell: "XLA" if cell.xla else "no XLA", called="XLA", tried=(False, True),
        shown_by=("executed.xla_clusters",),
    )] = False
    optimizer: Annotated[str, Axis(
        help="{names}; with parameters, such as adamw(learning_rate=0.01,clipnorm=1); a compiled model of your own has "
        "its own", asked=("adam",), choices="optimizers", own=WITH_PARAMETERS,
        spelling=Spelling(calls.split_values, ",".join), depth=0, later=False, in_program=True,
        apart="another optimizer computes another update", label=unlabelled, tried=("adam", "sgd"),
        shown_by=("executed.optimizer", *PROGRAM),
    )] = "adam"
    loop: Annotated[str, Axis(
        one_update="the reference has its own",
        no_lever="parts are told of a loop that has instruments, and another need have none",
        help="what drives the steps, a loop around strategy.run or Model.fit: {names}", asked=("custom",),
        choices="loops", depth=1, later=False, competes=True,
        label=lambda cell: cell.loop if cell.loop != "custom" else "",
        words=lambda cell: {"custom": "", "fit": "Model.fit"}.get(cell.loop, f"loop {cell.loop}"),
        tried=("custom", "fit"), shown_by=PROGRAM,
    )] = "custom"
    steps_per_execution: Annotated[Positive, Axis(
        one_update="the reference makes one after the other",
        help="training steps that one call of the program makes, as Keras' steps_per_execution", asked=(1,),
        value=StepsInACall, takers=REPEATING, competes=True,
        label=lambda cell: f"{cell.steps_per_execution} steps a call" if cell.steps_per_execution > 1 else "",
        tried=(1, 5), shown_by=("executed.steps_a_call",),
    )] = 1
    micro_batches: Annotated[Positive, Axis(
        no_lever="it makes room in memory, and no step faster",
        help="parts that a replica's batch is cut in; forward and backward take one after the other, and their "
        "gradients are added up for one reduction and one update", asked=(1,), value=Count, takers=PARTING,
        competes=True, in_program=True,
        label=lambda cell: f"{cell.micro_batches} micro-batches" if cell.micro_batches > 1 else "",
        tried=(1, 2), shown_by=PROGRAM,
    )] = 1
    ps: Annotated[Whole, Axis(
        one_update=COUNTED,
        help="counts of parameter servers", asked=(1,), value=DeviceCount, takers=SERVERS, base=0, competes=True,
        label=in_the_head, tried=(1, 2), tried_with=TWO_SERVERS, shown_by=("cluster.members",),
    )] = 0
    partitioner: Annotated[Partitioner, Axis(
        one_update=UNCUT,
        help="how parameter servers share large variables: {names}", asked=("none",),
        takers=SERVERS, base="none", competes=True, in_program=True, late=False,
        label=lambda cell: f"partitioner {cell.partitioner}" if cell.partitioner != "none" else "",
        tried=("none", "fixed"), tried_with=TWO_SERVERS, shown_by=PROGRAM,
    )] = "none"
    updates: Annotated[Updates, Axis(
        one_update="whether fused kernels make them is in the key",
        no_lever="the other value loses some",
        help="how parameter servers are updated: {names}; locked loses none, keras is the Keras optimizer",
        asked=("locked",), takers=SERVERS, base="locked", competes=True, in_program=True, late=False,
        label=lambda cell: f"{cell.updates} updates" if cell.updates != "locked" else "", tried=("locked", "keras"),
        tried_with=ONE_SERVER, shown_by=PROGRAM,
    )] = "locked"
    network: Annotated[str, Axis(
        works=COLLECTIVES,
        one_update=ADDED,
        no_lever="it is the network that one has",
        help="emulated networks between the processes of a cluster, such as rate=1gbit,delay=0.5ms, "
        "congestion=cubic; also unshaped, none",
        asked=("",), value=NetworkText, takers=CLUSTERS, spelling=Spelling(split_networks, join_values), base="",
        rank=order_of, competes=True, idle=_one_process, label=lambda cell: cell.network, series=True,
        tried=("unshaped", "rate=100mbit"), tried_with=TWO_WORKERS, shown_by=("cluster.network.bandwidth_bits_per_s",),
        lacking="emulated networks",
    )] = ""
    mesh: Annotated[str, Axis(
        one_update=UNCUT,
        no_lever="what of a model fits one device is the model's",
        help="meshes of dtensor and of keras_distribution, such as batch:4 or batch:2,model:2, whose replicas are the "
        "size of batch; a semicolon ends one; without any it is batch:REPLICAS", value=MeshText, takers=MESHES,
        spelling=Spelling(split_meshes, ";".join), base="", rank=Mesh.shards_of, competes=True, along_curve=True,
        in_program=True, on_curve=Mesh.shards_of, label=in_the_head, series=True,
        tried=("batch:2", "batch:2,model:2"), tried_with={"strategy": "dtensor", "replicas": 2},
        shown_by=("executed.layouts", "resources.logical_devices"),
    )] = ""
    intra_op_threads: Annotated[Whole, Axis(
        works=(*COLLECTIVES, *FEEDING),
        one_update="they change how sums round, which the comparison allows for",
        no_lever="`more cores for each` is one of the number of workers",
        help="the engine's intra-op threads; 0 is 1 on virtual-cpu, else the engine's choice", asked=(0,),
        value=Natural, competes=True, of_own_step=True, tried=(0, 2), shown_by=("resources.intra_op_threads",),
        label=lambda cell: f"{cell.intra_op_threads} threads" if cell.intra_op_threads else "", series=True,
    )] = 0
    prefetch: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        help="batches that the input pipeline makes ahead, besides the two between it and the step; "
        "0 is none; synthetic data need none", asked=(2,), value=Natural,
        competes=True, stage="batch", tried=(2, 4), shown_by=INPUT,
    )] = 2
    device_prefetch: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        help="batches that wait on each replica's device, and as many on the host; 0 leaves all on the host until "
        "the step", asked=(1,), value=Natural, takers=FETCHING, competes=True, stage="batch",
        tried=(1, 3), tried_with=TWO_REPLICAS, shown_by=INPUT,
    )] = 1
    cache: Annotated[Cache, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        help="where examples are kept once they are decoded: {names}; auto is memory, where all fit into 1 GiB",
        asked=("auto",), competes=True, stage="cache", tried=("auto", "none"), shown_by=INPUT,
    )] = "auto"
    parallel_calls: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        help="examples, or blocks of them, that are decoded at a time; 0 is TensorFlow's choice", asked=(0,),
        value=Natural, competes=True, stage="decode", tried=(0, 1), shown_by=INPUT,
    )] = 0
    interleave: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        help="files that are read side by side, an example of each in turn; 0 is one file after the other; of "
        "tfrecord:GLOB and photographs, and of what shards writes", asked=(0,), value=Natural, competes=True,
        stage="source", tried=(0, 2), tried_with=DECODING, shown_by=INPUT,
    )] = 0
    shuffle_buffer: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        no_lever="it changes which examples a batch has",
        help="examples to draw the next one from; 1 keeps the order, 0 is all of them, as far as 1 GiB holds them",
        asked=(0,), value=Natural, competes=True, stage="shuffle", tried=(0, 64), shown_by=INPUT,
    )] = 0
    deterministic: Annotated[bool, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        no_lever="it changes which examples a batch has",
        help="examples leave parallel calls in the order in which they came: {names}", asked=(True,), competes=True,
        stage="source", label=lambda cell: "" if cell.deterministic else "any order", tried=(True, False),
        shown_by=INPUT,
    )] = True
    data_service: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        no_lever="its workers are on the same cores",
        help="workers of a tf.data service, within the trial, that read and decode; 0 is no service", asked=(0,),
        value=ServiceWorkers, competes=True, stage="decode", tried=(0, 1),
        tried_with=DECODING, shown_by=INPUT,
    )] = 0
    shards: Annotated[Whole, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        help="TFRecord files that the data are written into before the first trial, and read from; 0 reads them as "
        "they are; of all data but synthetic, tfrecord:GLOB and functions", asked=(0,), value=FileCount,
        competes=True, stage="source", tried=(0, 3), shown_by=INPUT,
    )] = 0
    compression: Annotated[FileCompression, Axis(
        works=PIPELINES,
        one_update=GIVEN,
        no_lever="it takes processor time, and files that were read once are in memory",
        help="of the files of shards: {names}", asked=("none",), competes=True, stage="source",
        rank=lambda kind: (kind != "none", kind),
        label=lambda cell: cell.compression if cell.compression != "none" else "",
        tried=("none", "gzip"), tried_with={"shards": 3}, shown_by=INPUT,
    )] = "none"
    autoshard: Annotated[AutoShard, Axis(
        one_update=GIVEN,
        no_lever="it changes which examples a worker has",
        help="how workers share the input: {names}; off gives each its own examples by their numbers, before they are "
        "decoded; data has each make every global batch and keep its part; file gives each its own files, of shards or "
        "tfrecord:GLOB", asked=("off",), takers=SHARERS, base="off", rank=lambda policy: (policy != "off", policy),
        competes=True, idle=_one_worker, tried=("data", "file"),
        tried_with={**TWO_WORKERS, "shards": 2, "cache": "none"}, shown_by=INPUT,
    )] = "off"
    quantity: Annotated[QuantityText, Axis(
        value=QuantityText,
        works=FEEDING,
        one_update="it says what work is counted in, and changes none",
        no_lever="it changes no step",
        help="what work is counted in, such as images or rows, or tokens=40 of examples that have 40 each; of your own "
        "step a name alone; empty is examples, and tokens of a model of text", asked=("",),
        apart="rates in different units do not compare", of_own_step=True,
        label=lambda cell: f"in {cell.quantity}" if cell.quantity else "",
        words=lambda _: "",  # a sentence has the unit
        tried=("", "images"),
        shown_by=("throughput_per_s",),
    )] = ""
    engine: Annotated[str, Axis(
        works=(*COLLECTIVES, *FEEDING),
        no_lever="a sweep compares them; explain takes apart the steps of one",
        help="what trains: {names}, or your own as package.module:function; of other keys each takes the names that "
        "it has", asked=(ENGINE,), registry=("harness.engines", "ENGINE"), depth=1, competes=True, of_own_step=True,
        label=lambda cell: cell.engine if cell.engine != ENGINE else "",
        words=lambda cell: cell.engine if cell.engine != ENGINE else "",
        tried=(ENGINE, "jax"), shown_by=("executed.engine",),
    )] = ENGINE


# fmt: on


TABLE = entries(Axes)
"""Every axis, by its key in a cell."""
CELL_KEYS = {kind: key for key, axis in TABLE.items() for kind in axis.kinds}
"""The key of a cell in whose place a spec has others, by each of those."""
OF_OWN_STEP = frozenset(key for key, axis in TABLE.items() if axis.of_own_step)
"""Axes that a training step of a user's own has too: as settings of its run, for its cell has no axes."""
OUTER_FIRST = sorted(TABLE, key=lambda key: TABLE[key].depth)
"""The axes from the outermost of their product to the innermost."""
