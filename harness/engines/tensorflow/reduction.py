"""Known values through the path that gradients take, under a tf.distribute strategy."""

from typing import TYPE_CHECKING, Any

from harness.trial.judgement import judge_sums, known_values

if TYPE_CHECKING:
    import tensorflow as tf


def check_reduction(strategy: "tf.distribute.Strategy") -> str | None:
    """Sum known values, distinct per replica, through the batched path that gradients take.

    Replica r sends its weight times a pattern (`harness.trial.judgement.known_values`), so the sum itself tells whose
    value is missing or counted twice.
    """
    import tensorflow as tf

    weights, patterns = known_values(strategy.num_replicas_in_sync)

    def replica() -> Any:
        context = tf.distribute.get_replica_context()
        weight = tf.gather(tf.constant(weights), context.replica_id_in_sync_group)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, [weight * pattern for pattern in patterns])

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def reduce_all() -> Any:
        return strategy.run(replica)

    results = [[value.numpy() for value in strategy.experimental_local_results(result)] for result in reduce_all()]
    return judge_sums(results, patterns, weights)
