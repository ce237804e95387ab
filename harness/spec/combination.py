"""Which values of a cell's axes make sense together, by the traits of what they name; what does not is left out."""

from harness.spec.axes import NO_MODEL, TABLE, is_own_code
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.spec.inputs import LeftOut
from harness.spec.mesh import Mesh
from harness.spec.sweep import Sweep
from harness.spec.taken import strategies_that
from harness.spec.work import DistributedCell

SENDS_NOTHING = "one process sends nothing over a network"
OWN_EXAMPLES = "own"
"""The kind of a data set's examples (`Catalogue.data_gives`) that are fitted to no model."""
OWN_DATA_ALONE = "data of your own go with a model of your own: --model package.module:function"


def nonsense(catalogue: Catalogue, at: DistributedCell) -> LeftOut | None:
    """Why the combination makes no sense whatever its replicas do, or None when it does."""
    traits, op, n = catalogue.strategies[at.strategy], at.cross_device_op, at.replicas_in_sync
    name = f"strategy '{at.strategy}'"
    if traits.devices is not None and at.device not in traits.devices:
        return LeftOut(f"{at.strategy} on {at.device}", f"{name} runs on {', '.join(traits.devices)} only")
    if traits.loops is not None and (loop := at.get("loop")) and loop not in traits.loops:
        return LeftOut(f"{at.strategy}, loop {loop}", f"{name} has the loop {', '.join(traits.loops)} only")
    if at.workers > 1 and not traits.multi_worker:
        return LeftOut(f"{at.strategy}, {at.workers} workers", f"{name} runs in one process")
    if at.network and not traits.multi_worker:
        return LeftOut(f"{at.strategy} over a network", f"{name} runs in one process, and {SENDS_NOTHING}")
    if at.network and _past_networks(catalogue, at):
        return LeftOut(
            f"{at.strategy} with {op} over a network",
            f"on {at.device} '{op}' exchanges through the memory of one host, where networks are emulated, past them",
        )
    if (traits.parameter_servers or traits.replica_a_process) and at.replicas > 1:
        return LeftOut(f"{at.strategy} × {at.replicas} replicas", f"a worker of {name} is one replica: use workers")
    if traits.max_replicas is not None and n > traits.max_replicas:
        return LeftOut(f"{at.strategy} × {n} replicas", f"{name} runs on {traits.max_replicas} replica")
    return _without_op(catalogue, at)


def _without_op(catalogue: Catalogue, at: DistributedCell) -> LeftOut | None:
    """Why the strategy or the loop could do nothing with the cross-device op, or None where it can."""
    traits, op = catalogue.strategies[at.strategy], at.cross_device_op
    if op != "auto" and not traits.takes_cross_device_op:
        return LeftOut(f"{at.strategy} with {op}", f"strategy '{at.strategy}' takes no cross-device op")
    takers = _takers(catalogue, op)
    if takers is not None and at.strategy not in takers:
        return LeftOut(f"{at.strategy} with {op}", f"'{op}' is an op of {', '.join(takers) or 'no strategy here'}")
    if op != "auto" and at.replicas_in_sync == 1:
        return LeftOut(f"{at.strategy} × 1 replica with {op}", "one replica has nothing to reduce across devices")
    loops, loop = catalogue.cross_device_ops[op].loops if op in catalogue.cross_device_ops else None, at.get("loop")
    if loops is not None and loop is not None and loop not in loops:
        return LeftOut(f"{at.strategy} with {op}, loop {loop}", f"'{op}' is an op of --loop {' or '.join(loops)}")
    return None


def undivided(at: TrainingCell) -> LeftOut | None:
    n, batch, parts = at.replicas_in_sync, at.batch_size, at.micro_batches
    if at.batch_scope == "global":
        if batch % n:
            reason = f"{n} replicas do not divide a global batch of {batch}"
            return LeftOut(f"global batch {batch} over {n} replicas", reason)
        batch //= n
    if batch % parts == 0:
        return None
    return LeftOut(f"batch {batch} in {parts} micro-batches", f"{parts} do not divide a replica's batch of {batch}")


def _takers(catalogue: Catalogue, op: str) -> tuple[str, ...] | None:
    """The strategies that take a cross-device op, which may be the user's own; None is every one that takes any."""
    known = catalogue.cross_device_ops.get(op)
    return known.strategies if known is not None else strategies_that(catalogue, lambda traits: traits.takes_own_op)


