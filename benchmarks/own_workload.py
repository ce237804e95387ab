"""A model of your own, complete. Copy this file next to your code and change `make_model`.

Run it from the folder above `benchmarks/`:

    python -m harness sweep --model benchmarks.own_workload:make_model --strategy none,mirrored --replicas 1,2

`--model` takes `package.module:function`. The function takes no arguments, or numbers by name
(`package.module:function(layers=2)`), and returns a Keras model. It is called inside
`strategy.scope()`, in a fresh process a trial, so keep work that is not the model (downloads,
plots) out of this module. What the harness takes from the model:

- its input shape, (height, width) or (height, width, channels): images of `--data` are resized to it;
- its outputs: at least as many as the data has classes;
- its loss and optimizer, when it is compiled. Without `compile()` the loss is sparse categorical
  cross-entropy and the optimizer is `--optimizer`.

Anything that `model.fit` needs beside the model (callbacks, metrics, class weights) plays no part.
"""

import keras


def make_model() -> keras.Model:
    """A convolutional network with batch normalisation and dropout, compiled with its own loss and optimizer."""
    inputs = keras.Input((32, 32, 3))
    x = inputs
    for filters in (16, 32):
        x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = keras.layers.BatchNormalization()(x)
        x = keras.layers.ReLU()(x)
        x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dropout(0.2)(x)
    # float32 whatever --precision says: a softmax in half precision is not worth benchmarking.
    outputs = keras.layers.Dense(10, activation="softmax", dtype="float32")(x)

    model = keras.Model(inputs, outputs, name="own_workload")
    model.compile(
        optimizer=keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(2e-3, decay_steps=10_000)),
        loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
    )
    return model
