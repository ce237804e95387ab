"""What engines besides TensorFlow have alike, so that they do the same work: architectures and how their weights begin,
batches, the formulas of the optimizers, the order of a state, and the reference that a replica's share at a time gives.

NumPy alone, imported when it is asked for.
"""
