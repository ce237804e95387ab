"""Operations are counted from the traced program, and are those that one counts by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.engines.tensorflow.executed import inspect
from harness.engines.tensorflow.flops import OperationCount, work_of
from harness.engines.tensorflow.workloads import load_workload
from tests.record.examples import cell

BATCH = 4


def flops_of(program: Any) -> int | None:
    work = work_of(program)
    return work and work.flops


def program(tf: Any, function: Callable[..., Any], *shapes: tuple[int | None, ...], **options: Any) -> Any:
    """The traced function of tensors of these shapes."""
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return tf.function(function, autograph=False, **options).get_concrete_function(*specs)


def step(tf: Any, layers: list[Any], shape: tuple[int, ...], **options: Any) -> Any:
    """Forward, backward and an update of a Keras model of these layers, on a batch of `BATCH`."""
    import keras

    model = keras.Sequential([keras.Input(shape), *layers])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)

    def gradients_of(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x, training=True) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    gradients = tf.function(gradients_of, autograph=False, **options) if options else gradients_of

    def train(x: Any) -> None:
        optimizer.apply_gradients(zip(gradients(x), model.trainable_variables, strict=True))

    return program(tf, train, (BATCH, *shape))


def dense(inputs: int, outputs: int, first: bool = False) -> int:
    """A dense layer: forward, the gradient of the weights and, of all but the first, that of the input."""
    return (2 if first else 3) * 2 * BATCH * inputs * outputs


def convolution(height: int, width: int, kernel: int, inputs: int, outputs: int, first: bool = False) -> int:
    """A convolution whose output is height × width, likewise."""
    return (2 if first else 3) * 2 * BATCH * height * width * kernel * kernel * inputs * outputs


def lenet() -> list[Any]:
    """LeNet-5 on 28×28×1 with max pooling: unpadded convolutions of 5×5 (LeCun et al., 1998)."""
    from keras import layers

    return [
        layers.Conv2D(6, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 5, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(120, activation="relu"),
        layers.Dense(84, activation="relu"),
        layers.Dense(10),
    ]


LENET = sum(
    (
        convolution(28, 28, 5, 1, 6, first=True),
        convolution(10, 10, 5, 6, 16),
        dense(5 * 5 * 16, 120),
        dense(120, 84),
        dense(84, 10),
    )
)


def test_a_dense_net_has_three_products_a_layer_and_two_in_the_first(tf: Any) -> None:
    from keras import layers

    net = [layers.Dense(512, activation="relu"), layers.Dense(32, activation="relu"), layers.Dense(10)]
    assert flops_of(step(tf, net, (784,))) == dense(784, 512, first=True) + dense(512, 32) + dense(32, 10)


def test_a_dense_net_moves_operands_and_results_of_each_product_once(tf: Any) -> None:
    from keras import layers

    net = [layers.Dense(512, activation="relu"), layers.Dense(10)]
    first, second = BATCH * 784 + 784 * 512 + BATCH * 512, BATCH * 512 + 512 * 10 + BATCH * 10
    # the same three tensors in each direction; of the first layer nobody needs the gradient of the batch
    flops = dense(784, 512, first=True) + dense(512, 10)
    moved = 4 * (2 * first + 3 * second)
    assert work_of(step(tf, net, (784,))) == OperationCount(flops, moved, (("float32", flops),))


def test_lenets_first_convolution_moves_images_filter_and_result(tf: Any) -> None:
    from keras import layers

    tensors = BATCH * 28 * 28 * 1 + 5 * 5 * 1 * 6 + BATCH * 28 * 28 * 6
    work = work_of(step(tf, [layers.Conv2D(6, 5, padding="same", use_bias=False)], (28, 28, 1)))
    flops = convolution(28, 28, 5, 1, 6, first=True)
    assert work == OperationCount(flops, 4 * 2 * tensors, (("float32", flops),))


def test_half_precision_moves_half_as_much(tf: Any) -> None:
    def product(a: Any, b: Any) -> Any:
        return tf.matmul(tf.cast(a, tf.bfloat16), tf.cast(b, tf.bfloat16))

    assert work_of(program(tf, product, (2, 3), (3, 5))) == OperationCount(60, 2 * (6 + 15 + 10), (("bfloat16", 60),))


def test_the_types_that_are_multiplied_are_told_those_of_the_most_operations_first(tf: Any) -> None:
    def products(a: Any, b: Any) -> Any:
        half = tf.matmul(tf.cast(a, tf.bfloat16), tf.cast(b, tf.bfloat16))
        double, again = tf.cast(a, tf.float64), tf.cast(tf.transpose(b), tf.float64)
        return half, tf.matmul(double, again, transpose_b=True), tf.matmul(double, again, transpose_b=True) + 1

    traced = program(tf, products, (2, 3), (3, 5))
    found = work_of(traced)
    assert found is not None
    assert found.of_types == (("float64", 120), ("bfloat16", 60))
    alone = cell(strategy="none", replicas=1, global_batch_size=32)
    assert inspect(traced, alone).product_types == ["float64", "bfloat16"]  # type: ignore[arg-type]


def test_lenet_is_what_one_counts_by_hand(tf: Any) -> None:
    assert flops_of(step(tf, lenet(), (28, 28, 1))) == LENET


def test_what_xla_compiles_is_counted_in_the_function_that_is_called(tf: Any) -> None:
    assert flops_of(step(tf, lenet(), (28, 28, 1), jit_compile=True)) == LENET


def test_strides_and_groups_leave_out_what_is_not_computed(tf: Any) -> None:
    from keras import layers

    net = [layers.Conv2D(8, 3, padding="same"), layers.Conv2D(16, 3, strides=2, padding="same", groups=4)]
    counted = flops_of(step(tf, net, (12, 12, 3)))
    grouped = 3 * 2 * BATCH * 6 * 6 * 3 * 3 * (8 // 4) * 16
    assert counted == convolution(12, 12, 3, 3, 8, first=True) + grouped


def test_a_depthwise_convolution_sums_up_no_channels(tf: Any) -> None:
    from keras import layers

    net = [layers.Conv2D(8, 1), layers.DepthwiseConv2D(3, depth_multiplier=2)]
    counted = flops_of(step(tf, net, (10, 10, 3)))
    assert counted == convolution(10, 10, 1, 3, 8, first=True) + 3 * 2 * BATCH * 8 * 8 * 3 * 3 * 16


def test_attention_is_its_projections_and_its_two_batched_products(tf: Any) -> None:
    import keras

    tokens, width, heads = 6, 8, 2
    inputs = keras.Input((tokens, width))
    first = keras.layers.Dense(width)(inputs)
    attended = keras.layers.MultiHeadAttention(heads, width // heads)(first, first)
    model = keras.Model(inputs, attended)

    def gradients(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x, training=True) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    each = 2 * BATCH * tokens * width * width  # a projection: every token, all heads together
    scores = 2 * BATCH * heads * tokens * tokens * (width // heads)
    assert flops_of(program(tf, gradients, (BATCH, tokens, width))) == 2 * each + 3 * (4 * each + 2 * scores)


def test_a_whole_transformer_is_its_patches_its_blocks_and_its_head(tf: Any) -> None:
    layers, width, heads, tokens, classes, patch = 3, 32, 4, 12, 10, 4 * 4
    workload = load_workload(f"transformer(layers={layers},width={width},heads={heads},tokens={tokens})")
    model = workload.build(workload.input_shape, classes)
    forward = program(tf, lambda x: model(x, training=True), (BATCH, *workload.input_shape))
    projections = 4 * 2 * BATCH * tokens * width * width
    products = 2 * 2 * BATCH * tokens * tokens * width  # queries with keys, then weights with values, all heads
    perceptron = 2 * 2 * BATCH * tokens * width * (2 * width)
    ends = 2 * BATCH * tokens * patch * width + 2 * BATCH * width * classes
    assert flops_of(forward) == layers * (projections + products + perceptron) + ends


def resnet50_multiplications() -> int:
    """Of one image of 224×224, forward: the layers of table 1 of He et al. (2016), whose first convolution of a stage,
    and the shortcut beside it, have the stride, and 1,000 classes."""
    found, inputs, size = 112 * 112 * 7 * 7 * 3 * 64, 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width, size = 64 * 2**stage, 56 // 2**stage
        for block in range(blocks):
            weights = inputs * width + 3 * 3 * width * width + width * 4 * width
            weights += inputs * 4 * width if block == 0 else 0
            found, inputs = found + size * size * weights, 4 * width
    return found + 2048 * 1000


def test_resnet50_is_the_sum_of_its_published_layers(tf: Any) -> None:
    import keras

    model = keras.applications.ResNet50(weights=None)
    forward = program(tf, lambda x: model(x, training=False), (1, 224, 224, 3))
    assert flops_of(forward) == 2 * resnet50_multiplications()


@pytest.mark.parametrize(
    ("equation", "shapes", "flops"),
    [
        ("ij,jk->ik", [(2, 3), (3, 5)], 2 * 2 * 3 * 5),
        ("bij,bjk->bik", [(4, 2, 3), (4, 3, 5)], 2 * 4 * 2 * 3 * 5),
        ("...ij,jk->...ik", [(7, 4, 2, 3), (3, 5)], 2 * 7 * 4 * 2 * 3 * 5),
        ("...i,...i->...", [(4, 1, 3), (6, 3)], 2 * 4 * 6 * 3),
        ("ij,ij->ij", [(2, 3), (2, 3)], 0),
        ("ij->ji", [(2, 3)], 0),
        ("ija,jk->ik", [(2, 3, 9), (3, 5)], 2 * 2 * 3 * 5),
    ],
)
def test_an_einsum_counts_its_labels_where_one_is_summed_up(
    tf: Any, equation: str, shapes: list[tuple[int, ...]], flops: int
) -> None:
    def contraction(*operands: Any) -> Any:
        return tf.raw_ops.Einsum(inputs=list(operands), equation=equation)

    assert flops_of(program(tf, contraction, *shapes)) == flops


@pytest.mark.parametrize("transposed", [False, True])
def test_a_batched_product_counts_the_dimension_that_is_summed_up(tf: Any, transposed: bool) -> None:
    left = (4, 3, 2) if transposed else (4, 2, 3)
    product = program(tf, lambda a, b: tf.matmul(a, b, transpose_a=transposed), left, (4, 3, 5))
    assert flops_of(product) == 2 * 4 * 2 * 3 * 5


def test_what_no_result_needs_is_not_counted_and_what_is_called_twice_counts_twice(tf: Any) -> None:
    @tf.function(autograph=False)
    def inner(a: Any, b: Any) -> Any:
        tf.matmul(a, b)  # for nobody
        return tf.matmul(a, b)

    assert flops_of(program(tf, lambda a, b: inner(a, b) + inner(a, b), (2, 3), (3, 5))) == 2 * (2 * 2 * 3 * 5)


def test_branches_that_do_as_much_are_counted_and_others_are_not(tf: Any) -> None:
    def alike(a: Any, b: Any) -> Any:
        return tf.cond(a[0, 0] > 0, lambda: tf.matmul(a, b), lambda: tf.matmul(a, b) + 1)

    def unlike(a: Any, b: Any) -> Any:
        return tf.cond(a[0, 0] > 0, lambda: tf.matmul(a, b), lambda: tf.zeros([2, 5]))

    assert flops_of(program(tf, alike, (2, 3), (3, 5))) == 60
    assert flops_of(program(tf, unlike, (2, 3), (3, 5))) is None


@pytest.mark.parametrize(("works", "flops"), [(True, None), (False, 0)], ids=["products", "no products"])
def test_a_loop_is_counted_only_where_it_holds_no_products(tf: Any, works: bool, flops: int | None) -> None:
    def loop(a: Any) -> Any:
        return tf.while_loop(lambda x: x[0, 0] < 9, lambda x: [tf.matmul(x, x) if works else x + 1], [a])

    assert flops_of(program(tf, loop, (3, 3))) == flops


def test_a_shape_that_is_known_only_when_it_runs_is_not_counted(tf: Any) -> None:
    assert flops_of(program(tf, tf.matmul, (None, 3), (3, 5))) is None


def test_a_record_has_those_of_all_replicas_and_workers(tf: Any) -> None:
    product = program(tf, tf.matmul, (2, 3), (3, 5))
    alone = cell(strategy="none", replicas=1, global_batch_size=32)
    several = cell(strategy="multi_worker_mirrored", replicas=1, workers=3, global_batch_size=96)
    racing = cell(strategy="parameter_server", replicas=1, workers=3, ps=1, global_batch_size=32)
    counted = [inspect(product, one).flops_per_step for one in (alone, several, racing)]  # type: ignore[arg-type]
    assert counted == [60, 180, 60]
    assert inspect(product, cell(device="tpu")).flops_per_step is None  # type: ignore[arg-type]
    nothing = program(tf, tf.identity, (2, 3))
    assert inspect(nothing, alone).flops_per_step is None  # type: ignore[arg-type]


def test_replicas_of_one_program_count_each(tf: Any) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def replicas(a: Any, b: Any) -> Any:
        return strategy.experimental_local_results(strategy.run(lambda: tf.matmul(a, b)))

    assert flops_of(program(tf, replicas, (2, 3), (3, 5))) == 2 * 60
