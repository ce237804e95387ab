"""Known values through the path that gradients take, under a tf.distribute strategy."""

from typing import TYPE_CHECKING, Any

from harness.trial.sums import ANY_MODEL, Tensors, judge_sums, known_values

if TYPE_CHECKING:
    import tensorflow as tf


def check_reduction(strategy: "tf.distribute.Strategy", tensors: Tensors = ANY_MODEL) -> str | None:
    """Sum known values, distinct per replica, by one batched all-reduce of `tensors`, as gradients are summed.

    Replica r sends its weight times a pattern (`harness.trial.sums.known_values`), so the sum itself tells whose
    value is missing or counted twice.
    """
    import tensorflow as tf

    weights, patterns = known_values(strategy.num_replicas_in_sync, tensors)
    # Captured, not constants of the graph: of a large model these are megabytes.
    sent = [tf.constant(pattern, dtype) for pattern, (_, dtype) in zip(patterns, tensors, strict=True)]

    def replica() -> Any:
        context = tf.distribute.get_replica_context()
        weight = tf.gather(tf.constant(weights, tf.float64), context.replica_id_in_sync_group)
        own = [tf.cast(weight, pattern.dtype) * pattern for pattern in sent]
        return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def reduce_all() -> Any:
        return strategy.run(replica)

    results = [[value.numpy() for value in strategy.experimental_local_results(result)] for result in reduce_all()]
    return judge_sums(results, patterns, weights)
