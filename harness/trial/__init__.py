"""Inside a trial's process: the only room that imports TensorFlow, and only when a trial runs."""
