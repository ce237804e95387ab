"""TensorFlow under another name: an engine of a user's own, which trains what TensorFlow does."""

from harness.engines.tensorflow.engine import TensorFlow


class Again(TensorFlow):
    name = "again"
    title = "TensorFlow again"
