"""What the engines whose arrays are JAX's share: devices, what a trainer is alike in, the reference, and a look at the
compiled step. No engine itself: the registry skips names with an underscore."""

REFUSED_SETTINGS = {"inter_op_threads": "JAX has one pool of threads; give --intra-op-threads"}
"""Settings of a run that they do not take, with the reason."""
