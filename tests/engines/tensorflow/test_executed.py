"""What a traced program does is read from its graph, not from what was asked for."""

import gc
import weakref
from typing import Any

import pytest

from harness.engines.tensorflow import executed as executed_module
from harness.engines.tensorflow.executed import _read, inspect
from harness.spec.cell import TrainingCell
from harness.spec.work import Cell

PARAMETERS = (400, 30, 7)


def cell(op: str = "auto", replicas: int = 2) -> Cell:
    return TrainingCell(
        device="virtual-cpu",
        strategy="mirrored",
        replicas=replicas,
        batch_size=4,
        batch_scope="per_replica",
        global_batch_size=4 * replicas,
        cross_device_op=op,
        model="mlp",
        data="synthetic",
    )


def traced(tf: Any, n: int, op: Any, name: str = "step") -> Any:
    """A step that reduces three gradients and a scalar over n replicas."""
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)], cross_device_ops=op)

    def replica() -> Any:
        context = tf.distribute.get_replica_context()
        r = tf.cast(context.replica_id_in_sync_group, tf.float32)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, [r * tf.ones([size]) for size in PARAMETERS])

    def step() -> Any:
        with tf.name_scope(name):
            return strategy.run(replica)

    return tf.function(step).get_concrete_function()


def test_one_pack_holds_all_gradients(tf: Any) -> None:
    executed = inspect(traced(tf, 2, tf.distribute.HierarchicalCopyAllReduce(1)), cell("hierarchical_copy"))
    assert executed.packs == 1
    assert executed.pack_bytes == [4 * sum(PARAMETERS)]


@pytest.mark.parametrize("op", ["hierarchical_copy", "reduction_to_one_device"])
def test_without_packs_there_is_a_reduction_a_tensor(tf: Any, op: str) -> None:
    ops = {
        "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce(0),
        "reduction_to_one_device": tf.distribute.ReductionToOneDevice(),
    }
    executed = inspect(traced(tf, 2, ops[op]), cell(op))
    assert executed.packs == 3
    assert executed.pack_bytes == [4 * size for size in PARAMETERS]
    assert executed.operations == {"AddN": 3}


def test_tensorflows_own_choice_on_processors_is_a_ring(tf: Any) -> None:
    executed = inspect(traced(tf, 2, None), cell("auto"))
    assert executed.operations == {"CollectiveReduceV2[ring]": 2}
    assert executed.packs == 1


def test_the_fingerprint_depends_on_structure_and_not_on_names(tf: Any) -> None:
    one = inspect(traced(tf, 2, tf.distribute.ReductionToOneDevice(), "one"), cell())
    other = inspect(traced(tf, 2, tf.distribute.ReductionToOneDevice(), "other"), cell())
    packed = inspect(traced(tf, 2, tf.distribute.HierarchicalCopyAllReduce(1)), cell())
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != packed.fingerprint


def test_the_clusters_show_xla_and_the_fingerprint_of_kept_records_stays(tf: Any) -> None:
    def program(compiled: bool) -> Any:
        part = tf.function(lambda: tf.ones([4]) * 2.0, jit_compile=compiled)
        return tf.function(lambda: part()).get_concrete_function()

    plain, compiled = (inspect(program(xla), cell(replicas=1)) for xla in (False, True))
    assert (plain.xla_clusters, compiled.xla_clusters) == (0, 1)
    assert plain.fingerprint == compiled.fingerprint


def test_a_program_that_is_compiled_as_a_whole_is_a_cluster(tf: Any) -> None:
    whole = tf.function(lambda: tf.ones([4]) * 2.0, jit_compile=True).get_concrete_function()
    assert inspect(whole, cell(replicas=1)).xla_clusters == 1


def test_a_program_is_read_once_of_a_cell_and_forgotten_with_it(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Cell] = []

    def reading(program: Any, of: Any) -> Any:
        read.append(of)
        return _read(program, of)

    monkeypatch.setattr(executed_module, "_read", reading)
    step = tf.function(lambda: tf.ones([4]) * 2.0)
    one, *others = (inspect(step.get_concrete_function(), cell(replicas=n)) for n in (1, 1, 2))
    assert read == [cell(replicas=1), cell(replicas=2)]
    assert [others[0] is one, others[1] is one] == [True, False]
    program = weakref.ref(step.get_concrete_function())
    assert program() in executed_module._inspected
    del step
    gc.collect()
    assert program() is None


def test_a_program_without_what_was_asked_for_says_so(tf: Any) -> None:
    executed = inspect(traced(tf, 2, tf.distribute.ReductionToOneDevice()), cell("nccl"))
    assert executed.differs_from_request is not None
    assert "asked for nccl" in executed.differs_from_request
    assert "3 AddN" in executed.differs_from_request


@pytest.mark.parametrize(
    ("hint", "device", "configured", "name"),
    [
        ("auto", "GPU:0", False, "CollectiveReduceV2[auto: ring]"),
        ("auto", "GPU:0", True, "CollectiveReduceV2[auto: nccl]"),
        ("auto", "CPU:0", True, "CollectiveReduceV2[auto: ring]"),
        ("nccl", "GPU:0", False, "CollectiveReduceV2[nccl]"),
        ("nccl", "CPU:0", False, "CollectiveReduceV2[nccl: ring]"),
        ("ring", "GPU:0", False, "CollectiveReduceV2[ring]"),
    ],
)
def test_a_collective_is_recorded_with_what_tensorflow_makes_of_its_hint(
    tf: Any, monkeypatch: pytest.MonkeyPatch, hint: str, device: str, configured: bool, name: str
) -> None:
    from tensorflow.python.eager import context
    from tensorflow.python.ops import collective_ops

    def step() -> Any:
        with tf.device(device):
            return collective_ops.all_reduce_v2(tf.ones([3]), 2, 1, 1, communication_hint=hint)

    program = tf.function(step, autograph=False).get_concrete_function()
    monkeypatch.setattr(context.context(), "_collective_use_nccl_communication", configured)
    executed = inspect(program, cell("nccl"))
    assert executed.operations == {name: 1}
    assert (executed.differs_from_request is None) == (name == "CollectiveReduceV2[nccl]")
