"""Keras models and optimizers that several engines train: under tf.distribute and under keras.distribution.

No engine itself: the registry skips names with an underscore. Keras is imported when something is built.
"""
