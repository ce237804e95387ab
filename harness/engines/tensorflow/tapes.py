"""What gradient tapes return, changed in the one place where every step of TensorFlow gets its gradients."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def tapes_return(made: Callable[..., Any]) -> Iterator[None]:
    """While entered, `tape.gradient(target, sources, …)` is `made(asked, tape, target, sources, …)`, where `asked` is
    TensorFlow's own."""
    import tensorflow as tf

    asked = tf.GradientTape.gradient

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return made(asked, *args, **kwargs)

    tf.GradientTape.gradient = gradient
    try:
        yield
    finally:
        tf.GradientTape.gradient = asked