def reaches_unchanged(catalogue: Catalogue, data: str) -> bool:
    """Whether examples reach a model as they are: the user's own, and files of several inputs or targets."""
    return is_own_code(data) or catalogue.data_gives(data) == OWN_EXAMPLES


def misfit(catalogue: Catalogue, model: str, data: str) -> LeftOut | None:
    """Why the model cannot be trained on the data, or None where it can, or where only the model itself knows."""
    combination = f"{model} on {data}"
    if model == NO_MODEL:
        told = "what is read of them is what a model takes: name one with --model"
        return None if reaches_unchanged(catalogue, data) else LeftOut(combination, told)
    if is_own_code(data) and not is_own_code(model):
        return LeftOut(combination, OWN_DATA_ALONE)
    takes = catalogue.model_traits(model).takes
    fitting = (*takes, "anything")
    if not takes or catalogue.data_gives(data) in fitting:
        fault = catalogue.tokens_fault(model, data)
        return LeftOut(combination, fault) if fault else None
    names = [name for name in catalogue.data if catalogue.data_gives(name) in fitting]
    return LeftOut(combination, f"it takes {' or '.join(takes)}: --data {' or '.join(names)}")


def _past_networks(catalogue: Catalogue, at: DistributedCell) -> bool:
    """Whether an emulated network would carry nothing of the combination's reductions."""
    op, device = catalogue.cross_device_ops.get(at.cross_device_op), catalogue.devices[at.device]
    return device.past_networks or (op is not None and op.past_networks and not device.on_processors)


def packings_of(sweep: Sweep, catalogue: Catalogue, at: DistributedCell) -> tuple[list[str], list[LeftOut]]:
    """The packings that engine, strategy and op take among those asked for; what does not apply is listed, not run."""
    asked = {kind: sweep.asked(kind) for kind in TABLE["packing"].kinds}
    traits, op = catalogue.strategies[at.strategy], at.cross_device_op
    of_op = catalogue.cross_device_ops[op].packing if op in catalogue.cross_device_ops else None
    who = op if traits.takes_cross_device_op else f"strategy '{at.strategy}'"
    if not catalogue.takes(at.tag, "packing"):
        who = f"engine '{sweep.asked('engine')[0]}'"
    kind = (traits.packing or of_op) if who == op else None
    if at.replicas_in_sync == 1:  # it has nothing to pack
        return ["default"], []
    refused = [
        LeftOut(f"{at.strategy} with {op}, {key}={value}", f"{who} takes no {key}")
        for key, values in asked.items()
        if key != kind
        for value in values
    ]
    taken = [f"{kind}={value}" for value in asked[kind]] if kind else []
    loops, loop = traits.packing_loops, at.get("loop")
    if loops is not None and loop is not None and loop not in loops:
        reason = f"loop '{loop}' takes no {kind}: --loop {' or '.join(loops)}"
        refused += [LeftOut(f"{at.strategy}, loop {loop}, {packing}", reason) for packing in taken]
        taken = []
    return taken or ["default"], refused


def meshes_of(sweep: Sweep, catalogue: Catalogue, at: TrainingCell) -> tuple[list[str], list[LeftOut]]:
    """The meshes with as many replicas as the combination that its loop can have; without any given, one of replicas
    alone."""
    traits, replicas = catalogue.strategies[at.strategy], at.replicas
    if not traits.meshes:
        return [""], []
    asked = [Mesh.parse(text) for text in sweep.asked("mesh")] or [Mesh(batch=replicas)]
    matching = [mesh for mesh in asked if mesh.batch == replicas]
    if not matching:
        reason = f"no mesh that was given has {replicas} replicas (batch:{replicas})"
        return [], [LeftOut(f"{at.strategy} × {replicas} replicas", reason)]
    if (cutting := traits.cutting_loops) is None:
        return [mesh.text for mesh in matching], []
    cuts = at.loop in cutting
    cut = f"loop '{at.loop}' cuts weights over several devices a replica: --mesh batch:{replicas},model:2"
    reason = cut if cuts else f"loop '{at.loop}' cuts no weights: --loop {' or '.join(cutting)}"
    unfit = [mesh for mesh in matching if (mesh.model > 1) != cuts]
    refused = [LeftOut(f"{at.strategy}, loop {at.loop}, mesh {mesh.text}", reason) for mesh in unfit]
    return [mesh.text for mesh in matching if mesh not in unfit], refused
