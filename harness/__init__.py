"""Benchmark distributed training with TensorFlow: proof first, then numbers with intervals."""

__version__ = "0.1.0"
