"""TensorFlow's jobs that are to survive faults (`harness.trial.job`), with its own checkpoints and handler."""
