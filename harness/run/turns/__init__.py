"""Live trials that take turns at the clock."""
