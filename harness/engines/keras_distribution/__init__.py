"""keras.distribution on JAX, the one backend under which it distributes: `DataParallel` and `ModelParallel`, by `fit`.

Nothing here imports Keras before a trial's process asks for it.
"""

from harness.engines.keras_distribution.engine import ENGINE as ENGINE
