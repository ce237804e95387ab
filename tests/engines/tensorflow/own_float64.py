"""A user's own models of the digits with layers of float64."""

import keras


def model() -> keras.Model:
    """All of it."""
    return _of("float64", "float64")


def model_of_two_types() -> keras.Model:
    """All but the last layer, so that gradients are of two types."""
    return _of("float64", "float32")


def _of(hidden: str, last: str) -> keras.Model:
    layers = [keras.layers.Flatten(dtype=hidden), keras.layers.Dense(16, "relu", dtype=hidden)]
    return keras.Sequential([keras.Input((8, 8, 1)), *layers, keras.layers.Dense(10, dtype=last)])
