"""A series of runs on one machine: levels, and where they change."""
