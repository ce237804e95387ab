"""A job that is to survive faults: so many steps, in an order that can be taken up again, with checkpoints."""
