"""TensorFlow and `tf.distribute`: strategies, cross-device ops, devices, models, loops, checks."""
