"""TensorFlow: strategies, cross-device ops, devices, models, data, loops, and what proves them.

Nothing here imports TensorFlow before a trial's process asks for it.
"""

from harness.engines.tensorflow.engine import ENGINE as ENGINE
