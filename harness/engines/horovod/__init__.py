"""Horovod on TensorFlow and Keras: data parallelism over processes, which exchange over Gloo.

Nothing here imports TensorFlow before a trial's process asks for it.
"""

from harness.engines.horovod.engine import ENGINE as ENGINE
