"""A run of faults, for people and for programs."""
